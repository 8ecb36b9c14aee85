"""Test that pairs are scored once, in batches, for all callers, and that scores are checked."""

from __future__ import annotations

import math
import pickle
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from demur import DemurError
from demur.similarity import Pair, Similarity
from demur.similarity import pairs as module
from support.waiting import until, wait


def shared(pairs: list[Pair]) -> list[float]:
    """Score by the share of the premise's letters that the hypothesis has."""
    return [
        sum(letter in hypothesis for letter in premise) / max(1, len(premise))
        for premise, hypothesis in pairs
    ]


class Recorder:
    """Score pairs and record the batches."""

    def __init__(self, score: Callable[[list[Pair]], Any] = shared) -> None:
        self.batches: list[list[Pair]] = []
        self._score = score

    def __call__(self, pairs: list[Pair]) -> Any:
        self.batches.append(list(pairs))
        return self._score(pairs)

    @property
    def scored(self) -> list[Pair]:
        return [pair for batch in self.batches for pair in batch]


def similarity(score: Callable[[list[Pair]], Any], **options: Any) -> Similarity:
    return Similarity(score, "test", "test-1", **options)


def test_each_pair_is_scored_once_in_batches_by_length_and_the_order_is_kept() -> None:
    recorder = Recorder()
    asked = [("abcd", "b"), ("a", "a"), ("ab", "c"), ("a", "a"), ("abcd", "b"), ("abc", "bc")]
    found = similarity(recorder, batch_size=2).scores(asked)
    assert found.tolist() == shared(asked)
    assert found.dtype == np.float64
    assert recorder.batches == [[("a", "a"), ("ab", "c")], [("abcd", "b"), ("abc", "bc")]]


def test_premise_and_hypothesis_change_places_only_where_that_is_the_same() -> None:
    for symmetric, scored in ((False, 2), (True, 1)):
        recorder = Recorder(lambda pairs: [0.5] * len(pairs))
        similarity(recorder, symmetric=symmetric).scores([("b", "a"), ("a", "b")])
        assert len(recorder.scored) == scored


def test_what_was_scored_last_is_remembered_and_no_more_than_that() -> None:
    recorder = Recorder()
    memory = similarity(recorder, kept=2)
    first, second, third = ("a", "a"), ("b", "a"), ("c", "a")
    memory.scores([first, second])
    memory.scores([first])
    memory.scores([third])  # It replaces the second pair.
    assert recorder.scored == [first, second, third]
    memory.scores([first, third])
    assert recorder.scored == [first, second, third]
    assert memory.scores([second]).tolist() == shared([second])
    assert recorder.scored == [first, second, third, second]
    assert (memory.asked, memory.evaluated) == (7, 4)


@pytest.mark.parametrize("kept", [0, 1000])
def test_a_long_call_goes_in_blocks_and_still_scores_each_pair_once(
    kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BLOCK", 10)
    recorder = Recorder()
    asked = [(str(at % 37), "1") for at in range(200)]
    found = similarity(recorder, kept=kept).scores(asked)
    assert found.tolist() == shared(asked)
    assert len(recorder.scored) == len(set(recorder.scored)) == 37
    assert max(map(len, recorder.batches)) <= 10


def test_lone_surrogates_reach_no_scorer() -> None:
    recorder = Recorder()
    found = similarity(recorder).scores([("a\ud800", "b"), ("a\ufffd", "b")])
    assert recorder.scored == [("a\ufffd", "b")]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "returned",
    [
        *([0.5], [0.1, math.nan], [0.1, 1.1], [-0.01, 0.1], None, ["a", "b"], [[0.1], [0.2]]),
    ],
    ids=repr,
)
def test_what_is_no_number_in_the_range_for_each_pair_is_refused(returned: Any) -> None:
    asked = [("a", "b"), ("c", "d")]
    with pytest.raises(DemurError, match=r"the similarity returned .* expected"):
        similarity(lambda _: returned).scores(asked)


def test_the_pair_and_its_score_are_named() -> None:
    with pytest.raises(DemurError, match=r"returned 2\.0 for the pair \('ab', 'cd'\)"):
        similarity(lambda pairs: [2.0 if pair[0] == "ab" else 0 for pair in pairs]).scores(
            [("a", "b"), ("ab", "cd")]
        )


def test_it_is_pickled_without_what_it_remembers() -> None:
    one = similarity(shared, batch_size=3, symmetric=True)
    one.scores([("a", "b")])
    other = pickle.loads(pickle.dumps(one))
    assert other.given == one.given
    assert other.evaluated == 0
    assert other.scores([("ab", "b")]).tolist() == [0.5]


# --- Threads -----------------------------------------------------------------------------------


class Held:
    """Hold the first batch until other callers wait; `fails` may raise for some pairs."""

    def __init__(self, waiting: int, fails: Callable[[list[Pair]], None] = lambda _: None) -> None:
        self.begun = threading.Event()
        self.recorder = Recorder()
        self.of: Similarity | None = None
        self._waiting, self._fails = waiting, fails

    def __call__(self, pairs: list[Pair]) -> Any:
        first = not self.recorder.batches
        scores = self.recorder(pairs)
        if first:
            self.begun.set()
            assert self.of is not None
            queue = self.of._waiting
            until(lambda: len(queue) > self._waiting)  # The queue also has this batch's caller.
        self._fails(pairs)
        return scores


def ask_together(held: Held, first: Sequence[Pair], *others: Sequence[Pair], **options: Any) -> Any:
    """Ask for `first`, and for the others while it is being scored, each in its own thread."""
    held.of = similarity(held, **options)
    with ThreadPoolExecutor(len(others) + 1) as pool:
        futures: list[Future[Any]] = [pool.submit(held.of.scores, first)]
        wait(held.begun)
        futures += [pool.submit(held.of.scores, other) for other in others]
    return futures


def test_what_is_asked_meanwhile_is_scored_together_and_once() -> None:
    held = Held(3)
    asked = [[("a", "a")], [("b", "a"), ("x", "x")], [("x", "x"), ("a", "a")], [("c", "a")]]
    futures = ask_together(held, *asked)
    assert [future.result().tolist() for future in futures] == [shared(pairs) for pairs in asked]
    first, second = held.recorder.batches
    assert first == [("a", "a")]
    assert sorted(second) == [("b", "a"), ("c", "a"), ("x", "x")]
    assert not held.of._waiting


def test_an_error_reaches_those_whose_pairs_were_in_the_batch_and_no_others() -> None:
    def fail(pairs: list[Pair]) -> None:
        if ("bad", "") in pairs:
            raise RuntimeError("out of memory")

    good, bad, mixed = [("good", "")], [("bad", "")], [("good", ""), ("bad", "")]
    held = Held(3, fail)
    first, *futures = ask_together(held, [("a", "a")], good, bad, mixed, batch_size=1)
    assert first.result().tolist() == [1.0]
    assert futures[0].result().tolist() == shared(good)
    for failed in futures[1:]:
        with pytest.raises(RuntimeError, match="out of memory"):
            failed.result()
    assert held.of is not None
    assert held.of.scores(good).tolist() == shared(good)


def test_an_interrupt_of_the_thread_that_scores_leaves_nobody_waiting() -> None:
    def interrupt(pairs: list[Pair]) -> None:
        if pairs == [("a", "a")]:
            raise KeyboardInterrupt

    held = Held(2, interrupt)
    first, *others = ask_together(held, [("a", "a")], [("b", "b")], [("c", "c")])
    with pytest.raises(KeyboardInterrupt):
        first.result()
    assert [other.result().tolist() for other in others] == [[1.0], [1.0]]
    assert held.of is not None
    assert not held.of._waiting
