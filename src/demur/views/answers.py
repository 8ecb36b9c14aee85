"""Show an answer with its evaluations and its references."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from demur.guard import Attempt
from demur.schema import Evaluation
from demur.views.citing import removed_view, sources_fold
from demur.views.claims import Numbered, View, numbered, tooltip
from demur.views.description import reference_names
from demur.views.elements import Element, element, prefix_of
from demur.views.evaluations import evaluation_block
from demur.views.marking import Mark, marked
from demur.views.references import places_of, reference_list
from demur.views.words import claim_look


class _Judged(NamedTuple):
    """Hold the evaluations of one evaluator: several if it judged sentence by sentence."""

    evaluations: list[tuple[Evaluation, list[Numbered]]]
    marks: list[Mark]
    """The marks of the claims that have a place in the answer."""


def attempt_html(attempt: Attempt) -> Element:
    """Show an attempt: its question, its answer, its evaluations and its references.

    If the answer passed, a fold shows it with its sources too.
    """
    return element(
        "article",
        *answer_view(attempt),
        removed_view(attempt.removed),
        sources_fold(attempt),
        class_="demur demur-attempt",
    )


def answer_view(
    attempt: Attempt,
    salt: str = "",
    *,
    trusted: int | None = None,
    before: Attempt | None = None,
) -> Iterator[Element | None]:
    """Yield the parts of an attempt's view, in order.

    The answer is shown once for each evaluator with claims that have a place in it, followed by
    the results of that evaluator. Without such claims, the answer is shown once, without marks. The
    claims of all evaluators are numbered together.

    Args:
        attempt: The attempt to show.
        salt: A text that makes the ids differ from those of an equal attempt.
        trusted: The length of the answer's unchanged beginning. Claims with offsets behind it are
            not highlighted. None: the whole answer is unchanged.
        before: The attempt before. Its question is not repeated, and references that it did not
            have are marked as new.
    """
    claims = numbered(attempt.evaluations)
    every = list(chain.from_iterable(claims))
    end = len(attempt.answer) if trusted is None else min(trusted, len(attempt.answer))
    shown = {
        item.number: item.claim.span
        for item in every
        if item.claim.span is not None and item.claim.span.start < item.claim.span.end <= end
    }
    view = View(
        _prefix(attempt, salt),
        names=reference_names(attempt.contexts),
        marked=shown.keys(),
        places=places_of(every, attempt.contexts),
    )
    by_name: dict[str, _Judged] = {}
    for evaluation, of_it in zip(attempt.evaluations, claims, strict=True):
        judged = by_name.setdefault(evaluation.name, _Judged([], []))
        judged.evaluations.append((evaluation, of_it))
        for numbered_claim in of_it:
            if (span := shown.get(numbered_claim.number)) is not None:
                mark = Mark(
                    start=span.start,
                    end=span.end,
                    number=numbered_claim.number,
                    look=claim_look(numbered_claim.claim),
                    id=view.in_answer(numbered_claim.number),
                    note=view.in_list(numbered_claim.number),
                    target=view.target(numbered_claim),
                    tip=tooltip(numbered_claim, view),
                )
                judged.marks.append(mark)
    if attempt.question is not None and (before is None or before.question != attempt.question):
        yield block("Question", [attempt.question], "demur-question")
    known = {context.page_content for context in before.contexts} if before is not None else None
    new = {
        at
        for at, document in enumerate(attempt.contexts)
        if known is not None and document.page_content not in known
    }
    yield element(
        "div",
        element("div", *_judgements(attempt, by_name, view)),
        reference_list(attempt.contexts, every, view, new),
        class_="demur-columns",
    )


def _judgements(attempt: Attempt, by_name: dict[str, _Judged], view: View) -> Iterator[Element]:
    in_places = [name for name, judged in by_name.items() if judged.marks]
    if not in_places:
        yield block("Answer", [attempt.answer], "demur-answer")
    for name in (*in_places, *(name for name in by_name if name not in in_places)):
        judged = by_name[name]
        if judged.marks:
            head = "Answer" if len(in_places) == 1 else f"Answer, as {name} reads it"
            yield block(head, marked(attempt.answer, judged.marks), "demur-answer")
        total = len(judged.evaluations)
        for at, (evaluation, claims) in enumerate(judged.evaluations, 1):
            yield evaluation_block(
                evaluation, claims, view, f"{at} of {total}" if total > 1 else ""
            )
    if not attempt.evaluations:
        yield element("p", "No evaluator judged it.", class_="demur-quiet")


def block(title: str, content: Sequence[str], class_: str | None = None) -> Element:
    """Show a text, which may have marks, under a title."""
    return element(
        "div",
        element("p", title, class_="demur-title"),
        element("div", *content, class_="demur-text", dir="auto"),
        class_=class_,
    )


def _prefix(attempt: Attempt, salt: str) -> str:
    texts = [context.page_content for context in attempt.contexts]
    evaluations = [repr(evaluation) for evaluation in attempt.evaluations]
    return prefix_of(("attempt", salt, attempt.question, attempt.answer, *texts, *evaluations))
