"""Define Evaluation: the result of one evaluator for one answer."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue, model_validator

from demur._text import one_line
from demur.schema.base import Text, Value
from demur.schema.claims import Claim, Evidence, Failure, failure_of
from demur.schema.notebook import ShownInNotebooks
from demur.schema.usage import Usage

ABSTAIN = "Abstain"
"""The label of an answer that states nothing to check."""
FACTUAL, NON_FACTUAL = "factual", "non-factual"
"""The labels of evaluators that judge an answer as a whole: it holds, or it does not."""


Finding = Literal["passed", "failed", "undetermined", "nothing_to_check", "scored"]
"""The result of one evaluation in a word. "nothing_to_check": the answer states nothing that can be
checked. "scored": the evaluator has no threshold."""


class Evaluation(ShownInNotebooks, Value):
    """Hold the result of one evaluator for one answer.

    An evaluation is either determined (`error` is None) or undetermined. If it is undetermined,
    `error` says why, and `score`, `label` and `passed` are None. It is never a pass by default, and
    the score is never NaN.
    """

    name: str
    """The evaluator's name."""
    score: float | None = Field(default=None, allow_inf_nan=False)
    """The score; higher is better. The evaluator's docstring gives the range. None if undetermined,
    and if the evaluator gave no score."""
    label: str | None = None
    """The verdict in a word. The evaluator's docstring lists the possible labels."""
    passed: bool | None = None
    """Whether the answer is good enough; None if undetermined, if the answer states nothing to
    check, or if the evaluator has no threshold."""
    failure: Failure | None = None
    """What is wrong with the answer, where the labels of its claims do not say it. None if the
    answer passed, or if the evaluator names no kinds."""
    explanation: Text = ""
    """The reason for the result, in a sentence for a person."""
    claims: tuple[Claim, ...] = ()
    """The claims that were found in the answer, with labels and evidence."""
    usage: Usage = Usage()
    """What this evaluation cost."""
    error: Text | None = None
    """Why no decision could be made; set only if undetermined. It may quote the answer or a
    provider's message. Show `cause` instead to users who may not see those texts."""
    cause: Text | None = None
    """Why the evaluation is undetermined, in words that anyone may see: the class and HTTP status
    of each failed call, such as "RateLimitError 429", or "no contexts". None if the evaluator names
    no such cause, for example after an unreadable reply."""
    details: dict[str, JsonValue] = Field(default_factory=dict)
    """Every number behind the score, as JSON values."""
    fingerprints: dict[str, str] = Field(default_factory=dict)
    """What the score depends on besides the sample: models, prompts, similarity and options, each
    as a text that identifies it. Scores with other fingerprints cannot be compared with this one.
    Empty if the evaluator gives none."""

    @model_validator(mode="after")
    def _undetermined_decides_nothing(self) -> Evaluation:
        if self.error is not None:
            decided = [n for n in ("score", "label", "passed") if getattr(self, n) is not None]
            if decided:
                raise ValueError(
                    f"error is set ({self.error!r}), so {', '.join(decided)} must be None: "
                    "an undetermined evaluation decides nothing"
                )
        return self

    @property
    def undetermined(self) -> bool:
        """Return whether the evaluator could not decide."""
        return self.error is not None

    @property
    def nothing_to_check(self) -> bool:
        """Return whether the answer states nothing to check, so that there was nothing to decide.

        It is False for an evaluation that has a verdict, a score, claims or an error.
        """
        found = (self.passed, self.score, self.error)
        return self.label == ABSTAIN and found == (None, None, None) and not self.claims

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Return what is wrong with the answer, without repeats; empty unless it failed.

        An answer that contradicts itself, or cites a wrong source, has only this failure. Otherwise
        the labels of the wrong claims give the failures. If no claim is labelled as wrong, the
        failure is `failure`, or "other".
        """
        if self.passed is not False:
            return ()
        own = self.failure or Failure.OTHER
        if own in (Failure.SELF_CONTRADICTION, Failure.CITATION):
            return (own,)
        told = (failure_of(claim) for claim in self.claims)
        return tuple(dict.fromkeys(failure for failure in told if failure)) or (own,)

    @property
    def finding(self) -> Finding:
        """Return the result in a word."""
        if self.undetermined:
            return "undetermined"
        if self.passed is not None:
            return "passed" if self.passed is True else "failed"
        return "nothing_to_check" if self.nothing_to_check else "scored"

    def __str__(self) -> str:
        """Return a readable text, as `print` shows it: the finding, then a line for each claim.

        The text has no control characters, whatever the answer contains. The `repr` shows all
        fields.
        """
        head = [self.finding.replace("_", " ")]
        if self.label is not None and not self.nothing_to_check:
            head.append(one_line(self.label))
        if self.score is not None:
            head.append(f"score {self.score:.2f}")
        lines = [f"{one_line(self.name)}: {', '.join(head)}"]
        told = dict.fromkeys(text for text in (self.error, self.explanation) if text)
        lines += [f"  {one_line(text)}" for text in told]
        for number, claim in enumerate(self.claims, 1):
            lines += [f"  {number}. {_labelled(claim)}", *map(_quoted, claim.evidence)]
        return "\n".join(lines)


_LONGEST_QUOTE = 160


def _labelled(claim: Claim) -> str:
    label = "no label" if claim.label is None else claim.label.value
    reason = claim.reason or claim.error
    why = f" ({one_line(reason)})" if reason else ""
    return f"{label}: {one_line(claim.text)}{why}"


def _quoted(evidence: Evidence) -> str:
    text = one_line(evidence.text)
    if len(text) > _LONGEST_QUOTE:
        text = f"{text[: _LONGEST_QUOTE - 1].rstrip()}…"
    return f'     {evidence.where}: "{text}"'
