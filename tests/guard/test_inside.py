"""Test that listeners which stream to a client hear nothing of what a guard runs."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory

from demur import Evaluation, Guard, Repair, Retrieve, Sample
from demur.guard import Abstain

SECRET = "ЖЩЮ"


class Bare(Runnable[Any, Any]):
    """Run the inner Runnable without passing the config on."""

    def __init__(self, inner: Runnable[Any, Any]) -> None:
        self.inner = inner

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        return self.inner.invoke(input)

    async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        return await self.inner.ainvoke(input)


class Tracer(BaseCallbackHandler):
    """Record outputs, as an ordinary handler."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        self.told.append(outputs)

    def on_llm_end(self, response: Any, **kwargs: Any) -> None:
        self.told.append(response)


def model() -> FakeListChatModel:
    return FakeListChatModel(responses=[SECRET])


def judge(sample: Sample) -> Evaluation:
    model().invoke(sample.answer)
    return Evaluation(name="judge", score=0.0, passed=False)


def find(query: str) -> list[Document]:
    return [Document(model().invoke(query).text)]


async def heard(guarded: Runnable[Any, Any], config: Any = None) -> list[Any]:
    return [event async for event in guarded.astream_events("Why?", config, version="v2")]


@pytest.mark.parametrize("streaming", ["buffer", "sentence"])
@pytest.mark.parametrize("chain", [model(), Bare(model())], ids=["chain", "that passes nothing on"])
async def test_of_all_events_only_the_guards_own_are_heard(chain: Any, streaming: str) -> None:
    class ByClaim(RunnableLambda[Any, Any]):
        claim_level = True

    retrieve = Retrieve(RunnableLambda(find), then=Repair(model()))
    options: Any = {"on_fail": {"any": retrieve, "end": Abstain()}, "streaming": streaming}
    found = Guard(chain, ByClaim(judge), **options)
    tracer = Tracer()
    events = await heard(found, {"callbacks": [tracer]})
    assert SECRET not in repr(events)
    told = {"Guard", "demur.evaluation", "demur.decision", "demur.outcome"}
    assert {event["name"] for event in events} == told
    assert SECRET in repr(tracer.told)


async def test_the_bare_chain_is_heard() -> None:
    assert SECRET in repr(await heard(RunnableLambda(lambda asked: model().invoke(asked))))


@pytest.mark.filterwarnings("ignore:RunnableWithMessageHistory is deprecated")
def test_a_history_inside_is_refused() -> None:
    history = RunnableWithMessageHistory(model(), lambda: InMemoryChatMessageHistory())
    chains: list[Any] = [
        history,
        RunnableLambda(str) | history,
        {"answer": history},
        history.with_config(tags=["one"]),
        history.with_fallbacks([model()]),
        RunnableLambda(lambda asked: history.invoke(asked)),
    ]
    for chain in chains:
        with pytest.raises(ValueError, match=r"RunnableWithMessageHistory\(Guard"):
            Guard(chain, judge)
    RunnableWithMessageHistory(Guard(model(), judge), lambda: InMemoryChatMessageHistory())
