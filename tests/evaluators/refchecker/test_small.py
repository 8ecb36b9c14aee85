"""Test RefChecker with the small judge, which needs no language model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableLambda

import demur
from demur import FEWL, Budget, Evaluation, Guard, RefChecker, ReverseValidation, cli
from demur.guard import REFUSAL, UNCHECKED
from demur.local import SmallJudge, calibrated, word_fit
from demur.schema import NLI_LABELS, ClaimLabel
from demur.scoring import read_results
from support.fakes import ScriptedModel, scripted, weighing

pytest.importorskip("demur_judge")
E, C = ClaimLabel.ENTAILMENT, ClaimLabel.CONTRADICTION

LOUVRE = "The Louvre, in Paris, opened as a museum in 1793."
ANSWER = "The Louvre is in Paris. It opened as a museum in 1851."


def check(answer: str, *references: str, **options: Any) -> Evaluation:
    return RefChecker("small", **options).invoke({"answer": answer, "contexts": [*references]})


def guarded(answer: str, reference: str, **options: Any) -> Guard[Any, Any]:
    chain = RunnableLambda(lambda _: {"answer": answer, "context": [reference]})
    return Guard(chain, RefChecker("small"), **options)


# -- What it says ----------------------------------------------------------------------------------


def test_it_finds_the_wrong_sentence_and_quotes_what_contradicts_it() -> None:
    found = check(ANSWER, LOUVRE)
    assert [claim.label for claim in found.claims] == [E, C]
    assert [claim.evidence[0].text for claim in found.claims] == [LOUVRE, LOUVRE]
    assert found.passed is False
    assert found.details["checker"] == "small"
    assert found.details["granularity"] == "sentences"
    assert found.usage.calls == 0


def test_it_asks_nobody_for_anything(socket_disabled: None) -> None:
    found = check(ANSWER, LOUVRE)
    assert found.passed is False
    assert found.error is None


def test_a_sentence_that_stands_in_a_reference_is_supported_whatever_stands_around_it() -> None:
    assert check("The box is heavy.", "The box is red. The box is heavy.").passed


def test_a_probability_is_the_judge_s_own_as_its_fit_says() -> None:
    (claim,) = check("The Louvre opened in 1851.", LOUVRE).claims
    (found,) = SmallJudge().predict([(LOUVRE, "The Louvre opened in 1851.")])
    assert isinstance(found, dict)
    fit = word_fit()
    assert claim.probabilities == calibrated(found, fit.temperature, fit.shift)


def test_a_claim_that_it_cannot_read_is_undetermined() -> None:
    answer, reference = (f"The owner of the house is {name}." for name in "鱻龘")
    found = check(answer, reference)
    assert found.undetermined
    assert "choose another judge" in str(found.error)
    assert guarded(answer, reference).invoke("?")["answer"] == UNCHECKED


# -- Deciding --------------------------------------------------------------------------------------


@pytest.mark.parametrize("checker", ["small", "logprobs"])
def test_with_strict_the_threshold_is_the_probability_from_which_a_claim_is_supported(
    checker: str,
) -> None:
    said = "The Louvre opened as a museum."
    model: Any = "small" if checker == "small" else ScriptedModel(script=_even)
    options = {} if checker == "small" else {"checker": checker}
    made = {least: RefChecker(model, threshold=least, **options) for least in (0.01, 0.999)}
    found = {
        least: evaluator.invoke({"answer": said, "contexts": [LOUVRE]})
        for least, evaluator in made.items()
    }
    assert [one.passed for one in found.values()] == [True, False]
    first, second = found.values()
    assert first.score == second.score == first.claims[0].support
    # What only decides about a score is not in the fingerprints.
    assert first.fingerprints == second.fingerprints
    # With "soft" it is the share of the claims that are supported, and not what supports a claim.
    shares = [one.model_copy(update={"aggregation": "soft"}) for one in made.values()]
    assert {"supported from 0.5" in one.fingerprints["checker"] for one in shares} == {True}


def _even(stage: str, messages: Sequence[BaseMessage]) -> AIMessage:
    return weighing("x", {str(label): -1.1 for label in NLI_LABELS})


def test_where_it_has_no_effect_it_is_refused() -> None:
    with pytest.raises(ValueError, match="no effect with the checker 'joint', which gives no prob"):
        RefChecker(scripted("x"), checker="joint", threshold=0.5)
    with pytest.raises(ValueError, match="no effect with aggregation='major'"):
        RefChecker("small", aggregation="major", threshold=0.5)
    for value in (0, 1.1, float("nan")):
        with pytest.raises(ValueError, match="threshold"):
            RefChecker("small", threshold=value)


# -- Where it is no judge --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"claims": "triplets"}, r"claims='triplets' needs a chat model .*'sentences'"),
        ({"checker": "joint"}, "leave out checker='joint'"),
    ],
)
def test_what_a_model_would_write_and_another_checker_are_refused(
    options: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        RefChecker("small", **options)


@pytest.mark.parametrize("make", [FEWL, ReverseValidation, demur.resolve_model])
def test_as_a_chat_model_it_is_refused_with_what_to_do(make: Any) -> None:
    with pytest.raises(ValueError, match=r"is a judge, and no chat model.*RefChecker"):
        make("small")


# -- Around it -------------------------------------------------------------------------------------


def test_a_guard_holds_back_what_it_rejects() -> None:
    assert guarded(ANSWER, LOUVRE).invoke("?")["answer"] == REFUSAL
    assert "1793" in guarded("It opened in 1793.", LOUVRE).invoke("?")["answer"]


def test_of_ten_thousand_claims_a_guard_s_time_limit_holds() -> None:
    answer = " ".join(f"Room {at} has a lamp." for at in range(10_000))
    limits = Budget(attempts=1, judge_seconds=0.5)
    result = guarded(answer, "Room 1 has a lamp.", budget=limits).with_trace().invoke("?")
    assert result.output["answer"] == UNCHECKED
    assert result.trace.outcome == "evaluator_failed"


async def test_the_event_loop_goes_on_while_it_judges() -> None:
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0)
            beats += 1

    beating = asyncio.create_task(beat())
    long = " ".join(f"Room {at} has a lamp." for at in range(30))
    await RefChecker("small").ainvoke({"answer": ANSWER, "contexts": [long, LOUVRE]})
    beating.cancel()
    assert beats > 100


def test_the_command_line_checks_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["check", "--model", "small", "--reference", LOUVRE, "--json"]
    assert cli.run([*asked, "--answer", ANSWER]) == 1
    found = Evaluation.model_validate_json(capsys.readouterr().out)
    assert [claim.label for claim in found.claims] == [E, C]
    assert cli.run([*asked, "--answer", "The Louvre is in Paris."]) == 0
    capsys.readouterr()
    assert cli.run([*asked, "--answer", ANSWER, "--claims", "triplets"]) == 64
    assert "needs a chat model" in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("score", "--method", "refchecker"),
        ("compare", "--method", "refchecker-small"),
        ("compare",),  # the detectors that need a chat model are left out
    ],
)
def test_the_command_line_scores_and_compares_with_it(
    command: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"id": "good", "answer": "The Louvre opened as a museum in 1793.", "hallucinated": False},
        {"id": "bad", "answer": "The Louvre opened as a museum in 1851.", "hallucinated": True},
    ]
    file, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    file.write_text("".join(json.dumps({**row, "contexts": [LOUVRE]}) + "\n" for row in rows))
    assert cli.run([*command, str(file), "--model", "small", "--out", str(out)]) == 0
    found = {
        one.key: one.evaluation
        for one in read_results(out)
        if one.evaluator in ("refchecker", "refchecker-small")
    }
    assert {key: one.passed for key, one in found.items()} == {"good": True, "bad": False}
    err = " ".join(capsys.readouterr().err.split())
    assert ("needs a chat model, and 'small' is none" in err) is (len(command) == 1)
