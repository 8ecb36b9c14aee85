"""Label each claim against each window of the references (RefChecker, section 3.2).

This is the second stage. The checkers have the same shape: they take groups of claims and windows,
and return one `WindowFinding` for each window and claim of a group. Those that ask a chat model are
here; `classifying.py` has the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeVar

from langchain_core.language_models import BaseChatModel

from demur._text import count_tokens
from demur.evaluators.refchecker.context import AskedClaim
from demur.evaluators.refchecker.labels import parse_label, parse_numbered_labels
from demur.evaluators.refchecker.references import Window, window_text
from demur.runtime import (
    ChatCall,
    Outcome,
    Reply,
    Steps,
    UndeterminedError,
    ask_all,
    side_by_side,
)
from demur.runtime.prompting import Prompt, label_shares, without_echo
from demur.schema import ClaimLabel
from demur.similarity import YesNoJudge

T = TypeVar("T")

# With more claims in one request, or longer ones, models begin to skip claims.
_GROUP_CLAIMS = 20
_GROUP_TOKENS = 600


@dataclass(frozen=True)
class WindowFinding:
    """Hold the label of one claim against one window."""

    label: ClaimLabel | None = None
    probabilities: Mapping[ClaimLabel, float] | None = None
    error: str | None = None
    """Why there is no label."""


Findings = Sequence[Sequence[WindowFinding]]
"""The findings by window, then by claim."""
Group = tuple[Sequence[AskedClaim], Sequence[Window]]
"""Claims, and the windows that each of them is checked against."""
Checker = Callable[[Sequence[Group], str | None], Steps[list[Findings]]]
"""A function from groups and the question to the findings of each group."""
_OfGroup = Callable[[Sequence[AskedClaim], Sequence[Window], str | None], Steps[Findings]]


def _side_by_side(check: _OfGroup) -> Checker:
    """Return the checker of several groups that checks each group by itself."""

    def check_all(groups: Sequence[Group], question: str | None) -> Steps[list[Findings]]:
        return side_by_side([check(claims, windows, question) for claims, windows in groups])

    return check_all


def joint(model: BaseChatModel, prompt: Prompt) -> Checker:
    """Check all claims of a group in one request for each window.

    If the reply has no label for some claims, these are asked about again under the same numbers,
    in groups half as large, until a request holds one claim. A claim that was alone in its first
    request is asked about once more.
    """

    def call(window: Window, question: str | None, listed: Mapping[int, str]) -> ChatCall:
        text = "\n".join(f"{number}. {text}" for number, text in listed.items())
        shown = prompt.messages(reference=window_text(window), question=question, claims=text)
        return ChatCall(model, shown, "checking")

    def read(
        outcome: Outcome[Reply], window: Window, listed: Mapping[int, str], first: bool
    ) -> Mapping[int, WindowFinding]:
        if outcome.error is not None:
            return dict.fromkeys(listed, WindowFinding(error=outcome.error))
        text = without_echo(_whole_lines(outcome.value), [window_text(window), *listed.values()])
        # After a reply that lost count, the next one has to number its labels.
        labels = parse_numbered_labels(text, [*listed], not first)
        return {at: _finding(label, outcome.value) for at, label in labels.items()}

    def check(
        claims: Sequence[AskedClaim], windows: Sequence[Window], question: str | None
    ) -> Steps[Findings]:
        def listed(group: Sequence[int]) -> Mapping[int, str]:
            return {n + 1: claims[n].text if n - 1 in group else claims[n].alone for n in group}

        findings = [[WindowFinding() for _ in claims] for _ in windows]
        requests = list(product(range(len(windows)), _groups(claims)))
        first = True
        while requests:
            calls = [call(windows[at], question, listed(group)) for at, group in requests]
            outcomes = yield from ask_all(calls)
            again: list[tuple[int, list[int]]] = []
            for (at, group), outcome in zip(requests, outcomes, strict=True):
                found = read(outcome, windows[at], listed(group), first)
                for number, finding in found.items():
                    findings[at][number - 1] = finding
                if outcome.error is None and (len(group) > 1 or first):
                    unread = [n for n in group if findings[at][n].label is None]
                    again += [(at, part) for part in in_parts(unread, -(-len(group) // 2))]
            requests, first = again, False
        return findings

    return _side_by_side(check)


def per_claim(model: BaseChatModel, prompt: Prompt) -> Checker:
    """Check each claim in each window by itself, and ask once more if a reply has no label."""

    def read(outcome: Outcome[Reply], window: Window, claim: AskedClaim) -> WindowFinding:
        if outcome.error is not None:
            return WindowFinding(error=outcome.error)
        text = without_echo(_whole_lines(outcome.value), [window_text(window), claim.alone])
        return _finding(parse_label(text), outcome.value)

    def check(
        claims: Sequence[AskedClaim], windows: Sequence[Window], question: str | None
    ) -> Steps[Findings]:
        calls = _single_calls(model, prompt, claims, windows, question)
        pairs = list(product(windows, claims))
        findings = [WindowFinding()] * len(calls)
        asked: Sequence[int] = range(len(calls))
        for _ in range(2):
            outcomes = yield from ask_all([calls[at] for at in asked])
            unread: list[int] = []
            for at, outcome in zip(asked, outcomes, strict=True):
                findings[at] = read(outcome, *pairs[at])
                if findings[at].label is None and outcome.error is None:
                    unread.append(at)
            asked = unread
        return _by_window(findings, len(claims))

    return _side_by_side(check)


_NO_SHARES = (
    "the endpoint gives no log-probabilities, which a threshold on the support of each claim "
    "needs: leave it out, or serve the judge where it gives them"
)
_FIRST_TOKEN = {"logprobs": True, "top_logprobs": 20, "max_tokens": 1}


def logprobs(
    model: BaseChatModel,
    prompt: Prompt,
    supported_from: float | None,
    options: Mapping[str, object],
) -> Checker:
    """Check each claim in each window by itself, by the log-probabilities of the first token.

    Args:
        model: The model, whose reply begins with the label.
        prompt: The prompt of the requests.
        supported_from: The probability from which a claim is supported.
        options: Further call options, such as those that switch demur's adapter on.
    """
    options = {**_FIRST_TOKEN, **options}

    def check(
        claims: Sequence[AskedClaim], windows: Sequence[Window], question: str | None
    ) -> Steps[Findings]:
        calls = _single_calls(model, prompt, claims, windows, question, options)
        outcomes = yield from ask_all(calls)
        found = [_by_first_token(outcome, supported_from) for outcome in outcomes]
        return _by_window(found, len(claims))

    return _side_by_side(check)


def answered(model: BaseChatModel, judge: YesNoJudge, supported_from: float | None) -> Checker:
    """Check each claim in each window by itself with a yes-or-no judge at an endpoint.

    An endpoint that refuses to give log-probabilities is asked for the word alone.

    Args:
        model: The chat model that serves the judge.
        judge: How it is asked and read.
        supported_from: The probability from which a claim is supported. None: the judge's limit,
            and if the endpoint gives no log-probabilities, its word labels the claim.
    """

    def check(
        claims: Sequence[AskedClaim], windows: Sequence[Window], question: str | None
    ) -> Steps[Findings]:
        texts = [(window_text(window), one.alone) for window, one in product(windows, claims)]
        calls = [
            ChatCall(
                model,
                judge.messages(reference=text, claim=claim, question=question),
                "checking",
                judge.options_for(text, claim, question),
            )
            for text, claim in texts
        ]
        outcomes = [*(yield from ask_all(calls))]
        refused = [at for at, one in enumerate(outcomes) if one.refused]
        again = [replace(calls[at], options=_by_word(calls[at].options)) for at in refused]
        for at, outcome in zip(refused, (yield from ask_all(again)), strict=True):
            outcomes[at] = outcome
        found = [_by_answer(outcome, judge, supported_from) for outcome in outcomes]
        return _by_window(found, len(claims))

    return _side_by_side(check)


def _by_word(options: Mapping[str, object]) -> dict[str, object]:
    of_tokens = ("logprobs", "top_logprobs")
    return {name: value for name, value in options.items() if name not in of_tokens}


def _by_answer(
    outcome: Outcome[Reply], judge: YesNoJudge, supported_from: float | None
) -> WindowFinding:
    if outcome.error is not None:
        return WindowFinding(error=outcome.error)
    reply = outcome.value
    if (said := judge.said(reply.text, reply.truncated)) is None:
        words = f"{judge.supported} nor {judge.unsupported}"
        return WindowFinding(error=f"the reply of the judge says neither {words}")
    try:
        support = None if reply.reasoned else judge.support(reply.tokens, said)
    except UndeterminedError as error:
        return WindowFinding(error=str(error))
    if support is not None:
        shares = {ClaimLabel.ENTAILMENT: support, ClaimLabel.UNSUPPORTED: 1 - support}
        least = judge.limit if supported_from is None else supported_from
        return WindowFinding(label_of(shares, least), shares)
    if supported_from is not None:
        return WindowFinding(error=_NO_SHARES)
    return WindowFinding(ClaimLabel.ENTAILMENT if said else ClaimLabel.UNSUPPORTED)


def label_of(shares: Mapping[ClaimLabel, float], supported_from: float | None) -> ClaimLabel:
    """Return the label that the probabilities of the labels give a claim.

    Args:
        shares: The probability of each label.
        supported_from: The probability of Entailment from which the claim is supported. Below it,
            the claim gets the more likely of the other labels. None: the claim gets the most likely
            label.
    """
    if supported_from is None:
        return max(shares, key=shares.__getitem__)
    if shares[ClaimLabel.ENTAILMENT] >= supported_from:
        return ClaimLabel.ENTAILMENT
    others = (ClaimLabel.CONTRADICTION, ClaimLabel.NEUTRAL, ClaimLabel.UNSUPPORTED)
    return max(filter(shares.__contains__, others), key=shares.__getitem__)


def estimate(
    prompt: Prompt | YesNoJudge,
    asked: Iterable[tuple[Sequence[AskedClaim], Sequence[Window]]],
    question: str | None,
    together: bool,
) -> tuple[int, int]:
    """Estimate the number of requests for claims and windows, and the tokens of their prompts.

    Requests that are repeated, for a missing label or after a failure, are not counted.

    Args:
        prompt: The prompt of the requests.
        asked: Groups of claims, each with the windows that its claims are checked against.
        question: The question that was answered.
        together: Whether a request lists several claims, as in `joint`.
    """
    messages = prompt.messages(reference=".", question=question, claim=".", claims=".")
    frame = sum(count_tokens(str(message.content)) for message in messages)
    calls = tokens = 0
    for claims, windows in asked:
        texts = [claim.alone for claim in claims]
        requests = len(_groups(claims)) if together else len(claims)
        calls += requests * len(windows)
        tokens += len(windows) * (requests * frame + sum(map(count_tokens, texts)))
        tokens += requests * sum(count_tokens(window_text(window)) for window in windows)
    return calls, tokens


def _single_calls(
    model: BaseChatModel,
    prompt: Prompt,
    claims: Sequence[AskedClaim],
    windows: Sequence[Window],
    question: str | None,
    options: Mapping[str, object] | None = None,
) -> list[ChatCall]:
    # Ordered by window, so that a server with one prefix cache reads each reference once.
    return [
        ChatCall(
            model,
            prompt.messages(reference=window_text(window), question=question, claim=claim.alone),
            "checking",
            options or {},
        )
        for window in windows
        for claim in claims
    ]


def _by_window(findings: Sequence[WindowFinding], claims: int) -> Findings:
    return [findings[at : at + claims] for at in range(0, len(findings), claims)]


def _groups(claims: Sequence[AskedClaim]) -> list[list[int]]:
    """Return the claims' indices in groups, each of which fits into one request."""
    groups: list[list[int]] = []
    total = 0
    for at, claim in enumerate(claims):
        tokens = count_tokens(claim.alone)
        full = groups and (len(groups[-1]) == _GROUP_CLAIMS or total + tokens > _GROUP_TOKENS)
        if not groups or full:
            groups.append([])
            total = 0
        groups[-1].append(at)
        total += tokens
    return groups


def in_parts(items: Sequence[T], size: int) -> list[list[T]]:
    """Return items in lists of at most `size`, in order."""
    return [list(items[at : at + size]) for at in range(0, len(items), size)]


def _whole_lines(reply: Reply) -> str:
    """Return the reply without a line that was cut, since a label in it may be incomplete."""
    return reply.text.rpartition("\n")[0] if reply.truncated else reply.text


def _finding(label: ClaimLabel | str, reply: Reply) -> WindowFinding:
    if isinstance(label, ClaimLabel):
        return WindowFinding(label)
    cut = ", and was cut at the token limit (max_tokens)" if reply.truncated else ""
    return WindowFinding(error=f"{label}{cut}")


def _by_first_token(outcome: Outcome[Reply], supported_from: float | None) -> WindowFinding:
    if outcome.error is not None:
        return WindowFinding(error=outcome.error)
    if outcome.value.reasoned:
        return WindowFinding(
            error="the model reasons before it answers, so that the first token is no label: "
            "choose checker='joint' or 'per_claim'"
        )
    try:
        shares = label_shares(outcome.value.first_token)
    except UndeterminedError as error:
        return WindowFinding(error=str(error))
    return WindowFinding(label_of(shares, supported_from), shares)
