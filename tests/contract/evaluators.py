"""List the evaluators for the contract tests, at module level so that they can be pickled."""

from __future__ import annotations

import atexit
import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial
from typing import Any, Literal

from langchain_core.embeddings import Embeddings
from langchain_core.runnables import (
    Runnable,
)

from contract.member import Member
from demur import (
    FEWL,
    Cascade,
    CitationSupport,
    ClaimLabel,
    Evaluation,
    Failure,
    RefChecker,
    ReverseValidation,
    Sample,
)
from demur.evaluators import (
    AllFalse,
    AnswerRelevance,
    LMvsLM,
    NeighborStore,
    SelfCheck,
    SelfContradiction,
    ZeroShot,
)
from demur.similarity import YesNoJudge
from support import facts
from support.answering import ASKED
from support.fakes import ScriptedModel
from support.judging import judging
from support.openai_server import openai_server


def _evaluation(found: Evaluation) -> Any:
    """Return the evaluation without its costs."""
    return found.model_dump(exclude={"usage": True, "details": {"usage_by_stage"}})


def _right(number: int, found: Evaluation) -> bool:
    return facts.grade(number, found) == "right"


def refchecker(checker: str | YesNoJudge) -> RefChecker:
    return RefChecker(ScriptedModel(script=facts.judge), checker=checker)


@cache
def _judge_at_an_address() -> str:
    """Start a server that judges, as long as the tests run, and return its name as a judge."""
    running = ExitStack()
    atexit.register(running.close)
    return running.enter_context(openai_server(judging())).judge


def _served() -> RefChecker:
    return RefChecker(_judge_at_an_address())


def _right_by_yes_or_no(number: int, found: Evaluation) -> bool:
    """Return whether it is right once no is taken for a contradiction, which the judge may mean."""
    known = {ClaimLabel.UNSUPPORTED: ClaimLabel.CONTRADICTION}
    if any(claim.label in (ClaimLabel.NEUTRAL, *known.values()) for claim in found.claims):
        return False
    claims = [
        one.model_copy(update={"label": known.get(one.label, one.label)}) for one in found.claims
    ]
    return _right(number, found.model_copy(update={"claims": tuple(claims)}))


def _cascade() -> Runnable[Any, Any]:
    # The first stage is 98 percent confident of each claim, so that the second stage is asked too.
    return Cascade([refchecker("logprobs"), refchecker("joint")], min_confidence=0.99)


def _evaluator(name: str, make: Callable[[], Runnable[Any, Any]]) -> Member:
    return Member(name, make, facts.sample, _evaluation, _right, {"contexts": []}, "answer")


class _Apart(Embeddings):
    """Embed all items as close as paraphrases, and far from everything else."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.0] if "item" in text else [0.0, 1.0] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class _Beginning(NeighborStore):
    """Represent a store in memory whose copies start again with two unrelated questions.

    These stay the only neighbours, however many items are asked about in the meantime.
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


def _relevance() -> Runnable[Any, Any]:
    return AnswerRelevance(ScriptedModel(script=facts.judge))


def _is_addressed(number: int, found: Evaluation) -> bool:
    good = facts.supported(number) == len(facts.ATTRIBUTES)
    return (found.label, found.passed, found.score) == (
        "relevant" if good else "irrelevant",
        good,
        float(good),
    )


def _self_contradiction() -> Runnable[Any, Any]:
    return SelfContradiction(ScriptedModel(script=facts.judge))


def _is_consistent_in_itself(number: int, found: Evaluation) -> bool:
    good = facts.supported(number) == len(facts.ATTRIBUTES)
    quoted = () if good else tuple(f"Item {number} is {one}" for one in facts.ATTRIBUTES)
    return (
        found.label == ("consistent" if good else "self-contradictory")
        and (found.passed, found.score) == (good, float(good))
        and tuple(claim.text for claim in found.claims) == quoted
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


def _is_consistent_by_the_small_judge(number: int, found: Evaluation) -> bool:
    """Return whether the answer passes if something in it is true, as the judge is never sure."""
    return (
        found.error is None
        and found.passed is (facts.supported(number) > 0)
        and found.details["unread"] == 0
    )


def _citation_support() -> Runnable[Any, Any]:
    checker = RefChecker(ScriptedModel(script=facts.judge), checker="joint", claims="sentences")
    return CitationSupport(checker)


def _citing(number: int) -> Sample:
    said = " ".join(f"Item {number} is {one} [1]." for one in facts.ATTRIBUTES)
    return facts.sample(number).model_copy(update={"answer": said})


def _is_held_against_its_source(number: int, found: Evaluation) -> bool:
    held = facts.supported(number)
    good = held == len(facts.ATTRIBUTES)
    labels = [(claim.text.rstrip("."), claim.label) for claim in found.claims]
    return (
        labels == facts.expected(number)
        and (found.passed, found.score) == (good, held / len(facts.ATTRIBUTES))
        and found.failures == (() if good else (Failure.CITATION,))
    )


EVALUATORS = [
    replace(
        _evaluator("refchecker small", partial(RefChecker, "small")),
        give=facts.described,
        asks=False,
    ),
    _evaluator("refchecker served", _served),
    replace(
        _evaluator("refchecker yes or no", partial(refchecker, ASKED)), good=_right_by_yes_or_no
    ),
    _evaluator("refchecker joint", partial(refchecker, "joint")),
    _evaluator("refchecker per claim", partial(refchecker, "per_claim")),
    _evaluator("refchecker logprobs", partial(refchecker, "logprobs")),
    _evaluator("cascade", _cascade),
    replace(
        _evaluator("citation support", _citation_support),
        give=_citing,
        good=_is_held_against_its_source,
    ),
    _scored("fewl, a lone reference", several=False),
    _scored("fewl, two references, penalty", several=True),
    _validated("qg"),
    _validated("em"),
    replace(_evaluator("all false", AllFalse), good=_is_rejected, asks=False),
    replace(_evaluator("zero-shot", _judging), good=_is_judged),
    replace(_evaluator("lm vs lm", _examining), good=_is_judged),
    replace(_evaluator("answer relevance", _relevance), good=_is_addressed),
    replace(_evaluator("self-contradiction", _self_contradiction), good=_is_consistent_in_itself),
    replace(
        _evaluator("self-check, by prompt, samples given", partial(_self_check, "prompt")),
        give=facts.with_samples,
        good=partial(_is_consistent, 0.0),
    ),
    replace(
        _evaluator(
            "self-check, by the small judge, samples given",
            partial(SelfCheck, method="nli", nli="small", threshold=0.5),
        ),
        give=facts.with_samples,
        good=_is_consistent_by_the_small_judge,
        asks=False,
    ),
    replace(
        _evaluator("self-check, by embedding, samples drawn", partial(_self_check, "embedding")),
        good=partial(_is_consistent, 0.25),
    ),
]
