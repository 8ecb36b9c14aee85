"""Define claims, their labels and evidence, and what is wrong with an answer."""

from __future__ import annotations

from pydantic import Field, model_validator

from demur.schema.base import Text, Value, Word


class ClaimLabel(Word):
    """Name what a reference says about a claim."""

    ENTAILMENT = "Entailment"
    """The reference supports the claim."""
    NEUTRAL = "Neutral"
    """The reference neither supports nor contradicts the claim."""
    CONTRADICTION = "Contradiction"
    """The reference contradicts the claim."""
    UNSUPPORTED = "Unsupported"
    """The reference does not support the claim; a yes-or-no judge does not say whether it
    contradicts it."""


NLI_LABELS = (ClaimLabel.ENTAILMENT, ClaimLabel.NEUTRAL, ClaimLabel.CONTRADICTION)
"""The labels of a judge that tells claims that are contradicted from those that are not found."""
WORST_FIRST = (
    *(ClaimLabel.CONTRADICTION, ClaimLabel.UNSUPPORTED),
    *(ClaimLabel.NEUTRAL, ClaimLabel.ENTAILMENT),
)
"""The labels in the order in which one decides for several claims or passages."""


class Category(Word):
    """Name a kind of hallucination that the papers distinguish (FEWL v1, app. A; v2, app. B).

    The papers' "factual inaccuracy" is two categories here, because it is found in two ways: a
    reference contradicts the answer, or nothing supports it.
    """

    CONTRADICTION = "contradiction"
    """A reference contradicts the answer."""
    UNSUPPORTED = "unsupported"
    """Nothing that the evaluator asked or read supports the answer."""
    IRRELEVANT = "irrelevant"
    """The answer does not address the question, or makes no sense."""
    SELF_CONTRADICTION = "self_contradiction"
    """One part of the answer rules out another."""


class Failure(Word):
    """Name what is wrong with an answer, so that a guard or your code can act on it."""

    NEUTRAL = "neutral"
    """The answer makes a claim that no reference supports or contradicts."""
    CONTRADICTION = "contradiction"
    """The answer makes a claim that a reference contradicts."""
    UNSUPPORTED = "unsupported"
    """The answer makes a claim that no reference supports, by a judge that does not say whether one
    contradicts it."""
    MISMATCH = "mismatch"
    """What the answer says does not lead back to the entity that it is about."""
    VAGUE = "vague"
    """The answer would fit other questions as well."""
    IRRELEVANT = "irrelevant"
    """The answer does not address the question."""
    SELF_CONTRADICTION = "self_contradiction"
    """One part of the answer rules out another."""
    CITATION = "citation"
    """A citation in the answer names no source, or names a source that does not support its
    sentence."""
    NOTHING = "nothing_to_check"
    """The answer states nothing that can be checked."""
    OTHER = "other"
    """An evaluator rejected the answer and named no kind."""

    @property
    def category(self) -> Category | None:
        """Return the papers' category of this failure, or None where no category fits.

        None stands for three cases: the answer states nothing, which is no hallucination; it cites
        the wrong source; or an evaluator named no kind, because a low score does not say what is
        wrong.
        """
        return _CATEGORIES.get(self)


_CATEGORIES = {
    Failure.NEUTRAL: Category.UNSUPPORTED,
    Failure.CONTRADICTION: Category.CONTRADICTION,
    Failure.UNSUPPORTED: Category.UNSUPPORTED,
    # Nothing that the model knows leads from what the answer says back to the entity.
    Failure.MISMATCH: Category.UNSUPPORTED,
    # The answer fits other questions as well, so it does not address this one in particular.
    Failure.VAGUE: Category.IRRELEVANT,
    Failure.IRRELEVANT: Category.IRRELEVANT,
    Failure.SELF_CONTRADICTION: Category.SELF_CONTRADICTION,
}


class Span(Value):
    """Represent a half-open range `[start, end)` of character offsets into an original string."""

    start: int = Field(ge=0)
    end: int = Field(ge=0)

    @model_validator(mode="after")
    def _in_order(self) -> Span:
        if self.end < self.start:
            raise ValueError(f"end ({self.end}) must not be before start ({self.start})")
        return self


class Evidence(Value):
    """Represent the passage of a reference that decided a claim's label."""

    context: int | None = Field(default=None, ge=0)
    """The index into the contexts that were used; None if the passage is in `Sample.reference`, or
    is `known`."""
    known: int | None = Field(default=None, ge=0)
    """The index into the texts that hold for every answer: those of the evaluator, then those of
    `Sample.known`; None if the passage is in none of them."""
    span: Span
    """Where the passage stands in that context's `page_content`, or in the reference."""
    text: Text
    """The characters of that span."""
    label: ClaimLabel
    """What this passage says about the claim."""

    @property
    def where(self) -> str:
        """Return the name of the text in which the passage stands: "reference 2", "known 1"."""
        if self.known is not None:
            return f"known {self.known + 1}"
        return "reference" if self.context is None else f"reference {self.context + 1}"


class MissingString(Value):
    """Represent an identifier or a number that stands in none of the texts checked against."""

    string: Text
    """The string, as the claim writes it."""
    nearest: Text | None
    """The most similar string of the texts, as it stands there; None if none is similar."""

    def __str__(self) -> str:
        """Return what is missing, and the most similar string, in words."""
        similar = "" if self.nearest is None else f', where "{self.nearest}" is the most similar'
        return f'"{self.string}" stands in no reference{similar}'


class Calculation(Value):
    """Represent what follows from figures of the references about a figure of a claim."""

    figure: Text
    """The figure, as the claim writes it; it stands in no reference."""
    follows: bool
    """Whether the figure follows; if not, the calculation gives another one."""
    text: Text
    """The calculation with its result, such as "252 of 360 is 70 %"."""
    operands: tuple[Evidence, ...]
    """The figures of the references that go into it; a count may be the claim's or the question's
    own."""

    def __str__(self) -> str:
        """Return the calculation, and the figure that it refutes, in words."""
        return self.text if self.follows else f"{self.text}, not {self.figure}"


class ActionOutcome(Word):
    """Name what came of an action that an assistant says it did."""

    DONE = "done"
    """A call did what the claim says."""
    FAILED = "failed"
    """The call for it failed."""
    PENDING = "pending"
    """The call for it has not finished."""
    OTHERWISE = "otherwise"
    """The calls did something else than the claim says."""
    NEVER = "never"
    """No call is for it."""


_OF_ACTION = {
    ActionOutcome.FAILED: "the call failed",
    ActionOutcome.PENDING: "the call has not finished",
    ActionOutcome.OTHERWISE: "the call was another",
    ActionOutcome.NEVER: "no such call was made",
}


class Claim(Value):
    """Represent one unit of fact in an answer: a triplet or a sentence (RefChecker, section 3)."""

    text: Text
    """The claim as a statement."""
    triplet: tuple[Text, Text, Text] | None = None
    """The subject, the predicate and the object; None for a sentence or a statement."""
    span: Span | None = None
    """Where the answer makes the claim; None if no word of the claim stands in the answer."""
    path: Text | None = None
    """The path of the value of a structured answer that makes the claim, such as
    "$.items[0].price"; None for an answer in prose, and where `span` is None."""
    label: ClaimLabel | None = None
    """The label of the claim; None if the claim was not checked, or if no label could be read (see
    `error`)."""
    probabilities: dict[ClaimLabel, float] | None = None
    """The probability of each label that the checker knows, in [0, 1] and with the sum 1; None if
    it gives none."""
    support: float | None = Field(default=None, ge=0, le=1)
    """The probability of Entailment in the text that supports the claim most, in [0, 1]. None if
    the claim was not checked, or if the checker gives no probabilities."""
    evidence: tuple[Evidence, ...] = ()
    """The passages that decided the label; empty for Neutral and Unsupported."""
    missing_strings: tuple[MissingString, ...] = ()
    """The identifiers and exact numbers of the claim that stand in none of the texts that it was
    checked against. A claim that has some is not labelled Entailment."""
    calculations: tuple[Calculation, ...] = ()
    """What was worked out about figures of the claim that stand in no reference. A claim with a
    figure that comes out otherwise, and that nothing supports, is labelled Contradiction."""
    action: ActionOutcome | None = None
    """What came of the action that the claim reports, by the calls in the contexts. None if there
    are no calls, or if the claim reports no action of the assistant and the calls do not refute
    it."""
    error: Text | None = None
    """Why the claim has no label."""

    @property
    def reason(self) -> str | None:
        """Return what calls, calculations or the search for strings say of the claim, in words."""
        of_action = None if self.action is None else _OF_ACTION.get(self.action)
        return of_action or "; ".join(map(str, (*self.calculations, *self.missing_strings))) or None

    @property
    def overruled(self) -> bool:
        """Return whether a search or a calculation overrules a judge that supports the claim."""
        return bool(self.missing_strings) or not all(one.follows for one in self.calculations)


def failure_of(claim: Claim) -> Failure | None:
    """Return the failure that a claim's label means; None if it is entailed or has no label."""
    return None if claim.label is None else _OF_LABEL.get(claim.label)


_OF_LABEL = {
    ClaimLabel.NEUTRAL: Failure.NEUTRAL,
    ClaimLabel.CONTRADICTION: Failure.CONTRADICTION,
    ClaimLabel.UNSUPPORTED: Failure.UNSUPPORTED,
}
