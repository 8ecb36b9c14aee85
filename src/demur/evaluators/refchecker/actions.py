"""Hold what an agent says that it did against the calls that it made.

The calls are among the contexts (`demur.shapes.calls`), and they are all that was done. What a
claim may be judged by depends on what it says:

- A claim that the assistant did something is judged by the calls that were done. A failed call does
  not support it.
- A claim that something failed, or was not done, is judged by all calls.
- Any other claim is judged by results. If these do not support it, it is judged by short calls that
  changed something, too. It is never judged by what the assistant wrote into the arguments of a
  search, a note or a report, nor by an argument that says nearly all of it, nor by a result that
  only repeats one, for else a model could support its own guess by asking for it, or by noting it
  down.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from demur.evaluators.base import LabelledClaims
from demur.evaluators.refchecker.assertion import denies, denies_behind_contrast
from demur.evaluators.refchecker.calls import (
    Call,
    calls_in,
    calls_like,
    hiding,
    quoted,
    repeating,
)
from demur.evaluators.refchecker.content_words import beginnings
from demur.evaluators.refchecker.languages import likely, nearest, plain
from demur.evaluators.refchecker.units import units
from demur.runtime import Steps, side_by_side
from demur.schema import ActionOutcome, Claim, ClaimLabel, Sample
from demur.shapes import CallStatus, is_users

# A call with longer arguments may hold a whole report.
_MOST_OF_ARGUMENTS = 200
LEAST_SUPPORT = 0.7
"""The probability from which a report of an action is supported, since chat models believe it too
easily. It was chosen on the traces in sight (docs/results.md, What agents say that they did)."""
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


def label_by_calls(
    claims: Sequence[Claim], sample: Sample, judge: Judge, known: int, least: float | None
) -> Steps[LabelledClaims]:
    """Label claims; if there are calls, each by those contexts that it may be judged by.

    Args:
        claims: The claims.
        sample: The sample, whose contexts may have calls.
        judge: What labels claims by contexts.
        known: How many of the first contexts hold for every answer.
        least: The probability from which a report of an action is supported; None: the judge
            decides alone.
    """
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

    said = [at for at, one in enumerate(sample.contexts) if at < known or is_users(one)]
    # The user is believed, and so is what is known, but neither tells what the assistant did.
    besides = [said if report.own else repeating(report.words, calls, sample) for report in reports]
    unseen = {
        at: tuple([c.at for c in calls if not report.may_rest_on(c)] + besides[at])
        for at, report in enumerate(reports)
        if at not in found
    }
    # A claim that is no report is judged by results alone first, as if there were no calls.
    every_call = [call.at for call in calls]
    first = {
        at: view if reports[at].own else tuple(every_call + besides[at])
        for at, view in unseen.items()
    }
    yield from look(first)
    yield from look(
        {
            at: view
            for at, view in unseen.items()
            if view != first[at] and found[at][0].label is not ClaimLabel.ENTAILMENT
        }
    )
    settled = tuple(
        _settled(found[at][0], report, calls, least) for at, report in enumerate(reports)
    )
    confidence = tuple(
        found[at][1]
        if claim.label is found[at][0].label or reports[at].is_doubtful(found[at][0], least)
        else 1.0
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
        outcomes = [_outcome(clause) for clause in self._clauses]
        # Beside what was done, "no" is seldom about what failed: "no further action is needed".
        self.undone = "undone" in outcomes if "done" in outcomes else _undone(words)
        # "The first try failed, but I sent it" does, and "I sent it, but it bounced" does not.
        self.did_at_last = self.did and [one for one in outcomes if one][-1:] != ["undone"]
        self.again = _says(words, "actions.again")

    def may_rest_on(self, call: Call) -> bool:
        """Return whether a call may support the claim."""
        if (call.unfinished and not self.undone) or (call.earlier and self.again):
            return False
        if self.own:
            return True
        if call.status == "none" or call.changes_nothing:
            return False
        return len(call.arguments) <= _MOST_OF_ARGUMENTS and not call.copies(self.words)

    def is_doubtful(self, claim: Claim, least: float | None) -> bool:
        """Return whether a judge supports a report that something was done, but not enough."""
        if least is None or claim.support is None or not self.did or self.undone:
            return False
        return claim.label is ClaimLabel.ENTAILMENT and claim.support < least

    @property
    def denies_all(self) -> bool:
        """Return whether each clause says that the assistant did not do something."""
        return all(
            _says(clause, "actions.did_not") and not _says(clause, "contrast.always")
            for clause in self._clauses
        )

    @property
    def _clauses(self) -> list[str]:
        return [one for one in _CLAUSES.split(self.words) if any(map(str.isalnum, one))]


@lru_cache(maxsize=4096)
def _outcome(clause: str) -> Literal["done", "undone"] | None:
    """Return what a clause says of an action: that it was done, or not; None if it says neither.

    Where something was done, words that deny count only behind a contrast: "but it never arrived".
    """
    did, failed = (_first(clause, f"actions.{name}") for name in ("did", "undone"))
    # "No errors occurred" reports none.
    fails = failed and not denies(" ".join(failed.string[: failed.start()].split()[-2:]))
    said = did.string[did.end() :] if did else plain(clause)
    if fails or _says(clause, "actions.did_not") or denies_behind_contrast(said):
        return "undone"
    return "done" if did else None


def _reports(words: str) -> bool:
    return _says(words, "actions.did") or _says(words, "actions.did_not")


def _undone(words: str) -> bool:
    # In some languages "to cancel" is a word that denies; what was done does not count.
    did = _first(words, "actions.did")
    return _says(words, "actions.undone") or denies(did.re.sub(" ", did.string) if did else words)


def _says(words: str, name: str) -> bool:
    return _first(words, name) is not None


@lru_cache(maxsize=4096)
def _first(words: str, name: str) -> re.Match[str] | None:
    """Return the first match of a list's patterns in a text, in its language."""
    # In "e-mailed", the "e" looks like a word of some languages.
    said = plain(words).replace("e-mail", "email")
    for language in dict.fromkeys((*likely(said), *nearest(said))):
        pattern = language.pattern(name, whole_words=True)
        if found := pattern.search(language.rewritten(said)):
            return found
    return None


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


def _settled(
    claim: Claim, report: _Report, calls: Sequence[Call], least: float | None = None
) -> Claim:
    """Return a claim that was judged, with what came of the action that it reports.

    A claim that something was done is contradicted, whatever the judge says, if the call that is
    most like it is unfinished. So is a claim about all of several things, if a call for one of them
    is. A claim that something was done, which no call supports, or none with the `least`
    probability, is contradicted, since the calls are all that was done.
    """
    if claim.label is None:
        return claim
    calls = [call for call in calls if not (call.earlier and report.again)]
    # What a tool that only reads did not find out refutes no fact, which another may have found.
    telling = [c for c in calls if report.own or not (c.unfinished and c.only_reads)]
    alike = calls_like(claim, telling)
    done = next((call for call in alike if call.status == "done"), None)
    unfinished = None if report.undone else next((c for c in alike if c.unfinished), None)
    if unfinished and any(
        # What was read is no action, unless the claim says so.
        alike[c] >= alike[unfinished] + (report.did and c.only_reads and not unfinished.only_reads)
        for c in alike
        if c.status == "done"
    ):
        unfinished = None
    if unfinished and not report.own and _is_closer(claim, unfinished, alike[unfinished]):
        unfinished = None
    if claim.label is ClaimLabel.ENTAILMENT and not report.is_doubtful(claim, least):
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
