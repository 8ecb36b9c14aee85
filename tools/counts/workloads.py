"""Define the workloads: each evaluator on one answer, the guard and the handler on one question.

Everything is known about items 2 and 3 (see the tests' `facts`): all statements about item 2 are
true, and item 3 is not heavy. Each workload is a line in one of the mappings. Its name is its row
in the table.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from itertools import count
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableGenerator, RunnablePassthrough

from demur import (
    FEWL,
    Cascade,
    Evaluation,
    Guard,
    RefChecker,
    Regenerate,
    Repair,
    Retrieve,
    ReverseValidation,
    Sample,
    ScoreCallbackHandler,
)
from demur.evaluators import (
    CONFIGURATIONS,
    AllFalse,
    AnswerRelevance,
    CallGrounding,
    CitationSupport,
    LMvsLM,
    NeighborStore,
    SelfCheck,
    SelfContradiction,
    ZeroShot,
)
from demur.guard import Feedback, widen
from support import facts
from support.fakes import isolated
from support.streams import by_words

from .seen import Seen

Run = Callable[[], Awaitable[Any]]
Workload = Callable[[Seen], Run]
"""A function that prepares a run, with models that count."""


# --- Evaluators ----------------------------------------------------------------------------------

_PAGE = "Item {0} of the list stands on page {0}, and the page says what item {0} is like. " * 4
SAMPLE = Sample(
    question=facts.question(2),
    answer=f"{facts.answer(2)} {facts.answer(3)}",
    contexts=[_PAGE.format(page) for page in range(3)],
    metadata={"correct": ["Item 2 is red."], "incorrect": ["Item 2 is blue."]},
)
CALL = Sample(
    answer='{"name": "refund", "args": {"order_id": "ORD-48213", "amount": 62.4}}',
    contexts=("Refund 2 of 31.20 in ORD-48231, please.",),
)
CITING = SAMPLE.model_copy(update={"answer": SAMPLE.answer.replace(".", " [1].")})
"""The sample with a citation in each of its four sentences."""
_PAGES = tuple(Document(_PAGE.format(page)) for page in range(30))
LONG = SAMPLE.model_copy(update={"contexts": _PAGES})
"""The sample with references that fill several windows of `_WINDOW` tokens."""
_WINDOW = 800


def _judge(stage: str, messages: Sequence[BaseMessage]) -> str | AIMessage:
    """Judge without mistakes, and agree with every corrected answer and with no wrong answer."""
    if stage != "agreement":
        return facts.judge(stage, messages)
    lines = (line.split(". ", 1) for line in isolated("statements", messages).splitlines())
    return "\n".join(f"{at}. {'yes' if said.startswith('None') else 'no'}" for at, said in lines)


def _neighbors(seen: Seen) -> NeighborStore:
    """Return a store that knows two questions about something else."""
    store = NeighborStore(embedding=seen.embeddings())
    for question in ("Who lit the tower at dawn?", "Who dug the deep well?"):
        store.add(question, ["Ada did.", "Bo did."])
    return store


def _fewl(seen: Seen, **options: Any) -> FEWL:
    given: dict[str, Any] = {"similarity": seen.similarity(), "neighbors": _neighbors(seen)}
    fewl = {"reference_models": seen.model(_judge), "max_neighbor_similarity": 1, **given}
    return FEWL(**{**fewl, **options})


def _by_cosine(seen: Seen) -> FEWL:
    return _fewl(seen, similarity=seen.embeddings())


def _known(seen: Seen) -> FEWL:
    """Return an evaluator that was asked the question before."""
    fewl = _by_cosine(seen)
    fewl.invoke(SAMPLE.model_copy(update={"answer": "Item 2 is blue."}))
    return fewl


def _two_references(seen: Seen) -> FEWL:
    return _fewl(seen, reference_models=[seen.model(), seen.model()])


def _configured(name: str) -> Callable[[Seen], FEWL]:
    return lambda seen: _fewl(seen, **CONFIGURATIONS[name])


def _refchecker(seen: Seen, **options: Any) -> RefChecker:
    return RefChecker(seen.model(), **options)


def _by_windows(seen: Seen) -> RefChecker:
    return _refchecker(seen, claims="sentences", window_tokens=_WINDOW, max_windows=2)


def _by_nli(seen: Seen) -> RefChecker:
    return _refchecker(seen, checker=seen.encoder(), claims="sentences")


def _self_check(method: Any) -> Callable[[Seen], SelfCheck]:
    """Return a function that makes a SelfCheck whose samples all differ.

    Of equal requests at the same time, only one is made.
    """

    def make(seen: Seen) -> SelfCheck:
        numbers = count(1)

        def script(stage: str, messages: Sequence[BaseMessage]) -> str | AIMessage:
            said = facts.judge(stage, messages)
            return f"{said} {next(numbers)} times." if stage == "sample" else said

        model, similarity = seen.model(script), seen.similarity()
        return SelfCheck(model, method=method, similarity=similarity, nli=seen.nli())

    return make


EVALUATORS: Mapping[str, Callable[[Seen], Runnable[Any, Any]]] = {
    "refchecker sentences": lambda seen: _refchecker(seen, claims="sentences"),
    "refchecker triplets": lambda seen: _refchecker(seen, claims="triplets"),
    "refchecker per_claim": lambda seen: _refchecker(seen, checker="per_claim"),
    "refchecker logprobs": lambda seen: _refchecker(seen, checker="logprobs"),
    "refchecker nli": _by_nli,
    "cascade nli, joint": lambda seen: Cascade([_by_nli(seen), _refchecker(seen)]),
    "reverse validation qg": lambda seen: ReverseValidation(seen.model()),
    "reverse validation em": lambda seen: ReverseValidation(seen.model(), variant="em"),
    "zero-shot": lambda seen: ZeroShot(seen.model()),
    "lm vs lm": lambda seen: LMvsLM(seen.model()),
    "self-check embedding": _self_check("embedding"),
    "self-check nli": _self_check("nli"),
    "self-check prompt": _self_check("prompt"),
    "self-check ngram": _self_check("ngram"),
    "citation support": lambda seen: CitationSupport(_refchecker(seen, claims="sentences")),
    "answer relevance": lambda seen: AnswerRelevance(seen.model()),
    "self-contradiction": lambda seen: SelfContradiction(seen.model()),
    "all false": lambda seen: AllFalse(),
    "call grounding": lambda seen: CallGrounding(),
    "fewl by cosine": _by_cosine,
    "fewl by cosine, known question": _known,
    "fewl by another similarity": _fewl,
    "fewl, two references": _two_references,
    **{
        f"fewl as {name}": _configured(name)
        for name in (
            "single",
            "single-penalty",
            "single-best",
            "multi",
            "multi-weighted",
            "fewl",
            "fewl-uniform",
            "fewl-ideal",
            "fewl-agreement",
        )
    },
}
"""The evaluators, each of which judges `SAMPLE`. A new class needs a line here, or the comparison
fails."""


def _evaluates(make: Callable[[Seen], Runnable[Any, Any]], sample: Sample) -> Workload:
    def prepare(seen: Seen) -> Run:
        evaluator = make(seen)

        async def run() -> Evaluation:
            return _decided(await evaluator.ainvoke(sample))

        return run

    return prepare


def _decided(found: Evaluation) -> Evaluation:
    """Return the evaluation if it is determined, because a run that fails early costs little.

    Raises:
        ValueError: The evaluation is undetermined.
    """
    if found.undetermined:
        raise ValueError(f"expected an evaluation that decides, got: {found.error}")
    return found


# --- Guards and handlers -------------------------------------------------------------------------

_PROMPT = ChatPromptTemplate.from_template("From {context} answer: {question}")
_RIGHT, _WRONG = 2, 3
"""The numbers of two items. The chain says of each that it is red and heavy."""


class _Shelf(BaseRetriever):
    """Retrieve a different document for each query."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [Document(f"Found for {query}: {_PAGE.format(7)}")]


def _speak(stage: str, messages: Sequence[BaseMessage]) -> str:
    """Reply as the chain's model, which answers rightly once it is told what was wrong.

    It is told when it reads what was retrieved for failed claims, and when it repairs an answer.
    """
    told = stage == "repair" or "Found for Item" in str(messages[-1].content)
    return facts.answer(_RIGHT) if told else facts.speak(stage, messages)


def _tell(given: str, feedback: Feedback) -> str:
    return f"{facts.question(_RIGHT)} {feedback.text}"


async def _words(texts: AsyncIterator[str]) -> AsyncIterator[str]:
    async for text in texts:
        for word in by_words(text):
            yield word


def _chain(seen: Seen, retriever: BaseRetriever | None = None) -> Runnable[Any, Any]:
    found = {"context": retriever or _Shelf(), "question": RunnablePassthrough()}
    return found | _PROMPT | seen.model(_speak) | StrOutputParser()


def _guard(seen: Seen, chain: Runnable[Any, Any] | None = None, **options: Any) -> Guard[Any, Any]:
    checker = _refchecker(seen, claims="sentences")
    return Guard(chain or _chain(seen), checker, **options)


def _calls(item: int, **options: Any) -> Workload:
    def prepare(seen: Seen) -> Run:
        guard = _guard(seen, **options).with_trace()
        return lambda: guard.ainvoke(facts.question(item))

    return prepare


def _repairs(seen: Seen) -> Run:
    guard = _guard(seen, on_fail=Repair(seen.model(_speak))).with_trace()
    return lambda: guard.ainvoke(facts.question(_WRONG))


def _searches(seen: Seen) -> Run:
    wide = widen(_Shelf())
    guard = _guard(seen, _chain(seen, wide), on_fail={"any": Retrieve(wide)}).with_trace()
    return lambda: guard.ainvoke(facts.question(_WRONG))


def _streams(seen: Seen) -> Run:
    chain = _chain(seen) | RunnableGenerator(_words)
    guard = _guard(seen, chain, streaming="sentence")

    async def run() -> Any:
        return [chunk async for chunk in guard.astream(facts.question(_RIGHT))]

    return run


def _handles(seen: Seen) -> Run:
    """Return a run of which only the handler's part in the chain counts as allocated.

    The handler judges the answer after the chain has ended.
    """
    chain, records = _chain(seen), []
    checker, ended = _refchecker(seen, claims="sentences"), threading.Event()

    def judge(sample: Sample) -> Evaluation:
        _wait(ended.wait)
        return _decided(checker.invoke(sample))

    handler = ScoreCallbackHandler(judge, sink=records.append)

    async def run() -> Any:
        output = await chain.ainvoke(facts.question(_WRONG), {"callbacks": [handler]})
        ended.set()
        await asyncio.to_thread(_wait, handler.flush)
        return output, records

    return run


def _wait(wait: Callable[[float], bool]) -> None:
    if not wait(60):
        raise TimeoutError("the handler did not come to an end within a minute")


WORKLOADS: Mapping[str, Workload] = {
    "guard passes": _calls(_RIGHT),
    "guard refuses": _calls(_WRONG),
    "guard, regenerated": _calls(_WRONG, on_fail=Regenerate(_tell)),
    "guard, repaired": _repairs,
    "guard, retrieved again": _searches,
    "guard, sentences streamed": _streams,
    "handler": _handles,
    "refchecker long references": _evaluates(_by_windows, LONG),
    **{name: _evaluates(make, SAMPLE) for name, make in EVALUATORS.items()},
    "citation support": _evaluates(EVALUATORS["citation support"], CITING),
    "call grounding": _evaluates(EVALUATORS["call grounding"], CALL),
}
