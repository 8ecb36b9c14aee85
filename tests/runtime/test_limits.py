"""What is shared by calls, and that it goes with those who shared it."""

from __future__ import annotations

import asyncio
import gc

import pytest

from demur.runtime import PerModel, ashare, limits, share
from demur.runtime.limits import loop_slot, thread_slot
from support.fakes import ScriptedModel, scripted


@pytest.mark.slow
def test_values_are_kept_for_a_model_while_it_lives() -> None:
    kept: PerModel[str] = PerModel()
    model, other = scripted(""), scripted("")
    assert kept.get(model, "key") is None
    assert kept.setdefault(model, "key", lambda: "first") == "first"
    assert kept.setdefault(model, "key", lambda: "second") == "first"
    assert kept.get(model, "key") == "first"
    assert kept.get(other, "key") is None
    del model
    gc.collect()
    assert not kept._values


@pytest.mark.parametrize("limit", [1, 3])
def test_a_slot_is_one_of_so_many(limit: int) -> None:
    model = scripted("")
    slots = thread_slot(model, limit)
    assert thread_slot(model, limit) is slots
    assert thread_slot(scripted(""), limit) is not slots
    assert thread_slot(model, limit + 1) is not slots


async def _wait_for_a_slot(model: ScriptedModel) -> None:
    async def call() -> None:
        async with loop_slot(model, 1):
            await asyncio.sleep(0)

    await asyncio.gather(*(call() for _ in range(3)))
    assert await ashare("key", lambda: asyncio.sleep(0, "done")) == ("done", False)


def test_what_ended_loops_shared_goes() -> None:
    model = scripted("")
    for _ in range(5):
        asyncio.run(_wait_for_a_slot(model))
    assert len([loop for loop in limits._loops if loop.is_closed()]) == 1  # until the next comes


def test_a_failure_is_shared_and_then_forgotten() -> None:
    def fail() -> str:
        raise KeyError("no")

    with pytest.raises(KeyError):
        share("key", fail)
    assert share("key", lambda: "fine") == ("fine", False)
