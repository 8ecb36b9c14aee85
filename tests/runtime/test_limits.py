"""Test what calls share, and that it is freed together with those that shared it."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from demur.runtime import PerModel, ashare, share
from demur.runtime.limits import loop_slot
from support.fakes import ScriptedModel, scripted


@pytest.mark.slow
def test_values_are_kept_for_a_model_while_it_lives() -> None:
    class Value:
        """Be an object whose end a weak reference can see."""

    kept: PerModel[Value] = PerModel()
    model, other = scripted(""), scripted("")
    first = weakref.ref(kept.setdefault(model, "key", Value))
    assert first() is not None
    assert kept.setdefault(model, "key", Value) is first()
    assert kept.setdefault(other, "key", Value) is not first()
    del model
    gc.collect()
    assert first() is None


async def _wait_for_a_slot(model: ScriptedModel) -> weakref.ref[asyncio.AbstractEventLoop]:
    async def call() -> None:
        async with loop_slot(model, 1):
            await asyncio.sleep(0)

    await asyncio.gather(*(call() for _ in range(3)))
    assert await ashare("key", lambda: asyncio.sleep(0, "done")) == ("done", False)
    return weakref.ref(asyncio.get_running_loop())


def test_what_ended_loops_shared_goes() -> None:
    model = scripted("")
    loops = [asyncio.run(_wait_for_a_slot(model)) for _ in range(5)]
    gc.collect()
    # The last loop is remembered until the next one comes.
    assert all(loop() is None for loop in loops[:-1])


def test_a_failure_is_shared_and_then_forgotten() -> None:
    def fail() -> str:
        raise KeyError("no")

    with pytest.raises(KeyError):
        share("key", fail)
    assert share("key", lambda: "fine") == ("fine", False)
