"""Test what a guarded call shares with all calls that it causes."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.runtime import Account, Scope, current_scope, within_scope
from demur.runtime.pool import within
from demur.schema import Usage
from support.clock import Clock

CALLS = st.lists(
    st.tuples(
        st.integers(0, 300),  # The reserved tokens.
        st.integers(0, 1),  # The calls that were really made.
        st.integers(0, 300),  # The tokens of the prompt.
        st.integers(0, 300),  # The tokens of the reply.
    )
)


@given(CALLS, st.integers(1, 20), st.integers(1, 1000))
def test_no_call_is_made_that_would_pass_a_limit(
    calls: list[tuple[int, int, int, int]], most: int, tokens: int
) -> None:
    account = Account(model_calls=most, tokens=tokens)
    made = spent = 0
    for reserved, cost, read, written in calls:
        refusal = account.reserve(reserved)
        fits = made < most and spent + reserved <= tokens
        assert (refusal is None) is fits
        if refusal is not None:
            assert account.exhausted in ("model_calls", "tokens")
            assert "is used up" in refusal
            continue
        usage = Usage(
            calls=cost, input_tokens=cost * read, output_tokens=cost * written, cached=1 - cost
        )
        account.settle(reserved, usage)
        made += cost
        spent += cost * ((read + written) or reserved)


def test_what_was_spent_elsewhere_counts() -> None:
    account = Account(model_calls=3)
    account.settle_all(Usage(calls=2))
    assert account.exhausted is None
    assert account.reserve(0) is None
    assert account.exhausted == "model_calls"
    account.settle_all(Usage(calls=1))  # Calls that were counted already are not taken back.
    assert account.exhausted == "model_calls"


def test_time_that_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    account = Account(seconds=60)
    clock.go_on(59)
    assert account.remaining_seconds() == 1
    assert account.exhausted is None
    clock.go_on(2)
    assert account.remaining_seconds() == 0
    assert account.exhausted == "seconds"
    assert account.reserve(0) == "the budget of 60 seconds is used up"
    assert Account(model_calls=1).remaining_seconds() is None


def test_many_threads_do_not_overdraw() -> None:
    account = Account(model_calls=50)
    taken: list[str | None] = []

    def take() -> None:
        for _ in range(20):
            taken.append(account.reserve(0))

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert taken.count(None) == 50


async def test_a_scope_goes_along_into_threads_and_tasks_and_nowhere_else() -> None:
    mine = Scope()
    assert current_scope() is None
    with within_scope(mine):
        assert await asyncio.create_task(_found()) is mine
        assert within(10, current_scope) is mine
        with within_scope(None):
            assert await asyncio.create_task(_found()) is None
        assert current_scope() is mine
    assert current_scope() is None


async def _found() -> Any:
    return current_scope()
