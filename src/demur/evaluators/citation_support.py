"""Check whether the sources that an answer cites support the sentences that cite them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pydantic import field_validator

from demur._text import Mark, marks_in, one_line
from demur.evaluators.accepted import decides_nothing
from demur.evaluators.base import Evaluator
from demur.evaluators.refchecker.assertion import states_nothing
from demur.evaluators.refchecker.units import units
from demur.evaluators.verdicts import refuse_empty
from demur.runtime import CallPolicy, Steps, UndeterminedError, fields_of, side_by_side
from demur.schema import ABSTAIN, WORST_FIRST, Claim, ClaimLabel, Evaluation, Failure, Sample, Span


@dataclass(frozen=True)
class _Cited:
    """Hold a statement and the documents that it cites."""

    text: str
    span: Span | None
    """The statement's place in the answer, or None if it stands before the judged answer."""
    documents: tuple[int | None, ...]
    preceding: str


class CitationSupport(Evaluator):
    """Check each sentence of an answer that cites sources against those sources alone.

    A citation by number belongs to the sentence that it stands in or behind; 1 is the first
    context. The forms "[2]", "[^2]", "【2】" and "(Source: 2)" are known. A line "Source: ..." or a
    list "Sources: ..." belongs to the sentences above it that have no citation of their own. A
    citation names a document by its number, by its id, or by the `title`, `source`, `file_name` or
    `url` of its metadata.

    The evaluation's `claims` are the sentences that cite. Its `score` is the share of them that
    their citations support, in [0, 1]. ALCE (arXiv 2305.14627, section 3) calls this citation
    recall; here it is computed over the sentences that cite. An answer passes if the score is 1;
    otherwise its `failure` is "citation". A citation that names no context fails without a call.
    All sources that a sentence cites are judged together, so a superfluous citation is not
    detected.

    An answer that cites nothing has the label "Abstain". The evaluation is undetermined (`error`
    says why) if the answer is empty. It is also undetermined if the checker could not decide about
    a sentence and no other sentence fails.

    Examples:
        >>> Guard(chain, checker, CitationSupport(checker), on_fail={"citation": Cite(), ...})

    Args:
        checker: The evaluator that judges each sentence against the sources, such as
            `RefChecker(model)`. It makes one evaluation for each sentence that cites.
        name: The evaluator's name in traces and logs. None: the name of the class.
        call_policy: The retries, time limits and concurrency of model calls, in place of the
            checker's. None: defaults that fit the model.

    Raises:
        TypeError: `checker` is not one of demur's evaluators.
        ValueError: `checker` has no threshold.
    """

    checker: Evaluator

    def __init__(
        self,
        checker: Evaluator,
        *,
        name: str | None = None,
        call_policy: CallPolicy | None = None,
    ) -> None:
        """Make the evaluator; the class describes its arguments."""
        super().__init__(**fields_of(locals()))

    @field_validator("checker", mode="before")
    @classmethod
    def _usable(cls, value: object) -> object:
        if not isinstance(value, Evaluator):
            got = f"a {type(value).__name__}"
            if isinstance(value, type):
                got = f"the class {value.__name__}"
            raise TypeError(
                f"checker is {got}, expected an evaluator of demur's, such as RefChecker(model)"
            )
        if decides_nothing(value):
            raise ValueError(
                f"checker ({value.get_name()}) scores answers but decides nothing: give it a "
                "threshold"
            )
        return value

    @property
    def claim_level(self) -> bool:
        """Return True: the evaluator judges sentence by sentence."""
        return True

    @property
    def fingerprints(self) -> dict[str, str]:
        """Return what the scores depend on: the checker's fingerprints; {} if it has none."""
        told = self.checker.fingerprints
        if not told:
            return {}
        return {
            "evaluator": type(self).__qualname__,
            **{f"checker {name}": text for name, text in told.items()},
        }

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        refuse_empty(sample)
        cited = list(_cited(sample))
        if not cited:
            return Evaluation(
                name=self.get_name(), label=ABSTAIN, explanation="The answer cites no sources."
            )
        known = [one for one in cited if None not in one.documents]
        found = yield from side_by_side(
            [self.checker._work(_as_sample(one, sample)) for one in known]
        )
        by_statement = dict(zip(known, found, strict=True))
        claims = [_judged(one, by_statement.get(one)) for one in cited]
        return self._conclude([claim for claim in claims if claim is not None])

    def _conclude(self, claims: Sequence[Claim]) -> Evaluation:
        if not claims:
            why = "What the answer cites sources for states nothing that could be checked."
            return Evaluation(name=self.get_name(), label=ABSTAIN, explanation=why)
        wrong = [claim for claim in claims if claim.label not in (ClaimLabel.ENTAILMENT, None)]
        unknown = [claim for claim in claims if claim.label is None]
        supported = len(claims) - len(wrong) - len(unknown)
        details: dict[str, Any] = {"cited": len(claims), "supported": supported}
        if unknown and not wrong:
            raise UndeterminedError(
                f"{len(unknown)} of {len(claims)} citations could not be judged. The first: "
                f"{unknown[0].error}",
                claims=tuple(claims),
                details=details,
            )
        told = f"The cited sources support {supported} of {len(claims)} sentences that cite"
        if wrong:
            told += f", and not: \u201c{one_line(wrong[0].text)}\u201d"
        return Evaluation(
            name=self.get_name(),
            score=None if unknown else supported / len(claims),
            label="unsupported" if wrong else "supported",
            passed=not wrong,
            failure=Failure.CITATION if wrong else None,
            explanation=f"{told}.",
            claims=tuple(claims),
            details=details,
        )


def _as_sample(one: _Cited, sample: Sample) -> Sample:
    """Return a statement as a sample whose contexts are the documents that it cites."""
    contexts = tuple(sample.contexts[at] for at in one.documents if at is not None)
    return Sample(
        question=sample.question, answer=one.text, contexts=contexts, preceding=one.preceding
    )


def _judged(one: _Cited, evaluation: Evaluation | None) -> Claim | None:
    """Return a statement as a claim with its label, or None if the statement asserts nothing.

    Args:
        one: The statement.
        evaluation: The checker's evaluation, or None if the statement cites a document that does
            not exist.
    """
    claim = Claim(text=one.text, span=one.span)
    if evaluation is None:
        return claim.model_copy(update={"label": ClaimLabel.NEUTRAL})
    if evaluation.nothing_to_check:
        return None
    if evaluation.undetermined:
        return claim.model_copy(update={"error": evaluation.error})
    label = ClaimLabel.ENTAILMENT
    if evaluation.passed and any(map(_only_known, evaluation.claims)):
        label = ClaimLabel.NEUTRAL  # what is always known is not what the sentence cites
    elif not evaluation.passed:
        labels = [own.label for own in evaluation.claims]
        label = next((one for one in WORST_FIRST[:-1] if one in labels), ClaimLabel.NEUTRAL)
    evidence = [
        found.model_copy(update={"context": one.documents[found.context]})
        for own in evaluation.claims
        for found in own.evidence
        if found.label is label and found.context is not None and found.context < len(one.documents)
    ]
    return claim.model_copy(update={"label": label, "evidence": tuple(dict.fromkeys(evidence))})


def _only_known(claim: Claim) -> bool:
    return bool(claim.evidence) and all(one.known is not None for one in claim.evidence)


# --- Statements and their citations --------------------------------------------------------------


def _cited(sample: Sample) -> Iterator[_Cited]:
    """Yield the statements of an answer that cite sources, in order."""
    answer = sample.answer
    marks = marks_in(answer, sample.contexts)
    lists = [mark for mark in marks if mark.is_list]
    said = [
        unit
        for unit in units(answer)
        if not any(mark.start <= unit.start < mark.end for mark in lists)
        and not states_nothing(unit.said)
    ]
    starts = [unit.start for unit in said]
    of_units: dict[int, list[Mark]] = {}
    for mark in marks:
        if not mark.is_list:  # a mark belongs to the last unit that begins before it
            of_units.setdefault(bisect_left(starts, mark.start) - 1, []).append(mark)
    first = of_units.pop(-1, [])
    earlier = units(sample.preceding)[-1:]
    if first and earlier:  # in a stream, "[1]" may stand behind the sentence before
        yield _Cited(earlier[0].said, None, _documents(first), "")
    elif first:
        of_units[0] = [*first, *of_units.get(0, ())]
    for at, unit in enumerate(said):
        below = (mark for mark in lists if mark.start >= unit.end)
        documents = _documents(of_units.get(at) or [*islice(below, 1)])
        if documents:
            preceding = f"{sample.preceding}{answer[: unit.start]}"
            span = Span(start=unit.start, end=unit.end)
            yield _Cited(unit.said, span, documents, preceding)


def _documents(marks: Sequence[Mark]) -> tuple[int | None, ...]:
    return tuple(dict.fromkeys(document for mark in marks for document in mark.documents))
