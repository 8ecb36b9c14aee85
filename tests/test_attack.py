"""Test that the attack in `tools/` finds no leak, and finds leaks once the guard is taken away."""

from __future__ import annotations

import importlib
import os
import warnings

import pytest
from tools.attack import truth
from tools.attack.sections import SECTIONS
from tools.attack.truth import Tally

from support.waiting import PATIENCE

pytestmark = [
    pytest.mark.slow,
    # Each try of an attack has a limit of its own, by the one alarm of this process.
    pytest.mark.timeout(0),
    pytest.mark.skipif(os.name == "nt", reason="no alarms on Windows"),
]


def _attack(section: str, monkeypatch: pytest.MonkeyPatch, *, guarded: bool) -> list[Tally]:
    module, _, quick, _ = SECTIONS[section]
    attack = importlib.import_module(f"tools.attack.{module}")
    monkeypatch.setattr(truth, "LIMIT", PATIENCE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # A quarter of so few tries would be too few to see how often an attack succeeds.
        tallies = [*attack.attack(quick // 4 if guarded else quick, seed=0, guarded=guarded)]
    # Whether the time grows with the length alone is measured, and not tested.
    return [tally for tally in tallies if not tally.what.startswith("chunks: long answers")]


@pytest.mark.parametrize("section", ["guards", "beside", "chunks", "edits"])
def test_nothing_gets_out_is_wrong_or_hangs(section: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tallies = _attack(section, monkeypatch, guarded=True)
    assert tallies
    for tally in tallies:
        assert tally.tried > 0
        assert tally.bad == 0, "\n".join(tally.lines(3))


@pytest.mark.parametrize("section", ["guards", "chunks", "edits"])
def test_without_the_guard_it_does(section: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Show that the attack can succeed: one that cannot proves nothing."""
    for tally in _attack(section, monkeypatch, guarded=False):
        leaks, wrong, hung = (one.total() for one in tally.found.values())
        assert leaks > tally.tried / 4 > 0, "\n".join(tally.lines(3))
        assert (wrong, hung) == (0, 0), "\n".join(tally.lines(3))
