"""Test what RefChecker makes of a claim's figures that are worked out, or come out otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from demur import Calculation, Cascade, Claim, ClaimLabel, Evaluation, RefChecker, Sample
from demur.guard import Feedback
from demur.local import SmallJudge
from support.fakes import ScriptedModel, deciding, isolated, labelled, weighing

E, N, C = ClaimLabel.ENTAILMENT, ClaimLabel.NEUTRAL, ClaimLabel.CONTRADICTION
ROSE = "Revenue rose from $240 million in 2022 to $276 million in 2023."
REPORT = f"{ROSE} The dividend stays at $0.85 a share."
RIGHT = "Revenue grew by 15% from 2022 to 2023."
WRONG = "Revenue grew by 13% from 2022 to 2023."
STATED = "Revenue rose to $276 million in 2023."
SURE = {"Entailment": -0.1, "Neutral": -3.0, "Contradiction": -4.0}


def believing(stage: str, messages: Sequence[BaseMessage]) -> AIMessage | str:
    """Support each claim, whatever stands in the reference."""
    return labelled(messages, lambda claim: E) if stage == "joint" else deciding(E)


def judging(script: Any = believing, **options: Any) -> tuple[RefChecker, ScriptedModel]:
    model = ScriptedModel(script=script)
    return RefChecker(model, **{"claims": "sentences", "checker": "logprobs", **options}), model


def check(answer: str, **options: Any) -> Evaluation:
    fields = {"answer": answer, "contexts": [REPORT]}
    return judging(**options)[0].invoke(fields)


# -- What the judge is shown -----------------------------------------------------------------------


@pytest.mark.parametrize("checker", ["joint", "per_claim", "logprobs"])
def test_the_judge_reads_the_calculation_behind_the_passages_and_only_where_it_is_asked(
    checker: str,
) -> None:
    evaluator, model = judging(checker=checker)
    answer = f"{WRONG} {STATED} {RIGHT}"
    found = evaluator.invoke(Sample(answer=answer, contexts=[REPORT]))
    read = [isolated("reference", messages) for messages in model.requests]
    with_line = [one for one in read if one.count("+15") == 1]
    assert all(one.startswith(f"{REPORT}\n\n") for one in with_line)
    assert all(one == REPORT for one in read if one not in with_line)
    # Claims that share windows still cost one request.
    assert (len(read), len(with_line)) == ((1, 1) if checker == "joint" else (3, 2))
    for claim in found.claims:  # The calculation stands in no reference.
        assert {quote.text for quote in claim.evidence} == {ROSE}
        assert all(REPORT[q.span.start : q.span.end] == q.text for q in claim.evidence)


def test_the_small_judge_reads_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("demur_judge")
    read: list[tuple[str, str]] = []

    def predict(self: SmallJudge, pairs: Sequence[tuple[str, str]]) -> list[Mapping[Any, float]]:
        read.extend(pairs)
        return [{E: 0.98, N: 0.01, C: 0.01} for _ in pairs]

    monkeypatch.setattr(SmallJudge, "predict", predict)
    answer = f"{STATED} {WRONG}"
    found = RefChecker("small").invoke({"answer": answer, "contexts": [REPORT]})
    shown = {(text.count("+15"), claim) for text, claim in read}
    assert shown == {(0, STATED), (1, WRONG)}
    assert [claim.label for claim in found.claims] == [E, C]
    assert found.score == 0


# -- Its label -------------------------------------------------------------------------------------


def test_a_right_figure_is_no_missing_string_and_its_calculation_is_kept() -> None:
    found = check(RIGHT)
    (claim,) = found.claims
    assert (claim.label, claim.missing_strings, claim.error, claim.overruled) == (
        E,
        (),
        None,
        False,
    )
    (calculation,) = claim.calculations
    assert (calculation.figure, calculation.follows) == ("15%", True)
    assert [quote.text for quote in calculation.operands] == ["$240 million", "$276 million"]
    assert claim.reason == str(calculation) == calculation.text
    assert found.passed is True
    assert found.score == claim.support


def test_a_wrong_figure_is_a_contradiction_whatever_the_judge_says() -> None:
    found, without = check(WRONG), check(STATED)
    (claim,), (stated,) = found.claims, without.claims
    assert claim.label is C
    assert (found.passed, found.score) == (False, 0)
    # The judge's numbers stay its own.
    assert claim.probabilities == stated.probabilities
    assert claim.support == stated.support
    assert claim.overruled
    assert [quote.text for quote in claim.evidence] == [ROSE]
    assert {quote.label for quote in claim.evidence} == {C}
    assert claim.missing_strings == ()
    (calculation,) = claim.calculations
    assert calculation.follows is False
    assert claim.reason == str(calculation) == f"{calculation.text}, not 13%"
    told = Feedback(question=None, answer=WRONG, evaluations=(found,))
    assert str(calculation) in told.text


def test_the_feedback_says_what_a_wrong_figure_would_be() -> None:
    one = Calculation(figure="80%", follows=False, text="252 of 360 is 70 %", operands=())
    wrong = Claim(text="80% would book again.", label=C, calculations=(one,))
    found = Evaluation(name="RefChecker", score=0.0, passed=False, claims=(wrong,))
    told = Feedback(question=None, answer="80% would book again.", evaluations=(found,))
    assert "252 of 360 is 70 %, not 80%" in told.text


def test_the_sentences_of_all_operands_are_quoted() -> None:
    contexts = ["The shop is old. The Leeds office has 120 employees.",
                "The York office has 170 employees. It is new."]  # fmt: skip
    claim = "The Leeds and York offices have 310 employees in total."
    evaluator, _ = judging()
    found = evaluator.invoke(Sample(answer=claim, contexts=contexts))
    (judged,) = found.claims
    assert judged.label is C
    quotes = [(quote.context, quote.text) for quote in judged.evidence]
    leeds, york = "The Leeds office has 120 employees.", "The York office has 170 employees."
    assert quotes == [(0, leeds), (1, york)]
    assert all(
        contexts[quote.context or 0][quote.span.start : quote.span.end] == quote.text
        for quote in (*judged.evidence, *judged.calculations[0].operands)
    )
    assert [quote.context for quote in judged.calculations[0].operands] == [0, 1]


def test_a_judge_that_supports_a_short_figure_is_not_overruled_by_a_calculation() -> None:
    contexts = ["The Leeds office has 12 employees and the York office has 17 employees."]
    claim = "The Leeds and York offices have 31 employees in total."
    sure = {"Neutral": -0.1, "Contradiction": -3.0, "Entailment": -4.0}
    for script, label in ((believing, E), (lambda *_: weighing("Neutral", sure), C)):
        (judged,) = judging(script)[0].invoke({"answer": claim, "contexts": contexts}).claims
        assert judged.label is label
        assert [one.text for one in judged.calculations] == ["12 + 17 = 29"] * (label is C)


def test_a_label_of_the_judge_that_is_no_support_is_kept_beside_a_right_calculation() -> None:
    sure = {"Contradiction": -0.1, "Neutral": -3.0, "Entailment": -4.0}
    found = check(RIGHT, script=lambda stage, messages: weighing("Contradiction", sure))
    (claim,) = found.claims
    assert (claim.label, found.passed) == (C, False)
    assert claim.calculations[0].follows is True
    assert not claim.overruled


@pytest.mark.parametrize("checker", ["joint", "per_claim", "logprobs"])
def test_what_the_judge_leaves_undetermined_stays_so_although_a_figure_is_refuted(
    checker: str,
) -> None:
    found = check(WRONG, checker=checker, script=lambda stage, messages: "I cannot say.")
    (claim,) = found.claims
    assert found.undetermined
    assert (claim.label, claim.evidence) == (None, ())
    assert claim.error
    assert claim.calculations[0].follows is False


def test_in_a_block_of_code_nothing_is_worked_out() -> None:
    code = f"```\n# {WRONG}\ngrowth_2023 = 13\n```"
    evaluator, model = judging(checker="per_claim")
    found = evaluator.invoke(Sample(answer=f"Here is the code:\n\n{code}", contexts=[REPORT]))
    assert found.passed is True
    assert WRONG in found.claims[-1].text
    assert all(not claim.calculations and not claim.missing_strings for claim in found.claims)
    assert "+15" not in "".join(isolated("reference", one) for one in model.requests)


def test_a_claim_with_calculations_is_the_same_after_json() -> None:
    for said in (RIGHT, WRONG):
        found = check(said)
        again = Evaluation.model_validate_json(found.model_dump_json())
        assert again == found
        (claim,) = again.claims
        assert Claim.model_validate_json(claim.model_dump_json()) == claim
        assert claim.calculations


def test_a_stage_of_a_cascade_is_sure_of_a_wrong_figure() -> None:
    (first, _), (last, asked) = judging(), judging()
    sample = {"answer": WRONG, "contexts": [REPORT]}
    assert Cascade([first, last]).invoke(sample).passed is False
    assert asked.requests == []


async def test_async_and_sync_find_the_same() -> None:
    evaluator, _ = judging()
    sample = Sample(answer=f"{WRONG} {RIGHT} {STATED}", contexts=[REPORT])
    one, other = evaluator.invoke(sample), await evaluator.ainvoke(sample)
    assert one.claims == other.claims
