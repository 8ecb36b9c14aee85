"""Test adding and rescoring many questions: nothing is paid for twice, no scores are mixed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from demur import FEWL, ExampleStore
from demur.errors import DemurError
from demur.evaluators import Fitted
from exemplars.conftest import Open
from support.exemplars import answers, best, contrary, scored, scorer, stale
from support.fakes import isolated
from support.fewl import ANSWERS, model
from support.vectors import Told

pytest.importorskip("chromadb")

QUESTIONS = [f"1 {at} | what of item {at}?" for at in range(8)]
OFFERS = [(question, ["0.2 no", "0.8 yes"]) for question in QUESTIONS]


def made(given: FEWL | None = None) -> ExampleStore:
    return ExampleStore(embedding=Told(), scorer=given)


# --- Many -----------------------------------------------------------------------------------------


def test_all_are_scored_and_then_known() -> None:
    asked = model()
    given = scorer(reference_models=asked)
    store, told = made(given), list[Fitted]()
    found = store.add_many(iter(OFFERS), source="run 1", at_once=3, progress=told.append)
    assert (found.questions, found.done, found.failed, found.usage.calls) == (8, 8, (), 8)
    assert [one.done for one in told] == [one.usage.calls for one in told] == list(range(9))
    assert {best(store, question) for question in QUESTIONS} == {"0.8 yes"}
    entry = store.get(QUESTIONS[3])
    assert entry is not None
    assert [(one.source, one.score) for one in entry.all] == [
        ("run 1", pytest.approx(scored(0.8))),
        ("run 1", pytest.approx(scored(0.2))),
    ]
    again = store.add_many([*OFFERS, (QUESTIONS[0], ["0.9 surely"])])
    assert (again.questions, again.done, again.usage.calls) == (8, 8, 0)
    assert given.similarity.asked == 2 * 2 * 8 + 2
    assert answers(store.get(QUESTIONS[0])) == ["0.9 surely", "0.8 yes", "0.2 no"]
    assert asked.stages == ["reference"] * 8


def test_without_a_scorer_scores_are_enough() -> None:
    store = made()
    assert store.add_many([]) == Fitted(0)
    found = store.add_many([("q", ["a"], [1])])
    assert (found.questions, found.done) == (1, 1)
    kept = store.get("q")
    assert store.add_many([(" q", ["a"], [1])], source="again").done == 1
    assert store.get("q") == kept  # The source is unchanged too.
    with pytest.raises(DemurError, match=r"no scorer for the answers to 'r': give scores, or"):
        store.add_many([("p", ["a"], [1]), ("r", ["a"])])
    assert len(store) == 1


def test_what_failed_is_told_and_tried_again() -> None:
    bad = {QUESTIONS[3], QUESTIONS[5]}

    def moody(messages: Sequence[BaseMessage]) -> str | Exception:
        return ValueError("not this one") if isolated("question", messages) in bad else ANSWERS

    store = made(scorer(reference_models=model(reference=moody)))
    offers: list[Any] = [*OFFERS, (QUESTIONS[0], ["no grade"])]
    found = store.add_many(offers)
    assert (found.questions, found.done) == (8, 5)
    failed = dict(found.failed)
    assert failed.keys() == {QUESTIONS[0], *bad}
    assert re.match("the answer 'no grade' could not be scored: the simil", failed[QUESTIONS[0]])
    assert all(failed[one].count("not this one") == 2 for one in bad)
    assert len(store) == 6
    assert answers(store.get(QUESTIONS[0])) == ["0.8 yes", "0.2 no"]
    bad.clear()
    again = store.add_many(OFFERS)
    assert (again.done, again.failed, again.usage.calls) == (8, (), 2)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupt_keeps_what_was_scored(error: type[BaseException]) -> None:
    def interrupt(now: Fitted) -> None:
        if now.done == 3:
            raise error

    given = scorer()
    store = made(given)
    with pytest.raises(error):
        store.add_many(OFFERS, at_once=2, progress=interrupt)
    # At most two others were begun. They may still be under way.
    assert 3 * 4 <= given.similarity.asked <= (3 + 2) * 4
    assert 3 <= len(store) <= 5
    # Another process, or a later one, goes on.
    found = store.add_many(OFFERS)
    assert (found.done, found.failed) == (8, ())
    # Only the answers that were under way, and so not kept, are scored again.
    assert given.similarity.asked <= (8 + 2) * 4
    assert {best(store, question) for question in QUESTIONS} == {"0.8 yes"}


def test_bad_offers_are_refused_before_anything_is_added() -> None:
    given = scorer()
    store = made(given)
    for offers, options, message in [
        ([*OFFERS, ("q", ["a"], [1]), ("q", "a")], {}, "offer 9: expected a list of answers"),
        ([*OFFERS, ("q", ["a"], [1])], {"at_once": 0}, "at_once must be at least 1, got 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            store.add_many(offers, **options)
    assert (len(store), given.similarity.asked) == (0, 0)


# --- Whose scores count ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("anywhere", ["folder", "server"], indirect=True)
def test_another_scorer_is_refused_until_all_is_scored_anew(anywhere: Open) -> None:
    first = anywhere(scorer())
    first.add_many(OFFERS, source="run 1")
    given = scorer(contrary)
    other = anywhere(given)
    refused = r"scores of another scorer count: .*graded.* and this one's are of .*contrary.*"
    with pytest.raises(DemurError, match=rf"{refused}call rescore\(\)"):
        other.add_many(OFFERS)
    for use in (
        lambda: other.add(QUESTIONS[0], ["0.9 surely"]),
        lambda: other.add("q", ["a"], [1]),
        lambda: other.nearest("0 1 | q", 1),
    ):
        with pytest.raises(DemurError, match=rf"{refused}call rescore\(\)"):
            use()
    assert given.similarity.asked == 0
    # A store without a scorer can read by those scores, but it cannot add answers.
    reader = anywhere()
    assert reader.nearest("0 1 | q", 1)[0].answer == "0.8 yes"
    with pytest.raises(DemurError, match=rf"{refused.replace('contrary', 'the caller')}open it"):
        reader.add("q", ["a"], [1])
    found = other.rescore()
    assert (found.questions, found.done, found.failed, found.usage.calls) == (8, 8, (), 8)
    for store in (other, anywhere(), reader, first):  # The last two stores were opened before.
        assert {best(store, question) for question in QUESTIONS} == {"0.2 no"}
        entry = store.get(QUESTIONS[0])
        assert entry is not None
        assert [one.source for one in entry.all] == ["run 1", "run 1"]
        assert entry.stale == ()
    assert reader.nearest("0 1 | q", 1)[0].answer == "0.2 no"
    assert other.rescore().questions == 0
    assert given.similarity.asked == 8 * 4


def test_scores_that_were_given_are_scored_anew(tmp_path: Path) -> None:
    by_hand = ExampleStore(tmp_path, embedding=Told())
    by_hand.add_many(
        [
            (QUESTIONS[0], ["0.2 no", "0.8 yes"], [5, 4]),
            (QUESTIONS[1], ["0.5 yes", "no grade"], [1, -2]),
            (QUESTIONS[2], ["none"], [-3]),
        ]
    )
    with pytest.raises(DemurError, match=r"rescore\(\) needs a scorer: ExampleStore\(\.\.\., scor"):
        by_hand.rescore()
    store = ExampleStore(tmp_path, embedding=Told(), scorer=scorer())
    with pytest.raises(ValueError, match="at_once must be at least 1, got 0"):
        store.rescore(at_once=0)
    with pytest.raises(DemurError, match="by the caller"):  # The given scores still count.
        store.add(QUESTIONS[0], ["0.9"])
    found = store.rescore()
    assert (found.questions, found.done) == (3, 1)
    assert answers(store.get(QUESTIONS[0])) == ["0.8 yes", "0.2 no"]
    # What cannot be scored anew stays, and does not compete.
    assert dict(found.failed).keys() == {QUESTIONS[1], QUESTIONS[2]}
    entry = store.get(QUESTIONS[1])
    assert entry is not None
    assert [one.answer for one in entry.candidates] == ["0.5 yes"]
    assert [one.answer for one in entry.stale] == ["no grade"]
    assert {one.question for one in store.nearest("0 1 | r", 9)} == {*QUESTIONS[:2]}
    assert stale(store) == 2
    by_hand.close()
    store.close()


@pytest.mark.slow
def test_a_rescore_that_is_interrupted_mixes_no_scores_and_goes_on(tmp_path: Path) -> None:
    first = ExampleStore(tmp_path, embedding=Told(), scorer=scorer())
    first.add_many(OFFERS)
    store = ExampleStore(tmp_path, embedding=Told(), scorer=scorer(contrary))

    def interrupt(now: Fitted) -> None:
        if now.done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.rescore(at_once=1, progress=interrupt)
    reader = ExampleStore(tmp_path, embedding=Told())
    for one in (store, reader):
        entries = list(one.entries())
        assert sum(entry.best is not None for entry in entries) == 3
        assert sum(len(entry.candidates) for entry in entries) == 2 * 3
        assert stale(one) == 2 * 5
        near = one.nearest("0 1 | q", 9)
        assert [found.answer for found in near] == ["0.2 no"] * 3
    # New answers are accepted in the meantime, even for a question that waits for its scores.
    waiting = next(entry.question for entry in store.entries() if entry.best is None)
    store.add(waiting, ["0.5 may be"])
    assert best(store, waiting) == "0.5 may be"
    with pytest.raises(DemurError, match=r"call rescore\(\)"):
        first.add(waiting, ["0.6"])
    found = store.rescore()
    assert (found.questions, found.done) == (5, 5)
    assert stale(store) == 0
    assert answers(store.get(waiting)) == ["0.2 no", "0.5 may be", "0.8 yes"]
    for one in (first, store, reader):
        one.close()
