"""Answer questions by a chain for retrieval-augmented generation, with and without a guard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig, RunnablePassthrough

from demur import Guard, Repair, Retrieve, widen
from demur.guard import Attempt
from demur_research.bench import Bench, Done
from demur_research.tables.checkers import judge
from demur_research.tables.guarded.questions import Asked, Mark

_FOUND = 3
"""The number of passages that are found for a question."""
_LONGEST = 60
"""The most tokens of an answer."""
_PLAIN = "You answer the questions of customers and readers, each in one short, complete sentence."
_CAREFUL = (
    f"{_PLAIN} Use nothing but the texts above the question. If they do not tell the answer, reply "
    "only: I don't know."
)


@dataclass(frozen=True)
class Arm:
    """Describe one way to have questions answered."""

    careful: bool = False
    """Whether the prompt asks for answers from the texts alone."""
    judge: str | None = None
    """The judge of the guard, as `checkers.judge` takes it; None: there is no guard."""
    recovers: bool = False
    """Whether the guard has an answer that fails answered again, and does not refuse at once."""


_JUDGES = ("small", "local", "cascade")
ARMS = {
    "no guard": Arm(),
    "careful prompt": Arm(careful=True),
    "careful prompt with local": Arm(careful=True, judge="local"),
    **{name: Arm(judge=name) for name in _JUDGES},
    **{f"{name} with recoveries": Arm(judge=name, recovers=True) for name in _JUDGES},
}


@dataclass(frozen=True)
class Answered:
    """Hold what became of a question."""

    asked: Asked
    text: str
    """What was delivered."""
    mark: Mark
    """What that is."""
    there: bool
    """Whether the passages that the chain found first hold the answer."""
    attempts: tuple[Attempt, ...] = ()
    """The answers that the guard judged, in their order; empty without a guard."""

    @property
    def score(self) -> float | None:
        """Return the score that the guard's judge gave the chain's own answer, if it gave one."""
        return self.attempts[0].evaluations[0].score

    @cached_property
    def own(self) -> Mark:
        """Return what the chain's own answer is."""
        return self.asked.mark(self.attempts[0].answer) if self.attempts else self.mark

    def at(self, limit: float) -> Mark:
        """Return what a guard delivers that refuses the chain's own answer below this score."""
        return self.own if (self.score or 0) >= limit else "refused"


def index(bench: Bench, passages: Sequence[str]) -> BaseRetriever:
    """Return a retriever that finds passages in a Chroma in memory."""
    # Here, because they load slowly, and other tables do without them.
    import chromadb
    from langchain_chroma import Chroma

    # Searched as widely as this, the index is exact: it finds the same on every machine.
    exact = {"hnsw": {"space": "cosine", "ef_search": len(passages), "num_threads": 1}}
    # With Chroma's own settings, since a process can have no others beside them.
    client = chromadb.EphemeralClient()
    store = Chroma("guarded", bench.embedding, client=client, collection_configuration=exact)
    store.reset_collection()
    store.add_texts(list(passages))
    retriever: BaseRetriever = store.as_retriever(search_kwargs={"k": _FOUND})
    return retriever


def answers(
    bench: Bench, name: str, asked: Sequence[Asked], retriever: BaseRetriever
) -> list[Done[Answered]]:
    """Return what becomes of each question in an arm, with its cost."""
    arm = ARMS[name]
    wide = widen(retriever)
    chain = _chain(bench, wide, _CAREFUL if arm.careful else _PLAIN)
    if arm.judge is None:
        return bench.each(name, asked, lambda one, config: _alone(chain, one, config))
    recoveries = {"neutral": Retrieve(wide), "any": Repair(bench.model)}
    guard = Guard(chain, judge(bench, arm.judge), on_fail=recoveries if arm.recovers else "abstain")
    return bench.each(name, asked, lambda one, config: _guarded(guard, one, config))


def _chain(bench: Bench, retriever: BaseRetriever, system: str) -> Runnable[str, dict[str, Any]]:
    messages = [("system", system), ("human", "{texts}\n\nQuestion: {question}")]
    joined = RunnablePassthrough.assign(texts=lambda known: "\n\n".join(_texts(known["context"])))
    model = bench.model.bind(max_tokens=_LONGEST)
    answer = joined | ChatPromptTemplate.from_messages(messages) | model | StrOutputParser()
    found = {"context": retriever, "question": RunnablePassthrough()}
    return found | RunnablePassthrough.assign(answer=answer)


def _texts(documents: Sequence[Document]) -> list[str]:
    return [document.page_content for document in documents]


def _alone(chain: Runnable[str, dict[str, Any]], one: Asked, config: RunnableConfig) -> Answered:
    output = chain.invoke(one.question, config)
    text, found = output["answer"], _texts(output["context"])
    return Answered(one, text, one.mark(text), one.is_answered_by(found))


def _guarded(guard: Guard[str, Any], one: Asked, config: RunnableConfig) -> Answered:
    result = guard.with_trace().invoke(one.question, config)
    text, attempts = result.output["answer"], result.trace.attempts
    refused = result.trace.outcome in ("abstained", "evaluator_failed")
    there = one.is_answered_by(_texts(attempts[0].contexts))
    return Answered(one, text, "refused" if refused else one.mark(text), there, attempts)
