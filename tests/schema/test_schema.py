import math
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from pydantic import BaseModel, ValidationError

from demur import Category, Claim, ClaimLabel, Evaluation, Failure, Sample, Threshold, Usage
from demur.errors import DemurError
from demur.schema import Evidence, Span

TESTED: dict[str, Any] = {
    **{
        "on_abstain": "fail",
        "value": 0.8,
        "method": "learn-then-test",
        "target": 0.05,
        "confidence": 0.9,
    },
    **{"evaluator": "RefChecker", "fingerprints": {"model": "m (1)", "prompts": "é \U0001f600"}},
    **{"samples": 100, "passed": 30, "hallucinated": 50, "passed_hallucinated": 1},
}
BEST: dict[str, Any] = {
    **{"on_abstain": "pass", "value": -0.1, "method": "best-f1", "samples": 3, "passed": 3},
    **{"hallucinated": 0, "passed_hallucinated": 0},
}
PERCENTILE: dict[str, Any] = {
    **{
        "on_abstain": "pass",
        "value": 1e-17,
        "method": "percentile",
        "percentile": 0,
        "samples": 1,
        "passed": 1,
    },
}
USAGE = Usage(calls=2, cached=1, input_tokens=10, output_tokens=3, seconds=0.5)


@given(st.text(st.characters()), st.text(st.characters()), st.text(st.characters()))
def test_any_text_makes_a_sample_with_offsets_kept_and_json(q: str, a: str, c: str) -> None:
    sample = Sample(question=q, answer=a, contexts=[c, {"page_content": c}], reference=q)
    assert Sample.model_validate_json(sample.model_dump_json()) == sample
    found = (sample.question, sample.answer, sample.reference, sample.contexts[1].page_content)
    assert [len(text or "") for text in found] == [len(q), len(a), len(q), len(c)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, []),
        ("abc", ["abc"]),
        (["a", "b"], ["a", "b"]),
        (("a", Document(page_content="b")), ["a", "b"]),
        (Document(page_content="b"), ["b"]),
        ({"page_content": "b", "metadata": {"page": 1}}, ["b"]),
    ],
)
def test_contexts_are_taken_in_several_forms(given: Any, expected: list[str]) -> None:
    sample = Sample(answer="a", contexts=given)
    assert [document.page_content for document in sample.contexts] == expected


@pytest.mark.parametrize(
    ("fields", "named", "said"),
    [
        ({"answer": "a", "contexts": 5}, "contexts", "got int: pass contexts="),
        ({"answer": "a", "contexts": b"x"}, "contexts", "got bytes"),
        ({"answer": "a", "contexts": ["a", 3]}, "contexts", "item 1: expected a string"),
        ({"answer": "a", "contexts": [{"page_content": 3}]}, "contexts", "item 0"),
        ({"answer": "a", "context": "x"}, "context", "not permitted"),
    ],
)
def test_a_wrong_sample_is_refused_by_the_field_s_name(
    fields: dict[str, Any], named: str, said: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        Sample(**fields)
    (error,) = caught.value.errors()
    assert error["loc"][0] == named
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "fields", "said"),
    [
        (Span, {"start": 3, "end": 2}, r"end \(2\) must not be before start \(3\)"),
        (Evaluation, {"name": "x", "score": math.nan}, "score"),
        (Evaluation, {"name": "x", "score": math.inf}, "score"),
        (Evaluation, {"name": "x", "error": "e", "score": 0.5}, "score must be None"),
        (Evaluation, {"name": "x", "error": "e", "passed": False}, "passed must be None"),
        (Evaluation, {"name": "x", "error": "", "label": "Neutral"}, "label must be None"),
        (Threshold, {**TESTED, "value": math.nan}, "value"),
        (Threshold, {**TESTED, "target": None}, "target is missing: it is needed with method="),
        (Threshold, {**TESTED, "confidence": None}, "confidence is missing"),
        (Threshold, {**TESTED, "percentile": 5}, "percentile is only for method='percentile'"),
        (Threshold, {**TESTED, "hallucinated": None, "passed_hallucinated": None}, "needs labels"),
        (Threshold, {**TESTED, "passed_hallucinated": None}, "go together"),
        (Threshold, {**PERCENTILE, "passed_hallucinated": 1}, "go together"),
        (Threshold, {**PERCENTILE, "percentile": None}, "percentile is missing"),
        (Threshold, {**BEST, "target": 0.1}, "target is only for method='learn-then-test'"),
        (Threshold, {**BEST, "passed": 4}, "do not add up: of 3 samples 4 pass"),
        (Threshold, {**TESTED, "passed": 0}, "do not add up"),
        (Threshold, {**TESTED, "passed": 52}, "do not add up"),
        (Threshold, {**TESTED, "passed_hallucinated": 51, "passed": 60}, "do not add up"),
        (Threshold, {**TESTED, "hallucinated": 101}, "do not add up"),
    ],
)
def test_wrong_values_are_refused(kind: type[BaseModel], fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        kind(**fields)


def test_usage_adds_up_field_by_field() -> None:
    assert USAGE + Usage(calls=1, cached=2, input_tokens=3, output_tokens=4, seconds=0.25) == Usage(
        calls=3, cached=3, input_tokens=13, output_tokens=7, seconds=0.75
    )
    assert sum([USAGE, USAGE], Usage()).calls == 4
    with pytest.raises(TypeError):
        USAGE + 1  # type: ignore[operator]  # the mistake that is tested


# --- Files of thresholds ------------------------------------------------------------------------


@pytest.mark.parametrize("fields", [TESTED, BEST, PERCENTILE], ids=lambda one: one["method"])
def test_a_threshold_is_read_as_it_was_saved(tmp_path: Path, fields: dict[str, Any]) -> None:
    path = tmp_path / "of.threshold.json"
    threshold = Threshold(**fields)
    threshold.save(str(path))
    assert Threshold.load(path) == Threshold.load(str(path)) == threshold
    assert path.read_bytes().endswith(b"}\n")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "holds no threshold (Invalid JSON"),
        (b"\xff\xfe", "holds no threshold (Invalid JSON"),
        (b"0.8", "holds no threshold (Input should be an object"),
        (b'{"name": "x"}', "holds no threshold (value: Field required"),
        (b'{"value": NaN}', "holds no threshold (value: "),
    ],
)
def test_what_is_no_threshold_is_told(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(DemurError) as caught:
        Threshold.load(path)
    told = str(caught.value)
    assert f"{path} {said}" in told
    assert "expected a file that `demur calibrate` or `Threshold.save` wrote" in told


@pytest.mark.parametrize("name", ["gone/x.json", "", "a\0b"])
def test_a_file_that_cannot_be_read_or_written_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(DemurError, match=r"^cannot read "):
        Threshold.load(str(tmp_path / name))
    with pytest.raises(DemurError, match=r"^cannot write "):
        Threshold(**BEST).save(str(tmp_path / name))


@pytest.mark.parametrize(
    ("given", "finding"),
    [
        ({"error": "no references"}, "undetermined"),
        ({"score": 1.0, "passed": True}, "passed"),
        ({"score": 0.0, "passed": False, "label": "Neutral"}, "failed"),
        ({"label": "Abstain"}, "nothing_to_check"),
        ({"score": 0.5}, "scored"),
    ],
)
def test_what_an_evaluation_says_in_a_word(given: dict[str, Any], finding: str) -> None:
    assert Evaluation(name="judge", **given).finding == finding


def test_prices_are_of_a_million_tokens() -> None:
    usage = Usage(input_tokens=2_000_000, output_tokens=500_000)
    assert usage.price(0.15, 0.6) == pytest.approx(0.3 + 0.3)
    assert Usage().price(1, 1) == 0


# --- Files that are written completely or not at all --------------------------------------------


def _fails(*arguments: object, **named: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("before", [True, False])
def test_a_threshold_that_cannot_be_written_leaves_what_was_there(
    step: str, before: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "of.threshold.json"
    if before:
        Threshold(**TESTED).save(path)
    with monkeypatch.context() as patched:
        patched.setattr(os, step, _fails)
        with pytest.raises(DemurError, match="No space left on device"):
            Threshold(**BEST).save(path)
    assert [*tmp_path.iterdir()] == ([path] if before else [])
    if before:
        assert Threshold.load(path) == Threshold(**TESTED)


def test_a_threshold_is_for_its_owner_and_a_link_stays_one(tmp_path: Path) -> None:
    path, link = tmp_path / "of.threshold.json", tmp_path / "link.json"
    link.symlink_to(path.name)
    Threshold(**BEST).save(link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    assert Threshold.load(path) == Threshold(**BEST)


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(DemurError, match="it is no ordinary file"):
        Threshold(**BEST).save(pipe)
    assert pipe.is_fifo()


# --- Printed --------------------------------------------------------------------------------------


def test_a_printed_evaluation_can_be_read() -> None:
    quote = Evidence(
        context=1, span=Span(start=0, end=4), text="It is\nred.", label=ClaimLabel.CONTRADICTION
    )
    claims = (
        Claim(text="Item 1 is heavy", label=ClaimLabel.ENTAILMENT),
        Claim(text="Item 1 is blue", label=ClaimLabel.CONTRADICTION, evidence=(quote,)),
        Claim(text="Item 1 is old", error="the model call failed"),
    )
    found = Evaluation(
        name="RefChecker",
        score=0.5,
        label="Contradiction",
        passed=False,
        explanation="The references contradict 1 of 3 claims.",
        claims=claims,
        details={"prompt": "x" * 1000},
    )
    assert str(found) == f"{found}"
    assert str(found).splitlines() == [
        "RefChecker: failed, Contradiction, score 0.50",
        "  The references contradict 1 of 3 claims.",
        "  1. Entailment: Item 1 is heavy",
        "  2. Contradiction: Item 1 is blue",
        '     reference 2: "It is red."',
        "  3. no label: Item 1 is old (the model call failed)",
    ]


def test_a_printed_evaluation_says_once_why_it_is_undetermined() -> None:
    undetermined = Evaluation(name="judge", error="no reply", explanation="no reply")
    assert str(undetermined) == "judge: undetermined\n  no reply"
    silent = Evaluation(name="judge", label="Abstain", explanation="It states nothing.")
    assert str(silent) == "judge: nothing to check\n  It states nothing."
    assert str(Evaluation(name="judge", score=2.0)) == "judge: scored, score 2.00"


@given(st.text(), st.text(), st.text())
def test_no_text_controls_the_terminal_or_makes_a_line_of_its_own(
    name: str, text: str, why: str
) -> None:
    text, why = f"\x1b[31m{text}", f"\x9b\r\n1. Entailment: {why}"
    quote = Evidence(span=Span(start=0, end=1), text=text, label=ClaimLabel.NEUTRAL)
    claim = Claim(text=text, error=why, evidence=(quote,))
    printed = str(Evaluation(name=name, explanation=why, error=text, claims=(claim,)))
    assert len(printed.split("\n")) == 5
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]", printed)


# --- The failures of an answer --------------------------------------------------------------------

NOT_THERE = Claim(text="it is red", label=ClaimLabel.NEUTRAL)
REFUTED = Claim(text="it is tall", label=ClaimLabel.CONTRADICTION)
HELD = Claim(text="it is old", label=ClaimLabel.ENTAILMENT)


@pytest.mark.parametrize(
    ("fields", "failures"),
    [
        ({"claims": (HELD, REFUTED, NOT_THERE, REFUTED)}, ["contradiction", "neutral"]),
        ({"failure": Failure.MISMATCH}, ["mismatch"]),
        ({"failure": Failure.VAGUE, "claims": (NOT_THERE,)}, ["neutral"]),
        ({"failure": Failure.VAGUE, "claims": (HELD,)}, ["vague"]),
        # Either part may be right, so no single claim is known to be wrong.
        (
            {"failure": Failure.SELF_CONTRADICTION, "claims": (REFUTED, REFUTED)},
            ["self_contradiction"],
        ),
        ({}, ["other"]),
        ({"passed": True, "claims": (NOT_THERE,)}, []),
        ({"passed": None, "failure": Failure.VAGUE}, []),
        ({"passed": None, "error": "no reply", "claims": (REFUTED,)}, []),
    ],
    ids=repr,
)
def test_what_is_wrong_is_told_of_answers_that_failed(
    fields: dict[str, Any], failures: list[str]
) -> None:
    evaluation = Evaluation(**{"name": "x", "passed": False, **fields})
    assert [*map(str, evaluation.failures)] == failures


def test_each_failure_has_the_papers_category_or_none() -> None:
    assert {str(failure): failure.category and str(failure.category) for failure in Failure} == {
        "neutral": "unsupported",
        "contradiction": "contradiction",
        "unsupported": "unsupported",
        "mismatch": "unsupported",
        "vague": "irrelevant",
        "irrelevant": "irrelevant",
        "self_contradiction": "self_contradiction",
        "citation": None,
        "nothing_to_check": None,
        "other": None,
    }
    assert {failure.category for failure in Failure} == {*Category, None}
