"""The guard with a real model as author, judge and corrector."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.prompts import ChatPromptTemplate

from demur import Guard, RefChecker
from demur.guard import REFUSAL

pytestmark = pytest.mark.real

# A text, a question about it, a wrong answer, and what the right one has to hold.
CASES = (
    (
        "The Louvre, in Paris, opened as a museum in 1793.",
        "When did the Louvre open as a museum?",
        "The Louvre opened as a museum in 1851.",
        "1793",
    ),
    (
        "The kettle holds two litres. It is made of steel and weighs 900 grams.",
        "What is the kettle made of?",
        "The kettle is made of copper.",
        "steel",
    ),
)


def test_wrong_answers_are_repaired_from_the_documents_or_refused(model: BaseChatModel) -> None:
    recovered = 0
    for text, question, wrong, right in CASES:

        def chain(given: dict[str, str], wrong: str = wrong, text: str = text) -> dict[str, Any]:
            return {"answer": wrong, "context": [text]}

        guard = Guard(chain, RefChecker(model), model=model)
        found = guard.with_trace().invoke({"input": question})
        assert found.trace.attempts[0].verdict == "failed", found.trace
        outcome = found.trace.outcome
        assert outcome in ("recovered", "nothing_to_check", "abstained"), found.trace
        if outcome == "recovered":
            recovered += right in found.output["answer"]
        elif outcome == "abstained":
            assert found.output["answer"] == REFUSAL
        assert found.trace.usage.calls >= 3  # labels twice, and the repair
        assert found.trace.usage.input_tokens > 100
    assert recovered >= 1  # of 2


def test_a_supported_answer_of_a_real_chain_passes(model: BaseChatModel) -> None:
    prompt = ChatPromptTemplate.from_template(
        "{context}\n\nAnswer in one short sentence: {question}"
    )
    guard = Guard(prompt | model, RefChecker(model), model=model)
    text, question, _, right = CASES[1]
    found = guard.with_trace().invoke({"question": question, "context": text})
    assert found.trace.outcome in ("passed", "recovered"), found.trace
    assert right in found.output.text
    assert found.trace.attempts[0].contexts[0].page_content == text


def test_the_first_example_of_the_readme_works_as_typed(model: BaseChatModel) -> None:
    readme = Path(__file__).parents[2] / "README.md"
    example = readme.read_text().split("```python\n", 1)[1].split("```", 1)[0]
    names: dict[str, Any] = {}
    # Our own README, not what a model wrote.
    exec(example.replace("guarded.invoke(", "output = guarded.invoke("), names)  # noqa: S102
    assert "1793" in names["output"].text or names["output"].text == REFUSAL
