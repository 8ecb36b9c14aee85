"""Label claims with a decision model, which answers typed questions about a state.

The texts under judgement stand in the state alone. The questions name a claim by its number.
"""

from __future__ import annotations

import json
import math
from typing import Any

from langchain_core.messages import HumanMessage

from demur._text import count_tokens
from demur.evaluators.refchecker import checking
from demur.evaluators.refchecker.checking import Answers, Checker, Listed, WindowFinding
from demur.evaluators.refchecker.prompts import DECISION, DECISION_LABELS
from demur.evaluators.refchecker.references import Window, window_text
from demur.runtime import ChatCall, DecisionModel, Outcome, Reply
from demur.runtime.prompting import as_shown
from demur.schema import NLI_LABELS, ClaimLabel
from demur.schema.fingerprints import digest

_SUPPORTED_FROM = 0.5
QUESTIONS = f"decision=#{digest((DECISION, DECISION_LABELS, _SUPPORTED_FROM))}"
"""The fingerprint of the questions, and of how their answers are read."""
OF_CLAIM = count_tokens(json.dumps([DECISION.system, DECISION_LABELS]))
"""The tokens of the question about a claim, estimated."""
_UNUSABLE = (
    "the decision model's probabilities cannot be used: expected one for each of the three labels "
    "and for nothing else, none of them negative, with a finite sum greater than 0"
)
_NO_SHARES = (
    "the decision model gave no probabilities, which a threshold on the support of each claim "
    "needs: leave it out, or choose a model that gives probabilities"
)


def decided(model: DecisionModel, supported_from: float | None) -> Checker:
    """Check all claims of a group in one request for each window, with a question for each claim.

    Claims without a usable answer are asked about again (`checking.in_groups`). So are claims whose
    request was refused for what it held: the model may take fewer questions at a time.

    Args:
        model: The model.
        supported_from: The probability from which a claim is supported. None: 0.5, and if the model
            gives no probabilities, its choice labels the claim.
    """

    def call(window: Window, question: str | None, listed: Listed) -> ChatCall:
        return ChatCall(model, [_asked(window_text(window), question, listed)], "checking")

    def read(outcome: Outcome[Reply], window: Window, listed: Listed, first: bool) -> Answers:
        if outcome.error is not None:
            smaller = [*listed] if outcome.refused and len(listed) > 1 else []
            return dict.fromkeys(listed, WindowFinding(error=outcome.error)), smaller
        answers = json.loads(outcome.value.text)
        found = {at: _finding(answers.get(f"claim_{at}"), supported_from) for at in listed}
        unread = [at for at, finding in found.items() if finding.error not in (None, _NO_SHARES)]
        return found, unread

    return checking.in_groups(call, read)


def _asked(reference: str, question: str | None, listed: Listed) -> HumanMessage:
    """Return state and questions as JSON, as `DecisionModel` reads them."""
    asked = {"question": as_shown(question)} if question else {}
    claims = {str(at): as_shown(text) for at, text in listed.items()}
    state = {"reference": as_shown(reference), **asked, "claims": claims}
    told = {f"claim_{at}": DECISION.system.format(number=at) for at in listed}
    questions = {at: {"instructions": told[at], "criteria": DECISION_LABELS} for at in told}
    return HumanMessage(json.dumps({"state": state, "questions": questions}, ensure_ascii=False))


def _finding(answer: Any, supported_from: float | None) -> WindowFinding:
    if answer is None:
        return WindowFinding(error="the decision model's reply has no answer about this claim")
    if answer["choice"] not in DECISION_LABELS:
        return WindowFinding(error="the decision model chose none of the labels")
    if not (given := answer["probabilities"]):
        chosen = WindowFinding(ClaimLabel(answer["choice"]))
        return chosen if supported_from is None else WindowFinding(error=_NO_SHARES)
    total = sum(given.values())
    if {*given} != {*DECISION_LABELS} or min(given.values()) < 0 or not 0 < total < math.inf:
        return WindowFinding(error=_UNUSABLE)
    shares = {label: given[label.value] / total for label in NLI_LABELS}
    least = _SUPPORTED_FROM if supported_from is None else supported_from
    return WindowFinding(checking.label_of(shares, least), shares)
