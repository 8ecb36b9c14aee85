"""Test a judge at an address: what it is asked, what it is believed, and what never passes."""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.runnables.utils import AddableDict

from demur import CallPolicy, ClaimLabel, Evaluation, Guard, RefChecker, resolve_model
from demur.cli import run
from demur.schema import NLI_LABELS
from support import facts
from support.clock import Clock
from support.faults import BROKEN
from support.judging import (
    KNOWN,
    claim_of,
    in_llama_cpps_form,
    judging,
    labelled,
    without_adapter,
)
from support.openai_server import Answer, OpenAIServer, openai_server
from support.streams import Telling, under
from support.waiting import NEVER

E, N, C = ClaimLabel.ENTAILMENT, ClaimLabel.NEUTRAL, ClaimLabel.CONTRADICTION
SAMPLE = {"answer": "It opens at nine.", "contexts": ["The gate opens at nine."]}
ONE_TRY = CallPolicy(attempts=1, timeout=30)


def check(server: OpenAIServer, policy: CallPolicy = ONE_TRY) -> Evaluation:
    return RefChecker(server.judge, call_policy=policy).invoke(SAMPLE)


# -- What it says ----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [lambda answer: answer, in_llama_cpps_form], ids=["raw", "probs"])
@pytest.mark.parametrize("label", [*NLI_LABELS])
def test_a_claim_has_the_label_and_the_probability_of_the_reply(
    label: ClaimLabel, form: Any
) -> None:
    script = judging(lambda claim: label)
    with openai_server(lambda request, number: form(script(request, number))) as server:
        found = check(server)
    (claim,) = found.claims
    assert claim.label is label
    likely, others = math.exp(-0.1), math.exp(-5.0)
    share = (likely if label is E else others) / (likely + 2 * others)
    assert claim.support == pytest.approx(share)
    assert found.passed is (label is E)
    assert found.details["checker"] == "adapter"


def test_only_the_three_tokens_count() -> None:
    def script(request: dict[str, Any], number: int) -> Answer:
        answer = judging(lambda claim: E)(request, number)
        return replace(answer, first_token={"Con": -0.01, **(answer.first_token or {})})

    with openai_server(script) as server:
        found = check(server)
    assert found.passed is True
    assert found.score is not None
    assert found.score > 0.95


def test_sync_async_and_threads_agree() -> None:
    async def gather(checker: RefChecker) -> list[Evaluation]:
        return await asyncio.gather(*(checker.ainvoke(facts.sample(at)) for at in range(6)))

    with openai_server(judging()) as server:
        checker = RefChecker(server.judge)
        with ThreadPoolExecutor(6) as pool:
            sync = list(pool.map(checker.invoke, map(facts.sample, range(6))))
        both = [sync, asyncio.run(gather(checker))]
    for found in both:
        assert [facts.grade(at, one) for at, one in enumerate(found)] == ["right"] * 6


def test_it_is_asked_for_the_three_tokens_alone_with_the_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DEMUR_JUDGE_KEY", "a key of ours")
    with openai_server(judging(lambda claim: E)) as server:
        checker = RefChecker(server.judge)
        checker.invoke(SAMPLE)
        assert "a key of ours" not in f"{checker!r}{checker.fingerprints}"
    request = server.requests[-1]
    ids = [2250, 41437, 86907]
    assert (request["model"], request["top_logprobs"], request["temperature"]) == (
        "demur-judge",
        3,
        1.0,
    )
    assert request["allowed_token_ids"] == request["logprob_token_ids"] == ids
    assert [int(token) for token in request["logit_bias"]] == ids
    assert claim_of(request) == SAMPLE["answer"]


# -- What it is believed ---------------------------------------------------------------------------


def test_an_endpoint_shows_once_what_it_is_for_all_claims_of_all_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Clock(monkeypatch, "demur.local.served_judge")  # a second later, it may be asked once more
    with openai_server(judging()) as server:
        checker = RefChecker(server.judge)
        checker.batch([facts.sample(at) for at in range(8)], {"max_concurrency": 8})
        checker.invoke(facts.sample(9))
    asked = [claim_of(request) for request in server.requests]
    assert [asked.count(claim) for claim in KNOWN] == [1, 1]
    assert len(asked) == 2 + 9 * len(facts.ATTRIBUTES)


def test_what_has_no_adapter_labels_nothing() -> None:
    with openai_server(without_adapter) as server:
        found = check(server)
    assert (found.passed, found.score) == (None, None)
    assert "does not judge as demur's adapter: of 'The pool opens" in str(found.error)
    assert "it says 'Contr', expected 'Ent'" in str(found.error)
    assert "demur judge serve" in str(found.error)


def test_what_supports_everything_labels_nothing() -> None:
    with openai_server(lambda request, number: labelled(E)) as server:
        found = check(server)
    assert found.passed is None
    assert "it says 'Ent', expected 'Neutral'" in str(found.error)


def test_a_model_of_another_name_labels_nothing() -> None:
    def script(request: dict[str, Any], number: int) -> Answer:
        return in_llama_cpps_form(judging(lambda claim: E)(request, number), "/models/qwen.gguf")

    with openai_server(script) as server:
        found = check(server)
    assert found.passed is None
    assert "it names its model '/models/qwen.gguf', expected 'demur-judge'" in str(found.error)


@pytest.mark.parametrize(
    "first_token",
    [
        None,
        {"Ent": -0.1, "Contr": -3.0, "Con": -4.0},
        {"Ent": -0.1, "Contr": -3.0, "Neutral": math.inf},
    ],
    ids=["no log-probabilities", "two of three", "not finite"],
)
def test_a_reply_without_the_three_probabilities_is_no_label(
    first_token: dict[str, float] | None,
) -> None:
    with openai_server([Answer("Ent", first_token=first_token)]) as server:
        found = check(server)
    assert found.passed is None
    assert "no probabilities of the tokens Ent, Contr, Neutral" in str(found.error)


def test_one_that_forgets_its_adapter_after_a_failure_labels_nothing() -> None:
    state = {"down": False, "forgot": False}

    def script(request: dict[str, Any], number: int) -> Answer:
        if state["forgot"]:
            return labelled(E if claim_of(request) == SAMPLE["answer"] else C)
        return Answer(cut=True) if state["down"] else judging(lambda claim: E)(request, number)

    with openai_server(script) as server:
        checker = RefChecker(server.judge, call_policy=ONE_TRY)
        assert checker.invoke(SAMPLE).passed is True
        state["down"] = True
        assert checker.invoke(SAMPLE | {"answer": "It opens at ten."}).passed is None
        state["forgot"] = True
        found = checker.invoke(SAMPLE)
    assert found.passed is None
    assert "does not judge as demur's adapter" in str(found.error)


def test_one_that_forgets_its_adapter_is_found_out_within_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch, "demur.local.served_judge")
    answers = [judging(lambda claim: E)]
    with openai_server(lambda request, number: answers[-1](request, number)) as server:
        checker = RefChecker(server.judge, call_policy=ONE_TRY)
        assert checker.invoke(SAMPLE).passed is True
        answers.append(without_adapter)
        clock.go_on(61)
        found = checker.invoke(SAMPLE | {"answer": "The gate opens at nine o'clock."})
    assert found.passed is None
    assert "does not judge as demur's adapter" in str(found.error)


# -- What fails ------------------------------------------------------------------------------------


def test_one_that_hangs_labels_nothing() -> None:
    def script(request: dict[str, Any], number: int) -> Answer:
        answer = judging(lambda claim: E)(request, number)
        return answer if claim_of(request) in KNOWN else replace(answer, held=NEVER)

    with openai_server(script) as server:
        found = check(server, CallPolicy(attempts=1, timeout=2))
    assert found.passed is None
    assert "no reply within 2 s" in str(found.error)


@pytest.mark.slow
@pytest.mark.parametrize("fault", BROKEN)
def test_a_fault_that_passes_is_survived_and_one_that_lasts_is_undetermined(fault: str) -> None:
    def spoiled(most: float, claims: set[str]) -> Evaluation:
        met: list[str] = []

        def script(request: dict[str, Any], number: int) -> Answer:
            answer = judging(lambda claim: E)(request, number)
            if claim_of(request) in claims and len(met) < most:
                met.append(fault)
                return BROKEN[fault](answer)
            return answer

        with openai_server(script) as server:
            found = check(server, CallPolicy(attempts=3, timeout=2, first_delay=0.01))
        assert met
        return found

    for claims in ({SAMPLE["answer"]}, {*KNOWN}):
        assert spoiled(1, {str(one) for one in claims}).passed is True
        lasting = spoiled(math.inf, {str(one) for one in claims})
        assert (lasting.passed, lasting.score) == (None, None)


def test_nothing_listens_there() -> None:
    with openai_server(judging()) as server:
        name = server.judge
    found = RefChecker(name, call_policy=ONE_TRY).invoke(SAMPLE)
    assert found.passed is None
    assert "Nothing answers at 127.0.0.1" in str(found.error)


# -- Its name --------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["", "host:8080", "ftp://host", "http://"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="expected the address of a judge, such as 'judge:http"):
        RefChecker(f"judge:{address}")


@pytest.mark.parametrize(
    "address", ["http://me:pass@host", "http://host?key=secret", "http://host#secret"]
)
def test_a_credential_in_an_address_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(ValueError, match="DEMUR_JUDGE_KEY") as refused:
        RefChecker(f"judge:{address}")
    assert "pass" not in str(refused.value)
    assert "secret" not in str(refused.value)


def test_it_writes_nothing() -> None:
    name = "judge:http://127.0.0.1:9"
    with pytest.raises(ValueError, match="is a judge, and no chat model"):
        resolve_model(name)
    with pytest.raises(ValueError, match="a judge at an address only judges"):
        RefChecker(name, claims="triplets")
    with pytest.raises(ValueError, match="a judge at an address checks the claims itself"):
        RefChecker(name, checker="joint")
    assert RefChecker(name, checker="adapter").fingerprints["claims"] == "sentences"


_WITHOUT_EXTRAS = """
import sys
for package in ("demur_judge", "gguf", "onnxruntime", "starlette", "tokenizers", "xllamacpp"):
    sys.modules[package] = None
from demur import RefChecker
sample = {"answer": "It opens at nine.", "contexts": ["At nine."]}
print(RefChecker(sys.argv[1]).invoke(sample).passed)
"""


def test_who_asks_it_needs_no_extra() -> None:
    with openai_server(judging(lambda claim: E)) as server:
        command = [sys.executable, "-c", _WITHOUT_EXTRAS, server.judge]
        ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    assert ran.stdout == "True\n"


def test_the_command_line_takes_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    with openai_server(judging(lambda claim: C)) as server:
        asked = ["--answer", "It opens at ten.", "--reference", "It opens at nine."]
        code = run(["check", "--model", server.judge, *asked, "--json"])
    assert code == 1
    (claim,) = json.loads(capsys.readouterr().out)["claims"]
    assert claim["label"] == C.value


def test_only_the_detector_by_the_adapter_can_use_it() -> None:
    from demur.comparing import DETECTORS
    from demur.evaluators import resolve_judge

    judge = resolve_judge("judge:http://127.0.0.1:9")
    fitting = {name for name, one in DETECTORS.items() if one.asks and one.unfit(judge) is None}
    assert fitting == {"refchecker-sentences-adapter", "refchecker-triplets-adapter"}
    with pytest.raises(ValueError, match="only judges"):
        DETECTORS["refchecker-triplets-adapter"].make(judge)


# -- In a guard ------------------------------------------------------------------------------------

SECRET = "zebra"
STATES: dict[str, Callable[[Answer], Answer]] = {
    "rejects": lambda answer: labelled(C),
    "has no adapter": lambda answer: labelled(C),
    "supports everything": lambda answer: labelled(E),
    "dies": lambda answer: replace(answer, cut=True),
    "hangs": lambda answer: replace(answer, held=NEVER),
    "is another model": lambda answer: in_llama_cpps_form(answer, "another"),
}


@pytest.mark.slow
@pytest.mark.parametrize("streaming", ["sentence", "buffer", None])
@pytest.mark.parametrize("state", ["is well", *STATES])
def test_what_it_does_not_support_does_not_leave(state: str, streaming: Any) -> None:
    def script(request: dict[str, Any], number: int) -> Answer:
        right = judging(lambda claim: E)(request, number)
        spared = state == "is well" or (state == "rejects" and claim_of(request) in KNOWN)
        return right if spared else STATES[state](right)

    said = f"The {SECRET} sleeps at nine. The {SECRET} is awake at ten."
    chunks = [*under("answer", said), AddableDict(context=["It sleeps at nine, and not at ten."])]
    with openai_server(script) as server:
        checker = RefChecker(server.judge, call_policy=CallPolicy(attempts=2, timeout=2))
        if streaming is None:
            received = str(Guard(Telling(chunks), checker).invoke("When?"))
        else:
            received = str([*Guard(Telling(chunks), checker, streaming=streaming).stream("When?")])
    assert (SECRET in received) is (state == "is well")
