"""Provide handlers as a user would make them, chains for them, and a sink that keeps records."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough

from demur import Evaluation, Sample, ScoreCallbackHandler, Usage
from demur.observe import Record


def echo(sample: Sample) -> Evaluation:
    """Explain what was given, and pass an answer that contains "good"."""
    said = f"{sample.question}|{sample.answer}|{[c.page_content for c in sample.contexts]}"
    passed = "good" in sample.answer
    return Evaluation(
        name="echo",
        score=float(passed),
        label="x",
        passed=passed,
        explanation=said,
        usage=Usage(calls=2, input_tokens=30),
    )


class Library(BaseRetriever):
    texts: tuple[str, ...] = ("The tower is 84 metres tall.",)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [Document(text) for text in self.texts]


class Records:
    """Keep the records that a handler gives, as a sink."""

    def __init__(self) -> None:
        self._taken: list[Record] = []

    def __call__(self, record: Record) -> None:
        self._taken.append(record)

    @property
    def all(self) -> list[Record]:
        """Return the records in the order in which their runs ended. Scoring may reorder them."""
        return sorted(self._taken, key=lambda record: record.time)

    @property
    def one(self) -> Record:
        (record,) = self.all
        return record


MODES = ("invoke", "ainvoke", "stream", "astream", "batch", "abatch")


def handler_for(*evaluators: Any, **options: Any) -> tuple[ScoreCallbackHandler, Records]:
    """Return a handler and the sink with its records."""
    records = Records()
    return ScoreCallbackHandler(*evaluators, sink=records, **options), records


def run(
    mode: str, chain: Runnable[Any, Any], input: Any, handler: ScoreCallbackHandler, **config: Any
) -> Any:
    """Run the chain in that mode, and wait until the handler has scored everything."""
    given: Any = {"callbacks": [handler], **config}

    async def in_loop() -> Any:
        if mode == "ainvoke":
            output = await chain.ainvoke(input, given)
        elif mode == "astream":
            output = [chunk async for chunk in chain.astream(input, given)]
        else:
            output = await chain.abatch([input], given)
        assert await asyncio.to_thread(handler.flush, 30)
        return output

    if mode in ("ainvoke", "astream", "abatch"):
        return asyncio.run(in_loop())
    if mode == "stream":
        output: Any = [*chain.stream(input, given)]
    elif mode == "batch":
        output = chain.batch([input], given)
    else:
        output = chain.invoke(input, given)
    assert handler.flush(30)
    return output


def rag(answer: str = "A good answer.") -> Runnable[Any, Any]:
    prompt = ChatPromptTemplate.from_template("{context}\n{question}")
    asked = {"context": Library(), "question": RunnablePassthrough()}
    return asked | prompt | FakeListChatModel(responses=[answer]) | (lambda message: message.text)


def nothing_left(handler: ScoreCallbackHandler) -> bool:
    return not len(handler._runs) and not handler.counts.waiting
