"""The conformance suite, with demur's own guards: what the published table says of them holds."""

import os
from datetime import date
from typing import Any

import pytest
from peers.conformance import facts, judge
from peers.conformance.__main__ import measure
from peers.conformance.guards import GUARDS
from peers.conformance.runner import Guard
from peers.conformance.table import markdown

COUNT = 1
"""The number of wrong answers of a leak check, in each mode."""
OURS = [guard for guard in GUARDS if guard.name.startswith("demur")]
SOME = ("demur", "demur-one-call", "demur-small", "demur-llama")
MEASURED = [one for one in OURS if one.name in SOME or os.environ.get("DEMUR_RUN_ALL")]
"""The guards that are measured: those whose code differs, and all of ours with `make test-all`."""


@pytest.mark.slow
@pytest.mark.parametrize("guard", MEASURED, ids=lambda guard: guard.name)
def test_what_the_published_table_says_of_our_guards_holds(guard: Guard) -> None:
    """Make the checks whose results do not depend on the speed of the machine."""
    if guard.judges_itself:
        pytest.importorskip("demur_judge")
    judged = guard.name == "demur"  # The prompts of the others are the same.
    found = measure(guard, ["leak", "fails", *["padding", "forged"] * judged], COUNT, None)
    one_call = guard.name == "demur-one-call"

    leak = found["leak"]
    again = leak.pop("put right")
    assert {"whole", "stream", "astream"} <= set(leak)
    assert all(told["leaked"] == 0 and told["whole"] == COUNT for told in leak.values())
    assert again == {"wrong": COUNT, "whole": 0 if one_call else COUNT, "leaked": 0}

    if guard.judges_itself:
        assert found["fails"] == {"none": "the judge has no endpoint that could fail"}
        return
    assert len(found["fails"]) == 10  # five ways to fail, whole and streamed
    for told in found["fails"].values():
        assert told["wrong"] == told["right"] == {"raised" if one_call else "blocked": 1}

    if judged:
        for told in found["padding"].values():  # around the answer, and around the evidence
            assert (told["seen"], told["leaked"], told["whole"]) == (1, 0, 1)
        assert (found["forged"]["seen"], found["forged"]["leaked"]) == (1, 0)


@pytest.mark.slow
def test_without_a_guard_everything_leaks() -> None:
    (control,) = (guard for guard in GUARDS if guard.name == "none")
    told = measure(control, ["leak"], COUNT, None)
    for mode in ("whole", "stream", "astream"):
        assert told["leak"][mode]["leaked"] == COUNT


@pytest.mark.slow
def test_a_prompt_that_nobody_knows_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """An adapter that misuses its product must not be counted as the product."""

    def unknown(messages: Any) -> Any:
        raise judge.UnknownPromptError("Hm?")

    monkeypatch.setattr(judge, "read", unknown)
    found = measure(OURS[0], ["leak"], 1, None)
    assert "the judge does not know this prompt: 'Hm?'" in found["leak"]["none"]


def test_marks_tell_right_from_wrong_and_calls_from_each_other() -> None:
    right, wrong = facts.answer(12, wrong=False), facts.answer(13, wrong=True)
    assert not facts.canaries(right)
    assert len(facts.rights(right)) == facts.SENTENCES
    assert len(facts.canaries(wrong)) == len(facts.WRONG)
    assert facts.numbers(right + wrong) == {12, 13}
    assert facts.asked_about(facts.question(12)) == 12


def test_a_text_is_supported_by_evidence_that_is_there_and_never_with_a_canary() -> None:
    right, evidence = facts.answer(12, wrong=False), facts.evidence(12)
    assert facts.supported(right, evidence)
    assert not facts.supported(right, evidence[: len(evidence) // 2])
    assert not facts.supported(facts.answer(13, wrong=True), facts.evidence(13))
    assert not facts.supported(facts.answer(13, wrong=True), None)


def test_a_judge_finds_the_text_in_the_prompts_of_adapters() -> None:
    prompt = "Reply with only SUPPORTED or UNSUPPORTED.\nEvidence: {}\nAnswer: {}\nVerdict:"
    for at in (12, 13):
        said = prompt.format(facts.evidence(at), facts.answer(at, facts.is_wrong(at)))
        read = judge.read([{"role": "user", "content": said}])
        verdict = facts.supported(read.text, read.evidence)
        assert verdict is not facts.is_wrong(at)
        assert read.reply(verdict) == ("SUPPORTED" if verdict else "UNSUPPORTED")


def test_a_judge_of_the_products_own_has_rows_that_say_what_could_not_be_checked() -> None:
    (own,) = (guard for guard in GUARDS if guard.name == "demur-small")
    assert own.judges_itself
    found = measure(own, ["fails", "forged"], 1, None)  # Neither check starts an adapter.
    told = {"wrong": 5, "leaked": 0, "right": 5, "whole": 5}
    found["padding"] = {"answer": {"none": "not run"}, "evidence": {**told, "seen": None}}
    text = markdown([own], {own.name: found}, "demur 1", date(2026, 11, 27))
    assert "| `demur-small` | the judge has no endpoint that could fail |" in text
    assert "| `demur-small` | the judge has no prompt |  |" in text
    assert "| `demur-small` | not run |  | judges itself | 0 of 5, 5 of 5 |" in text


def test_the_table_tells_how_long_hanging_calls_were_waited_for() -> None:
    told = {"wrong": 5, "leaked": 0, "right": 5, "whole": 4, "wall": 900.0, "patience": 900.0}
    told |= {"errors": {}, "hung": 1, "mixed": 0, "mixed prompts": 0, "requests": {"chain": 10}}
    results = {OURS[0].name: {"crowd": {"whole": told}}}
    text = markdown(OURS[:1], results, "demur 1", date(2026, 11, 27))
    assert "| 0 of 5, 4 of 5, **1 not done after 900 s** | 900.0 |" in text


def test_the_table_has_counts_and_why_a_check_found_nothing() -> None:
    told = {"wrong": 20, "leaked": 3, "right": 20, "whole": 19}
    leak = {"whole": told, "put right": {"wrong": 20, "whole": 5}}
    results = {
        OURS[0].name: {"leak": leak, "cancel": {"none": "it has ended"}},
        OURS[1].name: {"leak": {"none": "pip: no such release"}},
    }
    text = markdown(OURS[:2], results, "demur 1", date(2026, 11, 25))
    assert f"| `{OURS[0].name}` | **3** of 20, 19 of 20 |  |  |  |  | 5 of 20 |" in text
    assert f"| `{OURS[1].name}` | pip: no such release |" in text
    assert f"| `{OURS[0].name}` | it has ended |" in text
    assert "2026-11-25" in text
    assert "### padding" not in text
