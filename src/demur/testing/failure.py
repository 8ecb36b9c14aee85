"""Say why an answer is not grounded, as a failed assertion says it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from langchain_core.documents import Document

from demur._text import one_line, sentences
from demur.evaluators import content_words, nearest_quote
from demur.guard import Attempt
from demur.schema import Claim, ClaimLabel, Evaluation

_AROUND = 1
"""The number of sentences that are shown on either side of a failing one."""
_LONGEST_QUOTE = 240
_MOST_CLAIMS, _MOST_WORDS, _BEGINNING = 10, 8, 6


def failure_text(attempt: Attempt) -> str:
    """Return the answer with its failing sentences marked, and what is wrong with each claim."""
    undecided = attempt.verdict == "undetermined"
    wrong = "undetermined" if undecided else "failed"
    told = [one for one in attempt.evaluations if one.finding == wrong] or attempt.evaluations
    failing = [claim for one in told for claim in _failing(one)[:_MOST_CLAIMS]]
    lines = [_head(attempt, failing), *_answer(attempt.answer, failing)]
    for evaluation in told:
        lines += _evaluation(evaluation, attempt.contexts)
    return "\n".join(lines)


def _head(attempt: Attempt, failing: Sequence[Claim]) -> str:
    """Return the first line, the only one in pytest's summary of a run."""
    if attempt.verdict == "undetermined":
        return f"undetermined, which is no pass: {one_line(causes(attempt.evaluations))}"
    if all(evaluation.finding == "nothing_to_check" for evaluation in attempt.evaluations):
        return "the answer states nothing that can be checked"
    return f"not grounded: {one_line(failing[0].text if failing else attempt.answer)}"


def causes(evaluations: Iterable[Evaluation]) -> str:
    """Return why those evaluations that are undetermined are so."""
    found = (one.cause or one.error for one in evaluations if one.undetermined)
    return "; ".join(filter(None, found))


def _failing(evaluation: Evaluation) -> list[Claim]:
    return [one for one in evaluation.claims if one.label is not ClaimLabel.ENTAILMENT]


def _answer(answer: str, failing: Sequence[Claim]) -> Iterator[str]:
    """Yield the sentences of an answer: those of failing claims with a mark, and those beside."""
    spans = [claim.span for claim in failing if claim.span is not None]
    units = sentences(answer)
    marked = {
        at
        for at, (start, end) in enumerate(units)
        if any(span.start < end and start < span.end for span in spans)
    }
    shown = {near for at in marked or {0} for near in range(at - _AROUND, at + _AROUND + 1)}
    for at, (start, end) in enumerate(units):
        if at in shown:
            yield f"{'>' if at in marked else ' '}   {one_line(answer[start:end])}"
        elif at - 1 in shown:
            yield "    ..."


def _evaluation(evaluation: Evaluation, contexts: Sequence[Document]) -> Iterator[str]:
    score = "" if evaluation.score is None else f", score {evaluation.score:.2f}"
    finding = evaluation.finding.replace("_", " ")
    yield f"{one_line(evaluation.name)}: {finding}{score}"
    failing = _failing(evaluation)
    if evaluation.error is not None or not failing:
        yield f"    {one_line(evaluation.error or evaluation.explanation)}"
    for claim in failing[:_MOST_CLAIMS]:
        label = "no label" if claim.label is None else claim.label.value
        yield f"    {label}: {one_line(claim.text)}"
        if why := claim.error or ((claim.action or claim.calculations) and claim.reason):
            yield f"        {one_line(why)}"
        yield f"        nearest quote, {_quote(claim, contexts)}"
        if missing := _missing(claim, contexts):
            yield f"        not in the contexts: {', '.join(missing)}"
    if len(failing) > _MOST_CLAIMS:
        yield f"    and {len(failing) - _MOST_CLAIMS:,} more claims"


def _quote(claim: Claim, contexts: Sequence[Document]) -> str:
    """Return the passage that decided the label, or else the sentence that is nearest."""
    found = nearest_quote(claim, contexts)
    if found is None:
        return "none: no sentence is near"
    where = found.where if found.context is None else f"context {found.context + 1}"
    line = one_line(found.text)
    shown = line if len(line) <= _LONGEST_QUOTE else f"{line[: _LONGEST_QUOTE - 1]}…"
    return f'{where}: "{shown}"'


def _stems(text: str) -> dict[str, str]:
    """Return the content words of a text by their first letters, so that endings do not count."""
    return {word[:_BEGINNING]: word for word in sorted(content_words(text))}


def _missing(claim: Claim, contexts: Sequence[Document]) -> list[str]:
    """Return the claim's identifiers and words that stand in no context."""
    exact = dict.fromkeys(one_line(missing.string) for missing in claim.missing_strings)
    told = [*exact, *(document.page_content for document in contexts)]
    known = {stem for text in told for stem in _stems(text)}
    words = [word for stem, word in _stems(claim.text).items() if stem not in known]
    return [*exact, *words][:_MOST_WORDS]
