from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_index.core.llms import ChatMessage

from fake_llm import ScriptedCompletions, ScriptedLLM
from llama_index.evaluation.demur._metering import Meter, is_judging, while_judging

ASKED = [ChatMessage("How tall is it?")]


def _llm() -> ScriptedLLM:
    return ScriptedLLM(script=lambda *_: "84 metres.")


@pytest.mark.parametrize("call", ["chat", "stream_complete"])
def test_calls_and_tokens(call: str) -> None:
    with Meter() as meter:
        given: Any = ASKED if "chat" in call else "How tall is it?"
        reply = getattr(_llm(), call)(given)
        if "stream" in call:
            list(reply)
    usage = meter.usage
    assert (usage.calls, usage.input_tokens, usage.output_tokens) == (1, 4, 2)
    assert usage.seconds > 0


def test_a_chat_that_is_a_completion_is_one_call() -> None:
    llm = ScriptedCompletions(script=lambda *_: "84 metres.")
    with Meter() as meter:
        llm.chat(ASKED)
        llm.complete("And how wide?")
    assert meter.usage.calls == 2


def test_calls_that_fail_count() -> None:
    def fail(*_: Any) -> str:
        raise ConnectionError("away")

    llm = ScriptedLLM(script=fail)
    with Meter() as meter, pytest.raises(ConnectionError):
        llm.chat(ASKED)
    with meter, pytest.raises(ConnectionError):
        asyncio.run(llm.achat(ASKED))
    assert (meter.usage.calls, meter.usage.output_tokens) == (2, 0)


async def test_each_meter_counts_its_own() -> None:
    async def spend(calls: int) -> int:
        with Meter() as meter:
            for _ in range(calls):
                await _llm().achat(ASKED)
        return meter.usage.calls

    assert await asyncio.gather(*map(spend, range(20))) == list(range(20))


def test_what_judges_spend_is_not_counted() -> None:
    with Meter() as meter:
        with while_judging():
            assert is_judging()
            _llm().chat(ASKED)
            with Meter() as inner:
                _llm().chat(ASKED)
        assert not is_judging()
        _llm().chat(ASKED)
    assert (meter.usage.calls, inner.usage.calls) == (1, 1)
