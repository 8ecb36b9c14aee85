"""Few-shot examples chosen by FEWL on the real local model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel

pytestmark = [pytest.mark.real, pytest.mark.documentation]


def test_the_example_of_the_readme_works_as_typed(
    model: BaseChatModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    blocks = [part.split("```", 1)[0] for part in readme.split("```python\n")[1:]]
    (example,) = (block for block in blocks if "FEWLExampleSelector" in block)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    # Our own README, not what a model wrote.
    exec(example.replace("chain.invoke(", "output = chain.invoke("), names)  # noqa: S102
    best = names["store"].get("Who painted Guernica?").best
    assert best.answer == "Pablo Picasso painted Guernica in 1937."
    shown = names["chain"].first.invoke({"question": "Who painted Las Meninas?"}).to_messages()
    assert [message.content for message in shown[1:]] == [
        "Who painted Guernica?",
        best.answer,
        "Who painted Las Meninas?",
    ]
    assert names["output"].text.strip()
    names["store"].close()
