"""Hold what an agent says that it did against the calls that it made.

The calls are among the contexts (`demur.shapes.calls`), and they are all that was done. What a
claim may be judged by depends on what it says:

- A claim that the assistant did something is judged by the calls that were done. A failed call does
  not support it.
- A claim that something failed, or was not done, is judged by all calls.
- Any other claim is judged by results. If these do not support it, it is judged by short calls that
  changed something, too. It is never judged by what the assistant wrote into the arguments of a
  search or a report, nor by an argument that says nearly all of it, for else a model could support
  its own guess by asking for it, or by noting it down.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from demur.evaluators.base import LabelledClaims
from demur.evaluators.refchecker.assertion import beginnings, denies
from demur.evaluators.refchecker.calls import Call, calls_in, calls_like, hiding, quoted
from demur.evaluators.refchecker.languages import likely, nearest, plain
from demur.evaluators.refchecker.units import units
from demur.runtime import Steps, side_by_side
from demur.schema import ActionOutcome, Claim, ClaimLabel, Sample
from demur.shapes import CallStatus, is_users

# A call with longer arguments may hold a whole report.
_MOST_OF_ARGUMENTS = 200
_COPIED = 0.8  # The share of a claim's words in one argument from which it is the claim itself.
# In "e-mailed", the "e" looks like a word of some languages.
_E_MAIL = re.compile(r"\be-mail", re.IGNORECASE)
_CLAUSES = re.compile(r"[,;:!\u2013\u2014\u3002\uff0c\u3001\u060c\u061b\u0964]|\.(?=\s|$)")

_OUTCOMES: Mapping[CallStatus, ActionOutcome] = {
    "done": ActionOutcome.OTHERWISE,
    "failed": ActionOutcome.FAILED,
    "pending": ActionOutcome.PENDING,
    "none": ActionOutcome.NEVER,
}
"""What came of an action that a call refutes."""

Judge = Callable[[Sample, Sequence[int]], Steps[LabelledClaims]]
"""A function from a sample, and the indices of claims, to these claims with labels."""


def label_by_calls(claims: Sequence[Claim], sample: Sample, judge: Judge) -> Steps[LabelledClaims]:
    """Label claims, each by those contexts that it may be judged by.

    Args:
        claims: The claims.
        sample: The sample, with the calls of an agent among its contexts or without.
        judge: A function that labels the claims with the given indices by a sample's references.
    """
    calls = calls_in(sample)
    if not calls:
        return (yield from judge(sample, range(len(claims))))
    reports = [_Report(claim, sample) for claim in claims]
    every_call = tuple(call.at for call in calls)
    said = [at for at, document in enumerate(sample.contexts) if is_users(document)]
    out_of_sight = [
        # The user is believed, but does not know what the assistant did.
        tuple([c.at for c in calls if not report.may_rest_on(c)] + said * report.own)
        for report in reports
    ]
    found: dict[int, tuple[Claim, float]] = {}
    for at, (claim, report) in enumerate(zip(claims, reports, strict=True)):
        if (decided := _without_judge(claim, report, calls)) is not None:
            found[at] = decided, 1.0
    # A claim that is no report is judged by results alone first, as if there were no calls.
    open_at = [at for at in range(len(claims)) if at not in found]
    hidden = {at: out_of_sight[at] if reports[at].own else every_call for at in open_at}
    details = yield from _judge_by_view(hidden, sample, judge, found)
    unsupported = (at for at in open_at if found[at][0].label is not ClaimLabel.ENTAILMENT)
    hidden = {at: out_of_sight[at] for at in unsupported if out_of_sight[at] != hidden[at]}
    before = {at: found[at] for at in hidden}
    details += yield from _judge_by_view(hidden, sample, judge, found)
    found |= {at: one for at, one in before.items() if found[at][0].label is None}
    labelled = []
    for at in range(len(claims)):
        claim, sure = found[at]
        settled = _settled(claim, reports[at], calls)
        labelled.append((settled, sure if settled.label is claim.label else 1.0))
    return LabelledClaims(
        tuple(claim for claim, _ in labelled),
        tuple(sure for _, sure in labelled),
        _together(details),
    )


def _judge_by_view(
    hidden: Mapping[int, tuple[int, ...]],
    sample: Sample,
    judge: Judge,
    found: dict[int, tuple[Claim, float]],
) -> Steps[list[Mapping[str, Any]]]:
    """Put claims with their labels and confidence into `found`, and return the details.

    Args:
        hidden: For the index of each claim, the contexts that it may not be judged by.
        sample: The sample.
        judge: The judge, which is asked once for all claims that may be judged by the same.
        found: What is found, by the index of the claim.
    """
    views: dict[tuple[int, ...], list[int]] = {}
    for at, of_claim in hidden.items():
        views.setdefault(of_claim, []).append(at)
    parts = yield from side_by_side(
        [judge(hiding(sample, view), of_view) for view, of_view in views.items()]
    )
    for of_view, part in zip(views.values(), parts, strict=True):
        found |= zip(of_view, zip(part.claims, part.confidence, strict=True), strict=True)
    return [part.details for part in parts]


def without_calls(sample: Sample) -> Sample:
    """Return the sample with an empty text in place of each call, so that indices stay."""
    return hiding(sample, [call.at for call in calls_in(sample)])


def reports_on_calls(sample: Sample) -> bool:
    """Return whether a sample has calls, and its answer says what was done, or what failed."""
    said = (unit.said for unit in units(sample.answer))
    return bool(calls_in(sample)) and any(_reports(one) or _undone(one) for one in said)


# --- What a claim says ---------------------------------------------------------------------------


class _Report:
    """Hold what a claim says of actions."""

    def __init__(self, claim: Claim, sample: Sample) -> None:
        words = claim.text
        if claim.span is not None and not claim.triplet:  # without a question in front of it
            words = sample.answer[claim.span.start : claim.span.end]
        self.words = words
        self.did = _says(words, "actions.did")
        self.own = _reports(words)
        self.undone = _undone(words)
        self.again = _says(words, "actions.again")

    def may_rest_on(self, call: Call) -> bool:
        """Return whether a call may support the claim."""
        if (call.unfinished and not self.undone) or (call.earlier and self.again):
            return False
        if self.own:
            return True
        if call.status == "none" or call.reads or len(call.arguments) > _MOST_OF_ARGUMENTS:
            return False
        # What one argument says nearly by itself, the assistant wrote: a note, a message.
        wanted = beginnings(self.words)
        return all(len(wanted & said) < _COPIED * len(wanted) for said in call.values)

    @property
    def denies_all(self) -> bool:
        """Return whether each clause says that the assistant did not do something."""
        clauses = (one for one in _CLAUSES.split(self.words) if any(map(str.isalnum, one)))
        return all(
            _says(clause, "actions.did_not") and not _says(clause, "contrast.always")
            for clause in clauses
        )


def _reports(words: str) -> bool:
    return _says(words, "actions.did") or _says(words, "actions.did_not")


def _undone(words: str) -> bool:
    # In some languages "to cancel" is a word that denies; what was done does not count.
    return _says(words, "actions.undone") or denies(_found(words, "actions.did")[1])


def _says(words: str, name: str) -> bool:
    return _found(words, name)[0]


@lru_cache(maxsize=4096)
def _found(words: str, name: str) -> tuple[bool, str]:
    """Return whether a text has a pattern of a list, in its language, and the text without it."""
    said = plain(_E_MAIL.sub("email", words))
    for language in dict.fromkeys((*likely(said), *nearest(said))):
        rest, count = language.pattern(name, whole_words=True).subn(" ", language.rewritten(said))
        if count:
            return True, rest
    return False, said


# --- Decisions -----------------------------------------------------------------------------------


def _without_judge(claim: Claim, report: _Report, calls: Sequence[Call]) -> Claim | None:
    """Return a claim that needs no judge, with its label, or None.

    Such a claim says what the assistant did, or did not do, where no call was done. If no call was
    made at all, "I have not sent anything" holds, and "I tried to send it" does not. If calls are
    unfinished, only a claim that something was done is decided here.
    """
    if any(call.status == "done" and not (call.earlier and report.again) for call in calls):
        return None
    nothing = all(call.status == "none" for call in calls)
    if report.did and (nothing or not report.undone):
        refuted = {"label": ClaimLabel.NEUTRAL, "support": 0.0}
        return _settled(claim.model_copy(update=refuted), report, calls)
    if nothing and report.denies_all:
        label = ClaimLabel.ENTAILMENT
        holds = {"label": label, "support": 1.0, "evidence": (quoted(calls[0], label),)}
        return claim.model_copy(update=holds)
    return None


def _settled(claim: Claim, report: _Report, calls: Sequence[Call]) -> Claim:
    """Return a claim that was judged, with what came of the action that it reports.

    A claim that something was done is contradicted, whatever the judge says, if the call that is
    most like it is unfinished. So is a claim about all of several things, if a call for one of them
    is. A claim that something was done, which no call supports, is contradicted, since the calls
    are all that was done.
    """
    if claim.label is None:
        return claim
    calls = [call for call in calls if not (call.earlier and report.again)]
    # What a tool that only reads did not find out refutes no fact, which another may have found.
    telling = [c for c in calls if report.own or not (c.unfinished and c.only_reads)]
    alike = calls_like(claim, telling)
    done = next((call for call in alike if call.status == "done"), None)
    unfinished = None if report.undone else next((c for c in alike if c.unfinished), None)
    if unfinished and done and alike[done] >= alike[unfinished]:
        unfinished = None
    if unfinished and not report.own and _is_closer(claim, unfinished, alike[unfinished]):
        unfinished = None
    if claim.label is ClaimLabel.ENTAILMENT:
        if report.undone:
            return claim
        if against := unfinished or _one_of_all(report, alike):
            return _refuted(claim, against, support=0.0, probabilities=None)
        return claim.model_copy(update={"action": ActionOutcome.DONE if report.own else None})
    against = unfinished
    if report.own and against is None:
        against = done or next((call for call in calls if call.status == "none"), None)
    if against is not None:
        return _refuted(claim, against)
    if not report.did:
        return claim
    never = {"action": ActionOutcome.NEVER, "label": ClaimLabel.CONTRADICTION, "evidence": ()}
    return claim.model_copy(update=never)


def _is_closer(claim: Claim, call: Call, shared: int) -> bool:
    """Return whether evidence for a claim shares more words with it than an unfinished call.

    What the call itself returned does not count, such as the message of an error.
    """
    wanted = beginnings(claim.text)
    return any(
        one.label is ClaimLabel.ENTAILMENT
        and one.text not in call.text
        and len(wanted & beginnings(one.text)) > shared
        for one in claim.evidence
    )


def _one_of_all(report: _Report, alike: Mapping[Call, int]) -> Call | None:
    """Return an unfinished call that belongs to what a claim says of all, or None.

    The call shares two words with the claim, or has the same tool as a call that was done. It was
    not made again with success.
    """
    if not _says(report.words, "actions.every"):
        return None
    done = [call for call in alike if call.status == "done"]
    succeeded, tools = {call.arguments for call in done}, {call.tool for call in done[:1]}
    for call, shared in alike.items():
        belongs = shared > 1 or call.tool in tools
        if call.unfinished and belongs and call.arguments not in succeeded:
            return call
    return None


def _refuted(claim: Claim, call: Call, **changes: Any) -> Claim:
    label = ClaimLabel.CONTRADICTION
    evidence = (quoted(call, label),)
    refuted = {"label": label, "evidence": evidence, "action": _OUTCOMES[call.status]}
    return claim.model_copy(update={**changes, **refuted})


def _together(parts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the details of several parts as one, as if all claims had been one part."""
    merged: dict[str, Any] = {}
    for name, value in (pair for part in parts for pair in part.items()):
        before = merged.get(name)
        if before is None or isinstance(value, str):
            merged[name] = value
        elif isinstance(value, Mapping):
            merged[name] = {key: before[key] + value[key] for key in value}
        else:
            merged[name] = before + value if name in ("windows", "known") else max(before, value)
    return merged
