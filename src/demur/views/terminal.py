"""Print evaluations and runs to a terminal or a pipe.

Texts of answers, references and models may hold anything. None of them reaches the terminal as
markup or as control characters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from demur._text import harmless as harmless
from demur._text import one_line as one_line
from demur.guard import Attempt
from demur.observe import Record
from demur.schema import WORST_FIRST, ClaimLabel, Evaluation
from demur.views.description import (
    REDACTED,
    Quote,
    ShownClaim,
    cited_of,
    describe_claim,
    describe_evaluation,
    describe_record,
    reference_names,
)
from demur.views.description import usage_line as usage_line
from demur.views.folds import shortened
from demur.views.sources import Source, marked, sourced
from demur.views.words import Look

_LONGEST_QUOTE = 320
_COLOURS = {"good": "green", "doubt": "yellow", "bad": "red", "open": "magenta"}
"""The colours by `Look.kind`."""


def colour(look: Look) -> str:
    """Return the name of the terminal colour for a look."""
    return _COLOURS[look.kind]


def show(console: Console, evaluation: Evaluation, names: Sequence[str] = ()) -> None:
    """Print claims, verdict and usage: a table on a terminal, whole lines in a pipe.

    Args:
        console: The console to print to.
        evaluation: The evaluation.
        names: The name of each reference. A reference without a name here is called `reference 1`
            and so on; a reference whose name is empty is not named at all.
    """
    claims = [describe_claim(claim, names) for claim in evaluation.claims]
    if not console.is_terminal:
        for number, claim in enumerate(claims, start=1):
            say(console, f"{number}. {claim.label}: {one_line(claim.text)}")
            for line in _evidence(claim):
                say(console, f"   {line}")
    elif claims:
        console.print(_table(claims))
    shown = describe_evaluation(evaluation)
    reason = ", ".join(
        one_line(part)
        for part in (shown.error, shown.label, shown.score, shown.explanation)
        if part
    )
    say(console, shown.look.word.upper(), reason, style=f"bold {colour(shown.look)}")
    say(console, shown.cost, style="dim")


def _table(claims: Sequence[ShownClaim]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, expand=False, pad_edge=False)
    table.add_column("#", justify="right", style="dim")
    table.add_column("claim", ratio=2, overflow="fold")
    table.add_column("label", no_wrap=True)
    table.add_column("evidence", ratio=3, overflow="fold", style="dim")
    for number, claim in enumerate(claims, start=1):
        table.add_row(
            str(number),
            Text(one_line(claim.text)),
            Text(claim.label, style=colour(claim.look)),
            Text("\n".join(_evidence(claim, _LONGEST_QUOTE))),
        )
    return table


def _evidence(claim: ShownClaim, longest: int | None = None) -> Iterator[str]:
    """Yield the evidence of a claim, or why it has no label; then the missing strings."""
    if claim.error is not None:
        yield one_line(claim.error)
    for quote in claim.quotes:
        yield _quoted(quote, longest)
    if claim.reason is not None:
        yield one_line(claim.reason)


def _quoted(quote: Quote, longest: int | None) -> str:
    text = one_line(quote.text)
    if longest is not None:
        text = shortened(text, longest)
    return f"{one_line(quote.reference)}: “{text}”" if quote.reference else f"“{text}”"


def show_run(console: Console, record: Record) -> None:
    """Print a run with all its attempts and facts."""
    shown = describe_record(record)
    _head(console, record)
    for name, value in shown.facts[1:]:  # the first is the run's id
        _say(console, name, value)
    if record.tags:
        _say(console, "tags", ", ".join(record.tags))
    if record.redacted:
        _say(console, "redacted", REDACTED)
    for answer in shown.attempts:
        attempt = answer.attempt
        console.print()
        _say(console, answer.title, answer.came or "", style="bold")
        if attempt.feedback is not None:
            _block(console, "told", attempt.feedback.text)
        for text in answer.removed:
            _say(console, "taken out", text)
        _answer(console, attempt)
        _evaluations(console, attempt, attempt.evaluations)
        if not attempt.evaluations:
            _say(console, answer.look.word, "no evaluator judged it")
    console.print()
    if shown.ending is not None:
        _say(console, f"the guard: {shown.ending.look.word}", " ".join(shown.ending.why), "bold")
    if (cited := cited_of(record)) is not None and sourced(cited).sources:
        _block(console, "with its sources", marked(cited))
        show_sources(console, cited)
    _say(console, shown.cost)


def show_sources(console: Console, attempt: Attempt) -> None:
    """Print the sources of an answer, each with its quotes; nothing if the answer did not pass."""
    if attempt.verdict == "passed":
        for source in sourced(attempt).sources:
            _source(console, source)


def _source(console: Console, source: Source) -> None:
    _say(console, f"[{source.number}] {source.title}", source.url or "", style="bold")
    for quote in source.quotes:
        shown = _quoted(Quote("", quote, None), _LONGEST_QUOTE if console.is_terminal else None)
        say(console, "  ", shown)
    if source.paths:
        say(console, "  ", f"for {one_line(', '.join(source.paths))}", style="dim")


def show_worst(console: Console, record: Record, evaluator: str | None) -> None:
    """Print a run's first answer, and the unsupported claims that one evaluator, or all, found."""
    attempt = record.attempts[0]
    _head(console, record)
    _answer(console, attempt)
    named = [
        evaluation for evaluation in attempt.evaluations if evaluator in (None, evaluation.name)
    ]
    _evaluations(console, attempt, [_against(evaluation) for evaluation in named])
    console.print()


def _against(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation with only its unsupported claims, the contradicted ones first."""
    wrong = (label for label in WORST_FIRST if label is not ClaimLabel.ENTAILMENT)
    claims = [claim for label in wrong for claim in evaluation.claims if claim.label is label]
    return evaluation.model_copy(update={"claims": tuple(claims)})


def _head(console: Console, record: Record) -> None:
    time = record.time.strftime("%Y-%m-%d %H:%M:%S %Z")
    about = describe_record(record).about
    _say(console, f"run {record.id}", ", ".join((time, *about)), style="bold")


def _answer(console: Console, attempt: Attempt) -> None:
    if attempt.question is not None:
        _block(console, "question", attempt.question)
    _block(console, "answer", attempt.answer)


def _evaluations(console: Console, attempt: Attempt, evaluations: Sequence[Evaluation]) -> None:
    names = reference_names(attempt.contexts)
    for evaluation in evaluations:
        _say(console, evaluation.name, style="underline")
        show(console, evaluation, names)


def _block(console: Console, head: str, text: str) -> None:
    """Print a text that may have several lines."""
    first, *rest = harmless(text).split("\n")
    say(console, head, first, style="dim")
    for more in rest:
        say(console, f"   {more}")


def _say(console: Console, head: str, tail: str = "", style: str = "") -> None:
    say(console, one_line(head), one_line(tail), style=style)


def say(console: Console, head: str, tail: str = "", *, style: str = "") -> None:
    """Print a line of harmless text with a styled `head`; in a pipe, it is never wrapped."""
    line = Text(head, style=style)
    if tail:
        line = Text.assemble(line, "  ", tail)
    console.print(line, soft_wrap=not console.is_terminal, highlight=False)
