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
    """Label claims; if there are calls, each by those contexts that it may be judged by."""
    calls = calls_in(sample)
    if not calls:
        return (yield from judge(sample, range(len(claims))))
    reports = [_Report(claim, sample) for claim in claims]
    decided = [_without_judge(*one, calls) for one in zip(claims, reports, strict=True)]
    found = {at: (claim, 1.0) for at, claim in enumerate(decided) if claim is not None}
    details: list[Mapping[str, Any]] = []

    def look(hidden: Mapping[int, tuple[int, ...]]) -> Steps[None]:
        """Judge claims, by index, without the contexts that are hidden from each."""
        views: dict[tuple[int, ...], list[int]] = {}
        for at, of_claim in hidden.items():
            views.setdefault(of_claim, []).append(at)
        parts = yield from side_by_side(
            [judge(hiding(sample, view), of_view) for view, of_view in views.items()]
        )
        for of_view, part in zip(views.values(), parts, strict=True):
            details.append(part.details)
            for at, claim, sure in zip(of_view, part.claims, part.confidence, strict=True):
                if claim.label is not None or at not in found:
                    found[at] = claim, sure

    said = [at for at, document in enumerate(sample.contexts) if is_users(document)]
    unseen = {
        # The user is believed, but does not know what the assistant did.
        at: tuple([c.at for c in calls if not report.may_rest_on(c)] + said * report.own)
        for at, report in enumerate(reports)
        if at not in found
    }
    # A claim that is no report is judged by results alone first, as if there were no calls.
    every_call = tuple(call.at for call in calls)
    first = {at: view if reports[at].own else every_call for at, view in unseen.items()}
    yield from look(first)
    yield from look(
        {
            at: view
            for at, view in unseen.items()
            if view != first[at] and found[at][0].label is not ClaimLabel.ENTAILMENT
        }
    )
    settled = tuple(_settled(found[at][0], report, calls) for at, report in enumerate(reports))
    confidence = tuple(
        found[at][1] if claim.label is found[at][0].label else 1.0
        for at, claim in enumerate(settled)
    )
    return LabelledClaims(settled, confidence, _together(details))


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
        return all(
            _says(clause, "actions.did_not") and not _says(clause, "contrast.always")
            for clause in self._clauses
        )

    @property
    def did_at_last(self) -> bool:
        """Return whether the last clause about an action says that it was done.

        "The first try failed, but I sent it" does, and "I sent it, but it bounced" does not.
        """
        telling = (one for one in self._clauses if _says(one, "actions.did") or _undone(one))
        return self.did and not any(map(_undone, [*telling][-1:]))

    @property
    def _clauses(self) -> list[str]:
        return [one for one in _CLAUSES.split(self.words) if any(map(str.isalnum, one))]


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
    # In "e-mailed", the "e" looks like a word of some languages.
    said = plain(words).replace("e-mail", "email")
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
    unfinished, only a claim that something was done at last is decided here.
    """
    if any(call.status == "done" and not (call.earlier and report.again) for call in calls):
        return None
    nothing = all(call.status == "none" for call in calls)
    if report.did_at_last or (report.did and nothing):
        return _settled(claim.model_copy(update={"label": ClaimLabel.NEUTRAL}), report, calls)
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
            return _refuted(claim, against)
        return claim.model_copy(update={"action": ActionOutcome.DONE if report.own else None})
    if not report.did:
        # A fact that only has a word in common with the call is not about it.
        about = unfinished and 2 * alike[unfinished] >= len(beginnings(claim.text))
        return _refuted(claim, unfinished) if about else claim
    nothing = (call for call in calls if call.status == "none")
    return _refuted(claim, unfinished or done or next(nothing, None))


def _is_closer(claim: Claim, call: Call, shared: int) -> bool:
    """Return whether evidence for a claim shares more words with it than an unfinished call.

    What the call itself returned does not count, such as the message of an error.
    """
    wanted = beginnings(claim.text)
    return any(
        one.text not in call.text and len(wanted & beginnings(one.text)) > shared
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
    belonging = (call for call, shared in alike.items() if shared > 1 or call.tool in tools)
    return next((c for c in belonging if c.unfinished and c.arguments not in succeeded), None)


def _refuted(claim: Claim, call: Call | None) -> Claim:
    """Return a claim that a call refutes, or that no call supports."""
    label = ClaimLabel.CONTRADICTION
    refuted = {"label": label, "support": 0.0, "probabilities": None}
    if call is None:
        return claim.model_copy(update={**refuted, "action": ActionOutcome.NEVER, "evidence": ()})
    of_call = {"action": _OUTCOMES[call.status], "evidence": (quoted(call, label),)}
    return claim.model_copy(update={**refuted, **of_call})


def _together(details: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the details of several parts as one, as if all claims had been one part."""
    parts = [part for part in details if part]
    if not parts:
        return {}
    estimates = [part["estimate"] for part in parts]
    return {
        **{name: max(part[name] for part in parts) for name in parts[0] if name != "estimate"},
        **{name: sum(part[name] for part in parts) for name in ("windows", "known")},
        "estimate": {name: sum(one[name] for one in estimates) for name in estimates[0]},
    }
