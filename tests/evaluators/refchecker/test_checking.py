"""Test checkers: repeated requests, log-probabilities, and when claims pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage

from demur.evaluators.refchecker.checking import Checker, Findings, joint, logprobs, per_claim
from demur.evaluators.refchecker.context import AskedClaim
from demur.evaluators.refchecker.prompts import JOINT, LOGPROBS, PER_CLAIM
from demur.evaluators.refchecker.references import pack, passages
from demur.runtime import drive
from demur.schema import ClaimLabel
from support.fakes import ScriptedModel, isolated, weighing

E, N, C = ClaimLabel.ENTAILMENT, ClaimLabel.NEUTRAL, ClaimLabel.CONTRADICTION
WINDOWS = pack(passages([Document(page_content="A reference.")], None, 100, 0), 100)


def model(shares: dict[str, dict[ClaimLabel, float]]) -> ScriptedModel:
    """Return a model whose first token has these probabilities, by claim."""

    def script(stage: str, messages: Sequence[BaseMessage]) -> AIMessage:
        found = shares[isolated("claim", messages)]
        if not found:
            return AIMessage("x", response_metadata={"logprobs": None})
        return weighing("x", {str(label)[:4]: math.log(p) for label, p in found.items()})

    return ScriptedModel(script=script)


def findings(checker: Checker, claims: Sequence[str]) -> Findings:
    asked = [AskedClaim(claim, claim) for claim in claims]
    (found,) = drive(checker([(asked, WINDOWS)], None), {}, None)[0]
    return found


def check(chat: ScriptedModel, claims: Sequence[str]) -> Findings:
    return findings(logprobs(chat, LOGPROBS, 0.85, {}), claims)


@pytest.mark.parametrize(
    ("shares", "label"),
    [
        ({E: 0.86, N: 0.1, C: 0.04}, E),
        ({E: 0.84, N: 0.1, C: 0.06}, N),
        ({E: 0.5, N: 0.2, C: 0.3}, C),
        ({E: 0.1, N: 0.5, C: 0.4}, N),
    ],
)
def test_a_claim_is_supported_only_when_that_is_sure(
    shares: dict[ClaimLabel, float], label: ClaimLabel
) -> None:
    chat = model({"claim": shares})
    ((found,),) = check(chat, ["claim"])
    assert found.label is label
    assert found.probabilities == pytest.approx(shares)
    assert len(chat.requests) == 1


def test_without_logprobs_there_is_no_label_and_a_way_out_is_named() -> None:
    ((found,),) = check(model({"claim": {}}), ["claim"])
    assert found.label is None
    assert "checker='joint'" in str(found.error)


@pytest.mark.parametrize("checker", [joint, per_claim])
@pytest.mark.parametrize(
    ("replies", "label", "requests"),
    [
        (["1. Entailment"], E, 1),
        (["Hm.", "1. Contradiction"], C, 2),
        (["", "Hm.", "1. Contradiction"], None, 2),
    ],
)
def test_a_lone_claim_without_a_label_is_asked_for_once_more(
    checker: Any, replies: list[str], label: ClaimLabel | None, requests: int
) -> None:
    chat = ScriptedModel(script=lambda stage, messages: replies[len(chat.requests) - 1])
    prompt = JOINT if checker is joint else PER_CLAIM
    ((found,),) = findings(checker(chat, prompt), ["claim"])
    assert found.label is label
    assert len(chat.requests) == requests
