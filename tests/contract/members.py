"""Who has to keep to the contract. A new evaluator joins by a line in `EVALUATORS`.

All is at module level, so that members can be pickled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    Runnable,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)

from demur import (
    FEWL,
    Annotate,
    Budget,
    Cascade,
    Claim,
    ClaimLabel,
    Evaluation,
    Guard,
    RefChecker,
    ReverseValidation,
    Sample,
)
from demur.evaluators.baselines import AllFalse, LMvsLM, SelfCheck, ZeroShot
from demur.evaluators.fewl import NeighborStore
from demur.guard import Feedback, Guarded, widen
from demur.guard.recovery import REFUSAL
from support import facts
from support.fakes import ScriptedModel


@dataclass(frozen=True)
class Member:
    """A Runnable, and what is known of its inputs and outputs."""

    name: str
    make: Callable[[], Runnable[Any, Any]]
    give: Callable[[int], Any]
    """The input about item `n`."""
    essence: Callable[[Any], Any]
    """What of an output must be the same each time."""
    good: Callable[[int, Any], bool]
    """Whether an output is what the input about item `n` has to give."""
    bad_input: Any
    """An input that raises."""
    complaint: str
    """What the error says of it."""
    asks: bool = True
    """Whether it asks a model."""
    tasks: int = 500
    """How many tasks call it at once. `_FEWER` where another one of its class has 500."""


_FEWER = 100


# --- Evaluators -------------------------------------------------------------------------------


def _evaluation(found: Evaluation) -> Any:
    """All of it but what it cost."""
    return found.model_dump(exclude={"usage": True, "details": {"usage_by_stage"}})


def _right(number: int, found: Evaluation) -> bool:
    return facts.grade(number, found) == "right"


def _refchecker(checker: str) -> RefChecker:
    return RefChecker(ScriptedModel(script=facts.judge), checker=checker)


def _cascade() -> Runnable[Any, Any]:
    # The first stage is 98 percent sure of each claim, so that the second has to be asked too.
    return Cascade([_refchecker("logprobs"), _refchecker("joint")], sure=0.99)


def _evaluator(name: str, make: Callable[[], Runnable[Any, Any]]) -> Member:
    return Member(name, make, facts.sample, _evaluation, _right, {"contexts": []}, "answer")


class _Apart(Embeddings):
    """All items are as alike as paraphrases, and like nothing else."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.0] if "item" in text else [0.0, 1.0] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class _Beginning(NeighborStore):
    """A store in memory whose copies begin as it did: with two questions about something else.

    These stay the only neighbours, however many items are asked for in the meantime.
    """

    def __init__(self) -> None:
        super().__init__(embedding=_Apart())
        for question in ("Who lit the tower?", "Who dug the well?"):
            self.add(question, ["Ada.", "Bo."])

    def __reduce__(self) -> tuple[Any, ...]:
        return _Beginning, ()


def _fewl(several: bool) -> FEWL:
    lone = ScriptedModel(script=facts.judge)
    return FEWL(
        [lone, ScriptedModel(script=facts.judge)] if several else lone,
        similarity=facts.alike,
        n_answers=2,
        k_neighbors=2,
        penalty=several,
        neighbors=_Beginning(),
        threshold=0.2,
    )


def _is_scored(penalty: bool, number: int, found: Evaluation) -> bool:
    expected = facts.fewl_score(number, penalty)
    return (
        found.score is not None
        and math.isclose(found.score, expected, rel_tol=0, abs_tol=1e-12)
        and found.passed is (expected >= 0.2)
        and all(f"item {number} " in said.lower() for said in found.details["answers"])
        and found.details["warnings"] == []
    )


def _scored(name: str, several: bool) -> Member:
    member = _evaluator(name, partial(_fewl, several))
    return replace(member, good=partial(_is_scored, several))


def _reverse_validation(variant: Literal["qg", "em"]) -> ReverseValidation:
    return ReverseValidation(ScriptedModel(script=facts.judge), variant=variant)


def _is_validated(variant: str, number: int, found: Evaluation) -> bool:
    share = facts.supported(number) / len(facts.ATTRIBUTES)
    unmet = facts.ATTRIBUTES[facts.supported(number) :] if variant == "em" else ()
    return (
        found.score == (share if variant == "em" else float(share == 1))
        and found.passed is (share == 1)
        and found.details["entity"] == f"item {number}"
        and f"number {number}" in str(found.details["query"])
        and found.details["unmet"] == list(unmet)
    )


def _validated(variant: Literal["qg", "em"]) -> Member:
    member = _evaluator(f"reverse validation, {variant}", partial(_reverse_validation, variant))
    return replace(member, good=partial(_is_validated, variant))


def _is_rejected(number: int, found: Evaluation) -> bool:
    return (found.score, found.passed, found.label) == (0.0, False, "non-factual")


def _judging() -> Runnable[Any, Any]:
    return ZeroShot(ScriptedModel(script=facts.judge))


def _examining() -> Runnable[Any, Any]:
    return LMvsLM(ScriptedModel(script=facts.judge))


def _is_judged(number: int, found: Evaluation) -> bool:
    factual = facts.supported(number) == len(facts.ATTRIBUTES)
    said = found.details.get("dialogue")
    return (
        found.label == ("factual" if factual else "non-factual")
        and found.passed is factual
        and (said is None or str(said).count(f"tem {number} ") == 2 * len(facts.ATTRIBUTES))
    )


def _self_check(method: Literal["prompt", "embedding"]) -> SelfCheck:
    model = ScriptedModel(script=facts.judge)
    return SelfCheck(
        model, method=method, n_samples=2, temperature=None, similarity=facts.alike, threshold=0.7
    )


def _is_consistent(low: float, number: int, found: Evaluation) -> bool:
    expected = low + (1 - 2 * low) * facts.supported(number) / len(facts.ATTRIBUTES)
    return (
        found.score is not None
        and math.isclose(found.score, expected, rel_tol=0, abs_tol=1e-12)
        and found.passed is (expected >= 0.7)
        and found.details["unread"] == 0
        and [f"{one['text']}" for one in found.details["sentences"]]
        == [f"Item {number} is {one}." for one in facts.ATTRIBUTES]
    )


# --- Guards -----------------------------------------------------------------------------------
# Of an odd item the chain says what is not so. Corrected, it speaks of another, even one.

PROMPT = ChatPromptTemplate.from_template("From {context} answer: {question}")


def _listing(query: str) -> Document:
    return Document(f"What was found for: {query}")


class Items(BaseRetriever):
    """Finds something of its own for each query."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [_listing(query)]


def _speak(stage: str, messages: Sequence[BaseMessage]) -> str:
    """The script of the chain's model, and of the one that corrects it."""
    said = facts.speak(stage, messages)
    better = stage == "repair" or "Answer correctly" in str(messages[-1].content)
    return _corrected(int(said.split()[1])) if better else said


def _corrected(number: int) -> str:
    return facts.answer(number if number % 2 == 0 else 2 * number)


def _passes(sample: Sample) -> Evaluation:
    """An evaluator that is a plain function."""
    number = int(sample.answer.split()[1])
    share = facts.supported(number) / len(facts.ATTRIBUTES)
    return Evaluation(name="plain", score=share, passed=share == 1, explanation="Look again.")


def _chain() -> Runnable[Any, Any]:
    speaker = ScriptedModel(script=_speak)
    return {"context": Items(), "question": RunnablePassthrough()} | PROMPT | speaker


def _refusing() -> Runnable[Any, Any]:
    return Guard(_chain() | StrOutputParser(), _refchecker("joint"))


def _annotating() -> Guard[Any, Any]:
    return Guard(_chain() | StrOutputParser(), _passes, on_fail=Annotate())


def _asking_again() -> Runnable[Any, Any]:
    asked = RunnableLambda(_asked)
    chain = RunnableParallel(question=asked, answer=asked | _chain() | StrOutputParser())
    return Guard(chain, _passes, with_feedback=_better_asked)


def _asked(input: dict[str, str]) -> str:
    return input["question"]


def _better_asked(input: dict[str, str], feedback: Feedback) -> dict[str, str]:
    return {"question": f"{input['question']} Answer correctly. {feedback.text}"}


def _repairing() -> Runnable[Any, Any]:
    model = ScriptedModel(script=_speak)
    return Guard(_chain(), _passes, model=model, retriever=Items())


def _widening() -> Runnable[Any, Any]:
    """The chain speaks well of items of which it read what was searched for."""
    speaker = ScriptedModel(script=_speak_of_what_was_read)
    found = {"context": widen(Items()), "question": RunnablePassthrough()}
    return Guard(found | PROMPT | speaker | StrOutputParser(), _lacks)


def _speak_of_what_was_read(stage: str, messages: Sequence[BaseMessage]) -> str:
    said = facts.speak(stage, messages)
    read = "it is even" in str(messages[-1].content)
    return _corrected(int(said.split()[1])) if read else said


def _lacks(sample: Sample) -> Evaluation:
    """As `_passes`, and says what it lacks."""
    found = _passes(sample)
    if found.passed:
        return found
    lacking = Claim(text="it is even", label=ClaimLabel.NEUTRAL)
    return found.model_copy(update={"claims": (lacking,)})


def _nested() -> Runnable[Any, Any]:
    """The inner one refuses what is wrong, and the outer one does not judge that."""
    return Guard(_refusing(), _passes, budget=Budget(attempts=2, model_calls=9, seconds=600))


def _open() -> Runnable[Any, Any]:
    model = ScriptedModel(script=_mumble)
    return Guard(_chain() | StrOutputParser(), RefChecker(model), on_error="open")


def _mumble(stage: str, messages: Sequence[BaseMessage]) -> str:
    return "Hm."


def _traced() -> Runnable[Any, Any]:
    return _annotating().with_trace()


def _question_in_dict(number: int) -> dict[str, str]:
    return {"question": facts.question(number)}


def _is_refused(number: int, output: str) -> bool:
    return output == (facts.answer(number) if number % 2 == 0 else REFUSAL)


def _is_annotated(number: int, output: str) -> bool:
    answer, _, note = output.partition("\n\n")
    return answer == facts.answer(number) and bool(note) is (number % 2 == 1)


def _is_corrected_in_dict(number: int, output: dict[str, str]) -> bool:
    asked = output["question"].startswith(facts.question(number))
    return asked and output["answer"] == _corrected(number)


def _is_corrected(number: int, output: AIMessage) -> bool:
    return isinstance(output, AIMessage) and output.text == _corrected(number)


def _is_corrected_text(number: int, output: str) -> bool:
    return output == _corrected(number)


def _is_said(number: int, output: str) -> bool:
    return output == facts.answer(number)


def _is_annotated_with_trace(number: int, output: Guarded[str]) -> bool:
    (attempt,) = output.trace.attempts
    retrieved = attempt.contexts == (_listing(facts.question(number)),)
    return (
        retrieved
        and attempt.answer == facts.answer(number)
        and attempt.usage.calls == 1
        and _is_annotated(number, output.output)
    )


def _same(output: Any) -> Any:
    return output


def _text(output: AIMessage) -> str:
    return str(output.text)  # a model gives each of its messages an id of its own


def _output_and_outcome(output: Guarded[str]) -> tuple[str, str]:
    return output.output, output.trace.outcome


def _guard(
    name: str,
    make: Callable[[], Runnable[Any, Any]],
    good: Callable[[int, Any], bool],
    essence: Callable[[Any], Any] = _same,
) -> Member:
    complaint = "about no item"
    return Member(
        name, make, facts.question, essence, good, "How are you?", complaint, tasks=_FEWER
    )


EVALUATORS = [
    _evaluator("refchecker joint", partial(_refchecker, "joint")),
    replace(_evaluator("refchecker per claim", partial(_refchecker, "per_claim")), tasks=_FEWER),
    replace(_evaluator("refchecker logprobs", partial(_refchecker, "logprobs")), tasks=_FEWER),
    _evaluator("cascade", _cascade),
    _scored("fewl, a lone reference", several=False),
    replace(_scored("fewl, two references, penalty", several=True), tasks=_FEWER),
    _validated("qg"),
    replace(_validated("em"), tasks=_FEWER),
    replace(_evaluator("all false", AllFalse), good=_is_rejected, asks=False),
    replace(_evaluator("zero-shot", _judging), good=_is_judged),
    replace(_evaluator("lm vs lm", _examining), good=_is_judged),
    replace(
        _evaluator("self-check, by prompt, samples given", partial(_self_check, "prompt")),
        give=facts.with_samples,
        good=partial(_is_consistent, 0.0),
        tasks=_FEWER,
    ),
    replace(
        _evaluator("self-check, by embedding, samples drawn", partial(_self_check, "embedding")),
        good=partial(_is_consistent, 0.25),
    ),
]
GUARDS = [
    replace(_guard("guard that refuses, string", _refusing, _is_refused), tasks=500),
    _guard("guard that annotates, string", _annotating, _is_annotated),
    replace(
        _guard("guard that asks again, dict", _asking_again, _is_corrected_in_dict),
        give=_question_in_dict,
        bad_input={"question": "How are you?"},
    ),
    _guard("guard that repairs, message", _repairing, _is_corrected, _text),
    _guard("guard that widens, string", _widening, _is_corrected_text),
    _guard("guard in a guard, string", _nested, _is_refused),
    _guard("guard without a judge, string", _open, _is_said),
    replace(
        _guard("guard with its trace", _traced, _is_annotated_with_trace, _output_and_outcome),
        tasks=500,
    ),
]
MEMBERS = [*EVALUATORS, *GUARDS]
