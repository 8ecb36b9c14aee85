"""Test parts of an evaluation that run side by side."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.runnables import RunnableLambda

from demur.runtime import Calls, RunnableCall, Steps, ask_all, drive, side_by_side

ECHO = RunnableLambda(lambda value: value)


def _part(name: int, rounds: list[int]) -> Steps[list[str]]:
    """Ask this many questions in each round, and return all replies."""
    told: list[str] = []
    for at, count in enumerate(rounds):
        wanted = [f"{name}.{at}.{number}" for number in range(count)]
        outcomes = yield from ask_all([RunnableCall(ECHO, value, "echo") for value in wanted])
        assert [outcome.value for outcome in outcomes] == wanted
        told += wanted
    return told


@settings(max_examples=40)
@given(st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=5))
def test_each_part_gets_its_own_outcomes_and_rounds_are_made_together(
    parts: list[list[int]],
) -> None:
    batches = []

    def counted() -> Steps[list[list[str]]]:
        steps = side_by_side([_part(name, rounds) for name, rounds in enumerate(parts)])
        outcomes = None
        while True:
            try:
                effect = steps.send(outcomes)
            except StopIteration as stop:
                return stop.value
            assert isinstance(effect, Calls)
            batches.append(len(effect.calls))
            outcomes = yield effect

    told, _ = drive(counted(), {}, None)
    assert told == [drive(_part(name, rounds), {}, None)[0] for name, rounds in enumerate(parts)]
    # A round without requests does not count.
    asking = [[count for count in rounds if count] for rounds in parts]
    most = max(map(len, asking), default=0)
    assert batches == [
        sum(rounds[at] for rounds in asking if at < len(rounds)) for at in range(most)
    ]
