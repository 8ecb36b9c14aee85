"""Test what the sinks for Phoenix and MLflow do where their clients are not installed.

tests/packaging/test_bridges.py tests what they do with their clients and the real servers.
"""

from __future__ import annotations

import sys

import pytest

from demur import MissingExtraError, ScoreCallbackHandler


@pytest.mark.parametrize("system", ["phoenix", "mlflow"])
def test_without_its_client_a_sink_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    monkeypatch.setitem(sys.modules, system, None)
    with pytest.raises(MissingExtraError, match=rf"'demur\[{system}\]'"):
        ScoreCallbackHandler(sink=system)
