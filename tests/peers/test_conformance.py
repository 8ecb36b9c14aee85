"""The conformance suite, with demur's own guards: what the published table says of them holds."""

from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any

import pytest
from peers.conformance import facts, judge
from peers.conformance.__main__ import measure
from peers.conformance.checks import CHECKS
from peers.conformance.guards import GUARDS
from peers.conformance.runner import calls, running
from peers.conformance.server import serving
from peers.conformance.table import markdown

pytestmark = pytest.mark.xdist_group("conformance")  # which measures once for all

COUNT = 1
"""Wrong answers of a leak check, in each mode; calls at once are 25 times as many."""
OURS = [guard for guard in GUARDS if guard.name.startswith("demur")]
NAMES = [guard.name for guard in OURS]
WHOLE = [name for name in NAMES if "sentence" not in name]
"""Those that need not be tried with sentences too, to whole answers of which that is the same."""
Found = dict[str, Any]


def checks(name: str) -> list[str]:
    return [
        check for check in CHECKS if name in WHOLE or check not in ("padding", "crowd", "forged")
    ]


@pytest.fixture(scope="module")
def found() -> dict[str, Found]:
    with ThreadPoolExecutor(len(OURS)) as pool:
        measured = pool.map(lambda guard: measure(guard, checks(guard.name), COUNT, None), OURS)
        return dict(zip(NAMES, measured, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_a_wrong_answer_arrives_in_any_mode_and_right_ones_arrive_whole(
    found: dict[str, Found], name: str
) -> None:
    told = found[name]["leak"]
    again = told.pop("put right")
    assert {"whole", "stream", "astream"} <= set(told)
    assert all(one["leaked"] == 0 and one["whole"] == COUNT for one in told.values())
    tries_again = name != "demur-one-call"
    assert again == {"wrong": COUNT, "whole": COUNT * tries_again, "leaked": 0}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_judge_that_fails_lets_nothing_through_and_keeps_nobody_waiting(
    found: dict[str, Found], name: str
) -> None:
    assert len(found[name]["fails"]) == 10  # five ways to fail, whole and streamed
    for told in found[name]["fails"].values():
        fate = "raised" if name == "demur-one-call" else "blocked"
        assert told["wrong"] == told["right"] == {fate: 1}


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("where", ["answer", "evidence"])
def test_a_wrong_sentence_is_found_amid_padding_and_a_right_answer_passes(
    found: dict[str, Found], name: str, where: str
) -> None:
    told = found[name]["padding"][where]
    assert (told["seen"], told["leaked"], told["whole"]) == (1, 0, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE)
def test_calls_at_once_get_each_its_own_verdict(found: dict[str, Found], name: str) -> None:
    for told in found[name]["crowd"].values():
        assert told["whole"] == told["right"]
        assert told["leaked"] == told["mixed"] == told["mixed prompts"] == told["hung"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_nothing_goes_on_for_clients_that_went_away(found: dict[str, Found], name: str) -> None:
    for told in found[name]["cancel"].values():
        assert not any(told["open"].values())
        assert (told["tasks"], told["threads"], told["next"]) == (0, 0, True)


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE)
def test_an_answer_cannot_close_its_own_section(found: dict[str, Found], name: str) -> None:
    assert (found[name]["forged"]["seen"], found[name]["forged"]["leaked"]) == (1, 0)


@pytest.mark.slow
def test_five_hundred_at_once_are_all_judged_right() -> None:
    with serving() as server, running(OURS[0]) as adapter:
        told = CHECKS["crowd"](adapter, server, ("whole",), 20)["whole"]
    assert (told["wrong"], told["right"], told["whole"]) == (250, 250, 250)
    assert told["leaked"] == told["mixed"] == told["mixed prompts"] == told["hung"] == 0


@pytest.mark.slow
def test_without_a_guard_everything_leaks() -> None:
    (control,) = (guard for guard in GUARDS if guard.name == "none")
    told = measure(control, ["leak", "cancel"], COUNT, None)
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


def test_padding_surrounds_a_wrong_sentence_or_the_evidence() -> None:
    padded = facts.answer(facts.PADDED_ANSWER.start + 1, wrong=True)
    first = padded.index("cn")
    assert first > facts.PADDING // 3
    assert len(padded) - first > facts.PADDING // 3
    assert len(facts.evidence(facts.PADDED_EVIDENCE.start)) > facts.PADDING
    assert len(calls([12], "")[0]["contexts"][0]) < facts.PADDING // 10


def test_a_judge_finds_the_text_in_the_prompts_of_adapters() -> None:
    prompt = "Reply with only SUPPORTED or UNSUPPORTED.\nEvidence: {}\nAnswer: {}\nVerdict:"
    for at in (12, 13):
        said = prompt.format(facts.evidence(at), facts.answer(at, facts.is_wrong(at)))
        read = judge.read([{"role": "user", "content": said}])
        verdict = facts.supported(read.text, read.evidence)
        assert verdict is not facts.is_wrong(at)
        assert read.reply(verdict) == ("SUPPORTED" if verdict else "UNSUPPORTED")


def test_a_prompt_that_the_judge_does_not_know_is_an_error() -> None:
    with pytest.raises(judge.UnknownPromptError):
        judge.read([{"role": "user", "content": "Is it so?"}])


def test_the_table_has_counts_and_why_a_check_found_nothing() -> None:
    told = {"wrong": 20, "leaked": 3, "right": 20, "whole": 19}
    leak = {"whole": told, "put right": {"wrong": 20, "whole": 5}}
    results = {
        NAMES[0]: {"leak": leak, "cancel": {"none": "it has ended"}},
        NAMES[1]: {"leak": {"none": "pip: no such release"}},
    }
    text = markdown(OURS[:2], results, "demur 1", date(2026, 11, 25))
    assert f"| `{NAMES[0]}` | **3** of 20, 19 of 20 |  |  |  |  | 5 of 20 |" in text
    assert f"| `{NAMES[1]}` | pip: no such release |" in text
    assert f"| `{NAMES[0]}` | it has ended |" in text
    assert "2026-11-25" in text
    assert "### padding" not in text
