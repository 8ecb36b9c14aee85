"""Give labels, verdicts and outcomes their look: a word, a sign and a colour. Word counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from demur.guard import Attempt, Verdict
from demur.schema import Category, Claim, ClaimLabel, Failure, Finding


class Look(NamedTuple):
    """Describe a look. Its parts are always shown together, so that no colour has to be seen."""

    word: str
    sign: str
    kind: str
    """The colour, and the line under a highlighted text: "good", "doubt", "bad" or "open"."""

    @property
    def css(self) -> str:
        """Return the CSS class of the look."""
        return f"demur-{self.kind}"


_UNLABELLED = Look("no label", "?", "open")
_LABELS: Mapping[str, Look] = {
    ClaimLabel.ENTAILMENT: Look("Entailment", "✓", "good"),
    ClaimLabel.NEUTRAL: Look("Neutral", "○", "doubt"),
    ClaimLabel.CONTRADICTION: Look("Contradiction", "✗", "bad"),
    ClaimLabel.UNSUPPORTED: Look("Unsupported", "○", "doubt"),
}
_WORST_FIRST = ("bad", "doubt", "open", "good")
_VERDICTS: Mapping[str, Look] = {
    "passed": Look("passed", "✓", "good"),
    "failed": Look("failed", "✗", "bad"),
    "undetermined": Look("undetermined", "?", "doubt"),
    "nothing_to_check": Look("nothing to check", "–", "open"),
    "abstained": Look("abstained", "–", "open"),
    "scored": Look("scored", "•", "open"),
}
_OUTCOMES: Mapping[str, Look] = {
    "passed": Look("passed", "✓", "good"),
    "recovered": Look("recovered", "↻", "good"),
    "trimmed": Look("trimmed", "✂", "good"),
    "nothing_to_check": Look("nothing to check", "–", "open"),
    "abstained": Look("abstained", "–", "open"),
    "blocked": Look("blocked", "✗", "bad"),
    "best_effort": Look("best effort", "~", "doubt"),
    "evaluator_failed": Look("evaluator failed", "?", "doubt"),
}
_CUT_SHORT = Look("cut short", "…", "doubt")
_RECOVERIES = {
    "retrieve": "searched for what failed",
    "regenerate": "asked for another answer",
    "repair": "had the answer corrected",
    "strip": "took out what failed",
    "cite": "corrected the citations",
}
_ORIGINS = {
    "chain": "the chain answered again",
    "feedback": "the chain answered again, told what was wrong",
    "repair": "a model answered from the references, told what was wrong",
    "edit": "the rest of the answer stayed as it was",
}
_FAILURES = {
    Failure.NEUTRAL: "a claim is not in the references",
    Failure.CONTRADICTION: "a reference contradicts a claim",
    Failure.UNSUPPORTED: "the references do not support a claim",
    Failure.MISMATCH: "it does not lead back to what was asked about",
    Failure.VAGUE: "it would fit other questions too",
    Failure.IRRELEVANT: "it does not address the question",
    Failure.SELF_CONTRADICTION: "one part of it rules out another",
    Failure.CITATION: "it cites a source that does not support it",
    Failure.NOTHING: "it states nothing to check",
    Failure.OTHER: "it is rejected without a kind",
}
_CATEGORIES = {
    Category.CONTRADICTION: "contradicts a reference",
    Category.UNSUPPORTED: "unsupported",
    Category.IRRELEVANT: "irrelevant or nonsensical",
    Category.SELF_CONTRADICTION: "contradicts itself",
}


def plural(number: int, singular: str, many: str | None = None) -> str:
    """Return a number with its noun, in the singular or the plural."""
    return f"{number:,} {singular if number == 1 else many or singular + 's'}"


def counted(counts: Mapping[Any, int]) -> str:
    """Return how many there are of each kind, without the kinds of which there are none."""
    kinds = {kind.replace("_", " "): number for kind, number in counts.items()}
    return ", ".join(f"{number:,} {kind}" for kind, number in kinds.items() if number)


def failure_words(failure: Failure) -> str:
    """Return what a failure says is wrong with an answer, in words."""
    return _FAILURES[failure]


def category_words(category: Category) -> str:
    """Return the words for a category of hallucination."""
    return _CATEGORIES[category]


def claim_look(claim: Claim) -> Look:
    """Return the look of a claim, by its label."""
    return _UNLABELLED if claim.label is None else _LABELS[claim.label]


def label_look(label: str) -> Look:
    """Return the look of a label."""
    return _LABELS[label]


def severity(look: Look) -> int:
    """Return the rank of a look by urgency: 0 is the look that readers must see first."""
    return _WORST_FIRST.index(look.kind)


def verdict_look(verdict: Verdict | Finding) -> Look:
    """Return the look of a verdict or of an evaluator's finding."""
    return _VERDICTS[verdict]


def outcome_look(outcome: str | None) -> Look:
    """Return the look of an outcome; None stands for a call that did not finish."""
    return _CUT_SHORT if outcome is None else _OUTCOMES[outcome]


def what_the_guard_did(attempt: Attempt) -> str:
    """Return a sentence that says how a later answer came about."""
    did = _RECOVERIES.get(attempt.recovery or "regenerate", f"recovered by {attempt.recovery}")
    return f"The guard {did}; {_ORIGINS[attempt.origin]}."
