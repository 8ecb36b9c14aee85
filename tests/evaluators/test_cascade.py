"""Test Cascade: its verdict is that of the stages' labels, and no settled claim is asked again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableLambda
from pydantic import PrivateAttr

from demur import CallPolicy, Cascade, ClaimLabel, Evaluation, RefChecker, Sample
from demur.evaluators import ClaimEvaluator, Evaluator, ExtractedClaims, LabelledClaims
from demur.evaluators.refchecker.aggregation import Aggregation, aggregate
from demur.runtime import Scope, Steps, within_scope
from demur.schema import ABSTAIN, Claim
from support.fakes import ScriptedModel, isolated, scripted
from support.replies import weighing

E, N, C = ClaimLabel.ENTAILMENT, ClaimLabel.NEUTRAL, ClaimLabel.CONTRADICTION
SAMPLE = Sample(
    question="What has Oslo?", answer="Oslo has a port, an opera and a metro.", contexts=["Oslo."]
)

Label = tuple[ClaimLabel | None, float]


class Stage(ClaimEvaluator):
    """Find claims 0, 1, 2, ... and give the configured label and confidence for each of them."""

    labels: tuple[Label, ...]
    aggregation: Aggregation = "strict"
    threshold: float | None = 0.5

    _asked: list[str] = PrivateAttr(default_factory=list)

    def _find(self, sample: Sample) -> Steps[ExtractedClaims | Evaluation]:
        yield from ()
        return ExtractedClaims(sample, tuple(Claim(text=str(at)) for at in range(len(self.labels))))

    def _label(self, sample: Sample, claims: Sequence[Claim]) -> Steps[LabelledClaims]:
        yield from ()
        self._asked.extend(claim.text for claim in claims)
        said = [self.labels[int(claim.text)] for claim in claims]
        return LabelledClaims(
            tuple(
                claim.model_copy(update={"label": label, "error": None if label else "silent"})
                for claim, (label, _) in zip(claims, said, strict=True)
            ),
            tuple(confidence if label else 0.0 for label, confidence in said),
        )

    def _conclude(self, claims: Sequence[Claim], details: Mapping[str, Any]) -> Evaluation:
        verdict = aggregate([claim.label for claim in claims], self.aggregation, self.threshold)
        return Evaluation(
            name="Stage",
            passed=verdict.passed,
            score=verdict.share.value if verdict.determined else None,
            error=None if verdict.determined else "labels are missing",
            claims=tuple(claims),
            details=dict(details),
        )


class Whole(Evaluator):
    """Judge an answer as a whole, with a configured verdict."""

    verdict: bool | None

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        yield from ()
        error = "I cannot tell" if self.verdict is None else None
        return Evaluation(name="Whole", passed=self.verdict, error=error)


# --- The rule -----------------------------------------------------------------------------------

LABEL = st.tuples(st.sampled_from([E, E, E, N, C, None]), st.sampled_from([0.4, 0.89, 0.9, 1.0]))


@given(
    st.integers(1, 6).flatmap(
        lambda claims: st.lists(st.tuples(*[LABEL] * claims), min_size=2, max_size=4)
    ),
    st.sampled_from(["strict", "major", "soft"]),
)
def test_the_verdict_is_that_of_all_labels_and_nothing_settled_or_idle_is_asked_about(
    labels: list[tuple[Label, ...]], aggregation: Aggregation
) -> None:
    stages = [Stage(labels=of_stage, aggregation=aggregation) for of_stage in labels]
    found = Cascade(stages, min_confidence=0.9).invoke(SAMPLE)
    # These are the labels if every stage is asked about all claims that are still open.
    settled: list[ClaimLabel | None] = [None] * len(labels[0])
    over = False
    for number, (stage, said) in enumerate(zip(stages, labels, strict=True)):
        expected = [] if over else [at for at, label in enumerate(settled) if label is None]
        assert stage._asked == list(map(str, expected))
        last = number == len(stages) - 1
        for at, (label, confidence) in enumerate(said):
            if settled[at] is None and (last or confidence >= 0.9):
                settled[at] = label
        over = over or aggregate(settled, aggregation, 0.5).determined
    verdict = aggregate(settled, aggregation, 0.5)
    assert found.passed is verdict.passed
    assert found.undetermined is not verdict.determined
    assert found.name == "Cascade"
    for claim in found.claims:
        assert claim.label in (None, settled[int(claim.text)])
        assert (claim.label is None) is bool(claim.error)
    put = [told["claims"] for told in found.details["stages"]]
    assert put == [len(stage._asked) for stage in stages if stage._asked]


def test_the_rule_of_the_last_stage_counts() -> None:
    labels = ((E, 1.0), (E, 1.0), (N, 0.5))
    strict, soft = Stage(labels=labels), Stage(labels=labels, aggregation="soft")
    assert Cascade([strict, soft]).invoke(SAMPLE).passed is True
    assert not soft._asked, "two thirds reach the threshold of a half, whatever the third is"
    assert Cascade([soft, strict]).invoke(SAMPLE).passed is False
    assert strict._asked[3:] == ["2"]


@pytest.mark.parametrize(
    ("stages", "passed", "asked"),
    [
        ([Whole(verdict=True), Stage(labels=((N, 1.0),))], True, 1),
        ([Whole(verdict=None), Stage(labels=((N, 0.5),))], False, 2),
        ([Stage(labels=((N, 1.0),)), Whole(verdict=True)], False, 1),
        ([Stage(labels=((N, 0.5),)), Whole(verdict=True)], True, 2),
        ([Stage(labels=((N, 0.5),)), Whole(verdict=None)], None, 2),
        ([Stage(labels=((N, 0.5),)), Whole(verdict=None), Stage(labels=((E, 0.5),))], True, 3),
        ([Whole(verdict=None), Whole(verdict=False)], False, 2),
    ],
)
def test_a_stage_that_judges_the_whole_answer_decides_or_leaves_it_to_the_next(
    stages: list[Evaluator], passed: bool | None, asked: int
) -> None:
    cascade = Cascade(stages)
    found = cascade.invoke(SAMPLE)
    assert (found.passed, found.undetermined) == (passed, passed is None)
    assert len(found.details["stages"]) == asked
    assert cascade.claim_level is all(isinstance(stage, Stage) for stage in stages)


# --- With RefCheckers ---------------------------------------------------------------------------

TRIPLETS = "\n".join(f'("Oslo", "has", "{thing}")' for thing in ("a port", "an opera", "a metro"))


def cheap(**shares: float) -> ScriptedModel:
    """Return a model that finds three claims, each supported with the given probability."""

    def script(stage: str, messages: Sequence[BaseMessage]) -> str | AIMessage:
        if stage == "extraction":
            return TRIPLETS
        claim = isolated("claim", messages)
        share = next((p for thing, p in shares.items() if thing in claim), 1 / 3)
        tokens = {"Entail": share, "Neutral": (1 - share) * 0.501, "Contradiction": (1 - share) / 2}
        return weighing("x", **tokens)

    return ScriptedModel(script=script)


def test_only_unsure_claims_go_to_the_dearer_model_and_no_second_extraction() -> None:
    first, dear = cheap(port=0.99, opera=0.6, metro=0.97), scripted("", joint="1. Entailment")
    cascade = Cascade([RefChecker(first, checker="logprobs"), RefChecker(dear, checker="joint")])
    found = cascade.invoke(SAMPLE)
    assert (found.passed, found.score, found.label) == (True, 1.0, "Entailment")
    assert dear.stages == ["joint"]
    assert isolated("claims", dear.requests[0]) == "1. Oslo has an opera"
    assert [told["claims"] for told in found.details["stages"]] == [3, 1]
    assert [told["checker"] for told in found.details["stages"]] == ["logprobs", "joint"]
    assert found.usage.calls == len(first.requests) + 1
    assert found.details["usage_by_stage"]["checking 2"]["calls"] == 1
    assert found.claims[1].probabilities is None, "the dearer model gave none"


def test_what_stays_open_has_no_label_and_the_score_has_bounds() -> None:
    def script(stage: str, messages: Sequence[BaseMessage]) -> str | AIMessage:
        if stage == "extraction":
            return TRIPLETS
        claim = isolated("claim", messages)
        if "port" in claim:
            return weighing("x", Contradiction=0.98, Entail=0.01, Neutral=0.01)
        if "opera" in claim:
            return weighing("x", Contradiction=0.06, Entail=0.88, Neutral=0.06)
        return weighing("x", Contradiction=1 / 3, Entail=1 / 3, Neutral=1 / 3)

    dear = scripted("")
    cascade = Cascade(
        [RefChecker(ScriptedModel(script=script), checker="logprobs"), RefChecker(dear)]
    )
    found = cascade.invoke(SAMPLE)
    assert (found.passed, found.label, found.score) == (False, "Contradiction", None)
    assert found.details["score_bounds"] == [0.0, pytest.approx(2 / 3)]
    assert found.details["unlabelled"] == 2
    assert [claim.label for claim in found.claims] == [C, None, None]
    assert "Entailment is likely but not sure (0.88)" in found.claims[1].error
    assert found.claims[1].evidence == ()
    assert not dear.requests


def test_the_documents_that_the_first_stage_found_serve_the_others() -> None:
    retriever = RunnableLambda(lambda query: ["Oslo has an opera."])
    first = RefChecker(cheap(opera=0.6), checker="logprobs", retriever=retriever)
    dear = scripted("", joint="1. Entailment\n2. Entailment\n3. Entailment")
    found = Cascade([first, RefChecker(dear)]).invoke({"answer": SAMPLE.answer})
    assert found.passed is True
    assert isolated("reference", dear.requests[0]) == "Oslo has an opera."
    assert found.claims[1].evidence[0].text == "Oslo has an opera."
    assert found.details["retrieved"][0]["page_content"] == "Oslo has an opera."


def test_a_first_stage_that_finds_no_claims_leaves_them_to_the_second() -> None:
    def away(stage: str, messages: Sequence[BaseMessage]) -> str:
        raise ValueError("the model is away")

    broken = ScriptedModel(script=away)
    able = scripted(TRIPLETS, joint="1. Entailment\n2. Entailment\n3. Entailment")
    cascade = Cascade([RefChecker(broken, checker="joint"), RefChecker(able, checker="joint")])
    found = cascade.invoke(SAMPLE)
    assert found.passed is True
    assert able.stages == ["extraction", "joint"]


class Silent(Stage):
    """Represent a claim-by-claim evaluator that finds no claims."""

    def _find(self, sample: Sample) -> Steps[ExtractedClaims | Evaluation]:
        yield from ()
        return Evaluation(name="Silent", label=ABSTAIN)


class SilentWhole(Evaluator):
    """Represent a whole-answer evaluator that finds nothing to check."""

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        yield from ()
        return Evaluation(name="SilentWhole", label=ABSTAIN)


SILENT: list[Evaluator] = [Silent(labels=((None, 0.0),)), SilentWhole()]
SAYS: dict[str, list[Evaluator]] = {
    "passed": [Stage(labels=((E, 1.0),)), Whole(verdict=True)],
    "failed": [Stage(labels=((N, 1.0),)), Whole(verdict=False)],
    "undetermined": [Stage(labels=((None, 0.0),)), Whole(verdict=None)],
}


@pytest.mark.parametrize("silent", SILENT, ids=["by claims", "as a whole"])
@pytest.mark.parametrize("finding", SAYS)
def test_one_that_finds_nothing_to_check_leaves_it_to_the_next(
    finding: str, silent: Evaluator
) -> None:
    for other in SAYS[finding]:
        found = Cascade([silent, other]).invoke(SAMPLE)
        assert found.finding == finding
        assert [told["finding"] for told in found.details["stages"]] == [
            "nothing_to_check",
            finding,
        ]


def test_it_has_nothing_to_check_only_if_no_stage_has() -> None:
    one, other = SILENT
    for stages in ([one, one], [one, other], [other, one, one]):
        found = Cascade(stages).invoke(SAMPLE)
        assert (found.label, found.finding) == (ABSTAIN, "nothing_to_check")
        assert [told["name"] for told in found.details["stages"]] == [s.get_name() for s in stages]
    for undecided in SAYS["undetermined"]:
        for silent in SILENT:
            assert Cascade([undecided, silent]).invoke(SAMPLE).undetermined
            assert Cascade([silent, undecided, silent]).invoke(SAMPLE).undetermined


def test_claims_that_were_left_open_stay_so_where_the_rest_finds_nothing_to_check() -> None:
    unsure = Stage(labels=((C, 0.5),))
    found = Cascade([unsure, SilentWhole()]).invoke(SAMPLE)
    assert (found.finding, len(found.claims)) == ("undetermined", 1)
    rejecting = Cascade([unsure, SilentWhole(), Stage(labels=((C, 0.5),))])
    assert rejecting.invoke(SAMPLE).passed is False


def test_in_a_guarded_call_no_stage_judges_a_claim_twice() -> None:
    first, dear = cheap(port=0.99, opera=0.6, metro=0.97), scripted("", joint="1. Entailment")
    cascade = Cascade([RefChecker(first, checker="logprobs"), RefChecker(dear, checker="joint")])
    with within_scope(Scope()):
        cascade.invoke(SAMPLE)
        again = cascade.invoke(SAMPLE)
    assert [*again.details["usage_by_stage"]] == ["extraction 1"]
    assert [told["known"] for told in again.details["stages"]] == [3, 1]
    assert again.passed is True


def test_each_stage_keeps_to_its_own_policy() -> None:
    def away(stage: str, messages: Sequence[BaseMessage]) -> str:
        raise TimeoutError("the model is away")

    first, dear = ScriptedModel(script=away), ScriptedModel(script=away)
    once, twice = (CallPolicy(attempts=n, first_delay=0.01) for n in (1, 2))
    cascade = Cascade([RefChecker(first, call_policy=once), RefChecker(dear)], call_policy=twice)
    assert cascade.invoke(SAMPLE).undetermined
    assert (len(first.requests), len(dear.requests)) == (1, 2)


# --- Construction -------------------------------------------------------------------------------

ONE = Whole(verdict=True)


@pytest.mark.parametrize(
    ("stages", "options", "match"),
    [
        ([ONE], {}, "at least two stages, the cheapest first, got 1"),
        (ONE, {}, "in one list, the cheapest first, got Whole"),
        ([ONE, "local"], {}, "stage 2 is a str, expected an evaluator"),
        ([Cascade([ONE, ONE]), ONE], {}, "stage 1 is a cascade: list its stages"),
        ([ONE, Stage(labels=(), threshold=None)], {}, "stage 2 .* give it a threshold"),
    ],
)
def test_a_wrong_argument_is_refused_by_name(
    stages: Any, options: dict[str, Any], match: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=match):
        Cascade(stages, **options)
