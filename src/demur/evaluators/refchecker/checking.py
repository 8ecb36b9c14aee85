"""Label each claim against each window of the references (RefChecker, section 3.2).

This is the second stage. The four checkers have the same shape: they take claims and windows, and
return one `WindowFinding` for each window and claim.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from demur._text import count_tokens
from demur._undetermined import UndeterminedError
from demur.evaluators.refchecker.context import AskedClaim
from demur.evaluators.refchecker.labels import parse_label, parse_numbered_labels
from demur.evaluators.refchecker.references import Window, window_text
from demur.local import load_measured, save_measured
from demur.prompting import (
    Calibration,
    Prompt,
    label_logprobs,
    mean_bias,
    probabilities,
    without_echo,
)
from demur.runtime import ChatCall, LocalCall, Outcome, PerModel, Reply, Steps, ask, ask_all
from demur.schema import ClaimLabel
from demur.similarity import NLI

# With more claims in one request, or longer ones, models begin to skip claims.
_GROUP_CLAIMS = 20
_GROUP_TOKENS = 600
# The lowest probability with which a claim counts as supported. To let a wrong claim pass is the
# worse mistake, and a label with a probability of 0.5 is wrong half of the time. docs/results.md
# has the figures.
SURE = 0.85


@dataclass(frozen=True)
class WindowFinding:
    """Hold the label of one claim against one window."""

    label: ClaimLabel | None = None
    probabilities: Mapping[ClaimLabel, float] | None = None
    error: str | None = None
    """Why there is no label."""


Findings = Sequence[Sequence[WindowFinding]]
"""The findings by window, then by claim."""
Checker = Callable[[Sequence[AskedClaim], Sequence[Window], str | None], Steps[Findings]]
"""A function from claims, windows and the question to findings."""


def joint(model: BaseChatModel, prompt: Prompt) -> Checker:
    """Check all claims of a group in one request for each window.

    If the reply has no label for some claims, these are asked about again under the same numbers,
    in groups half as large. That goes on until a request holds one claim; then the label stays
    missing. A claim that was alone in its first request is asked about once more.
    """

    def check(
        claims: Sequence[AskedClaim], windows: Sequence[Window], question: str | None
    ) -> Steps[Findings]:
        def call(window: Window, group: Sequence[int]) -> ChatCall:
            listed = "\n".join(f"{at + 1}. {text}" for at, text in listed_texts(group))
            shown = prompt.messages(reference=window_text(window), question=question, claims=listed)
            return ChatCall(model, shown, "checking")

        def listed_texts(group: Sequence[int]) -> list[tuple[int, str]]:
            return [(at, claims[at].text if at - 1 in group else claims[at].alone) for at in group]

        findings = [[WindowFinding() for _ in claims] for _ in windows]
        requests = list(product(range(len(windows)), _groups(claims)))
        need_numbers = False
        while requests:
            outcomes = yield from ask_all([call(windows[at], group) for at, group in requests])
            again: list[tuple[int, list[int]]] = []
            for (at, group), outcome in zip(requests, outcomes, strict=True):
                shown = [window_text(windows[at]), *(text for _, text in listed_texts(group))]
                joint = _joint_findings(outcome, group, shown, need_numbers)
                for number, finding in joint.items():
                    findings[at][number] = finding
                unlabelled = [number for number in group if joint[number].label is None]
                if outcome.error is None and (len(group) > 1 or not need_numbers):
                    half = -(-len(group) // 2)
                    again += [(at, part) for part in _parts(unlabelled, half)]
            # After a reply that lost count, the next one has to number its labels.
            requests, need_numbers = again, True
        return findings

    return check


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

    return check


_kept_biases: PerModel[Mapping[ClaimLabel, float]] = PerModel()


def logprobs(model: BaseChatModel, prompt: Prompt, calibration: Calibration) -> Checker:
    """Check each claim in each window by itself, by the log-probabilities of the first token.

    The label's bias is subtracted from its log-probability. The bias is the mean log-probability
    over fixed claims for which no label is more likely than another. It is measured once for each
    model and prompt and kept in this process. For the local model, whose weights are identified by
    a hash, later processes use it too. A claim is supported if Entailment has a probability of 0.85
    or more. Otherwise it gets the more likely of the other labels.
    """
    options = {"logprobs": True, "top_logprobs": 20, "max_tokens": 1}
    kept_under = (prompt, calibration)

    def check(
        claims: Sequence[AskedClaim], windows: Sequence[Window], question: str | None
    ) -> Steps[Findings]:
        bias = _known_bias(model, kept_under)
        # Asked once: another thread may measure the bias in between.
        fixed = [
            ChatCall(model, messages, "calibration", options)
            for messages in (_fixed(prompt, calibration) if bias is None else ())
        ]
        calls = _single_calls(model, prompt, claims, windows, question, options)
        outcomes = yield from ask_all([*fixed, *calls])
        if bias is None:
            try:
                measured = mean_bias([_logprobs(outcome) for outcome in outcomes[: len(fixed)]])
            except UndeterminedError as error:
                unmeasured = WindowFinding(error=f"the label bias could not be measured: {error}")
                return [[unmeasured] * len(claims) for _ in windows]
            bias = _kept_biases.setdefault(model, kept_under, lambda: measured)
            save_measured(model, kept_under, {str(label): value for label, value in bias.items()})
        findings = [_logprob_finding(outcome, bias) for outcome in outcomes[len(fixed) :]]
        return _by_window(findings, len(claims))

    return check


def unmeasured_bias(
    model: BaseChatModel, prompt: Prompt, calibration: Calibration
) -> list[list[BaseMessage]]:
    """Return the prompts with which `logprobs` measures the labels' bias; none once it is known."""
    known = _known_bias(model, (prompt, calibration)) is not None
    return [] if known else _fixed(prompt, calibration)


def _fixed(prompt: Prompt, calibration: Calibration) -> list[list[BaseMessage]]:
    cases = calibration.cases
    return [prompt.messages(reference=reference, claim=claim) for reference, claim in cases]


def _known_bias(model: BaseChatModel, key: Hashable) -> Mapping[ClaimLabel, float] | None:
    """Return the bias measured in this process, or in an earlier one with the same weights."""
    known = _kept_biases.get(model, key)
    if (
        known is None
        and (saved := load_measured(model, key))
        and saved.keys() == {*map(str, ClaimLabel)}
    ):
        stored = {label: saved[str(label)] for label in ClaimLabel}
        known = _kept_biases.setdefault(model, key, lambda: stored)
    return known


def nli(scorer: NLI) -> Checker:
    """Check all pairs of window and claim at once with a cross-encoder."""

    def check(
        claims: Sequence[AskedClaim], windows: Sequence[Window], question: str | None
    ) -> Steps[Findings]:
        pairs = [(window_text(window), claim.alone) for window in windows for claim in claims]
        call = LocalCall(partial(scorer.predict, pairs), "checking")
        try:
            predicted = yield from ask(call, "the NLI model failed")
        except UndeterminedError as error:
            return [[WindowFinding(error=str(error))] * len(claims) for _ in windows]
        findings = [
            WindowFinding(max(shares, key=shares.__getitem__), shares) for shares in predicted
        ]
        return _by_window(findings, len(claims))

    return check


def estimate(
    prompt: Prompt,
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
    frame = prompt_tokens(prompt.messages(reference=".", question=question, claim=".", claims="."))
    calls = tokens = 0
    for claims, windows in asked:
        texts = [claim.alone for claim in claims]
        requests = len(_groups(claims)) if together else len(claims)
        calls += requests * len(windows)
        tokens += len(windows) * (requests * frame + sum(map(count_tokens, texts)))
        tokens += requests * sum(count_tokens(window_text(window)) for window in windows)
    return calls, tokens


def prompt_tokens(messages: Iterable[BaseMessage]) -> int:
    """Estimate the tokens of a prompt."""
    return sum(count_tokens(str(message.content)) for message in messages)


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


def _parts(numbers: Sequence[int], size: int) -> list[list[int]]:
    return [list(numbers[at : at + size]) for at in range(0, len(numbers), size)]


def _joint_findings(
    outcome: Outcome[Reply], group: Sequence[int], shown: Sequence[str], need_numbers: bool
) -> dict[int, WindowFinding]:
    if outcome.error is not None:
        return {at: WindowFinding(error=outcome.error) for at in group}
    text = without_echo(_whole_lines(outcome.value), shown)
    labels = parse_numbered_labels(text, [at + 1 for at in group], need_numbers)
    return {number - 1: _finding(label, outcome.value) for number, label in labels.items()}


def _whole_lines(reply: Reply) -> str:
    """Return the reply without a line that was cut, since a label in it may be incomplete."""
    return reply.text.rpartition("\n")[0] if reply.truncated else reply.text


def _finding(label: ClaimLabel | str, reply: Reply) -> WindowFinding:
    if isinstance(label, ClaimLabel):
        return WindowFinding(label)
    cut = ", and was cut at the token limit (max_tokens)" if reply.truncated else ""
    return WindowFinding(error=f"{label}{cut}")


def _logprobs(outcome: Outcome[Reply]) -> Mapping[ClaimLabel, float]:
    reply = outcome.value
    if reply.reasoned:
        raise UndeterminedError(
            "the model reasons before it answers, so that the first token is no label: choose "
            "checker='joint' or 'per_claim'"
        )
    return label_logprobs(reply.first_token)


def _logprob_finding(outcome: Outcome[Reply], bias: Mapping[ClaimLabel, float]) -> WindowFinding:
    try:
        measured = _logprobs(outcome)
    except UndeterminedError as error:
        return WindowFinding(error=str(error))
    shares = probabilities({label: value - bias[label] for label, value in measured.items()})
    if shares[ClaimLabel.ENTAILMENT] >= SURE:
        return WindowFinding(ClaimLabel.ENTAILMENT, shares)
    others = (ClaimLabel.CONTRADICTION, ClaimLabel.NEUTRAL)
    return WindowFinding(max(others, key=shares.__getitem__), shares)
