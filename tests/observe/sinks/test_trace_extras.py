"""Test what sinks say where their clients are not installed.

tests/packaging/test_bridges.py tests Phoenix and MLflow with their clients and the real servers.
"""

from __future__ import annotations

import sys

import pytest

from demur import MissingExtraError, ScoreCallbackHandler


@pytest.mark.parametrize(
    ("system", "module"),
    [
        ("phoenix", "phoenix"),
        ("mlflow", "mlflow"),
        ("langsmith", "langsmith.run_trees"),
        ("langfuse", "langfuse"),
    ],
)
def test_without_its_client_a_sink_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, system: str, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'demur\[{system}\]'"):
        ScoreCallbackHandler(sink=system)
