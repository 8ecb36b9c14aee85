"""How an evaluation looks on a terminal, and in a pipe.

The text of answers, references and models is anybody's: nothing of it reaches the terminal as
markup or as a control character. What to show is decided by plain functions; `show` prints it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from demur._text import harmless as harmless
from demur._text import one_line as one_line
from demur.schema import Claim, ClaimLabel, Evaluation, Evidence
from demur.views.words import missing_line
from demur.views.words import usage_line as usage_line

_LONGEST_QUOTE = 320
_STYLES = {
    ClaimLabel.ENTAILMENT: "green",
    ClaimLabel.NEUTRAL: "yellow",
    ClaimLabel.CONTRADICTION: "red",
    None: "magenta",
}
_VERDICT_STYLES = {"PASSED": "bold green", "FAILED": "bold red"}


@dataclass(frozen=True)
class ClaimRow:
    """One claim as it is shown."""

    claim: str
    label: str
    """The label with its probability, where there is one; `no label` where it has none."""
    evidence: tuple[str, ...]
    """The quotes that decided it, or the reason why there is no label; then the quantities that
    are not in the references."""
    style: str


def claim_rows(
    evaluation: Evaluation, names: Sequence[str] = (), longest: int | None = None
) -> list[ClaimRow]:
    """The claims of an evaluation as they are shown.

    Args:
        evaluation: What was found.
        names: What to call each reference: `reference 1` and so on where there is none, and nothing
            where it is empty.
        longest: Shorten quotes that have more characters.
    """
    return [_claim_row(claim, names, longest) for claim in evaluation.claims]


def _claim_row(claim: Claim, names: Sequence[str], longest: int | None) -> ClaimRow:
    if claim.label is None:
        label = "no label"
        evidence: tuple[str, ...] = (one_line(claim.error),) if claim.error else ()
    else:
        label = claim.label.value
        share = (claim.probabilities or {}).get(claim.label)
        if share is not None:
            label += f" {share:.0%}"
        evidence = tuple(_quote(found, names, longest) for found in claim.evidence)
    missing = missing_line(claim)
    if missing is not None:
        evidence += (one_line(missing),)
    return ClaimRow(one_line(claim.text), label, evidence, _STYLES[claim.label])


def _quote(evidence: Evidence, names: Sequence[str], longest: int | None) -> str:
    if evidence.context is None:
        name = "reference"
    elif evidence.context < len(names):
        name = one_line(names[evidence.context])
    else:
        name = f"reference {evidence.context + 1}"
    quote = one_line(evidence.text)
    if longest is not None and len(quote) > longest:
        half = longest // 2
        quote = f"{quote[:half].rstrip()} […] {quote[-half:].lstrip()}"
    return f"{name}: “{quote}”" if name else f"“{quote}”"


def verdict(evaluation: Evaluation) -> tuple[str, str]:
    """The verdict in a word, and the reason in a line."""
    if evaluation.error is not None:
        return "UNDETERMINED", one_line(evaluation.error)
    parts = [] if evaluation.label is None else [one_line(evaluation.label)]
    if evaluation.score is not None:
        parts.append(f"score {evaluation.score:.2f}")
    if evaluation.explanation:
        parts.append(one_line(evaluation.explanation))
    reason = ", ".join(parts)
    if evaluation.passed is not None:
        return ("PASSED" if evaluation.passed else "FAILED"), reason
    return ("NOTHING TO CHECK" if evaluation.nothing_to_check else "UNDECIDED"), reason


def show(console: Console, evaluation: Evaluation, names: Sequence[str] = ()) -> None:
    """Print claims, verdict and usage: a table on a terminal, whole lines in a pipe."""
    if console.is_terminal:
        if evaluation.claims:
            console.print(_table(claim_rows(evaluation, names, _LONGEST_QUOTE)))
    else:
        for at, row in enumerate(claim_rows(evaluation, names), start=1):
            say(console, f"{at}. {row.label}: {row.claim}")
            for line in row.evidence:
                say(console, f"   {line}")
    word, reason = verdict(evaluation)
    say(console, word, reason, style=_VERDICT_STYLES.get(word, "bold magenta"))
    say(console, usage_line(evaluation.usage), style="dim")


def _table(rows: Sequence[ClaimRow]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, expand=False, pad_edge=False)
    table.add_column("#", justify="right", style="dim")
    table.add_column("claim", ratio=2, overflow="fold")
    table.add_column("label", no_wrap=True)
    table.add_column("evidence", ratio=3, overflow="fold", style="dim")
    for at, row in enumerate(rows, start=1):
        table.add_row(
            str(at),
            Text(row.claim),
            Text(row.label, style=row.style),
            Text("\n".join(row.evidence)),
        )
    return table


def say(console: Console, head: str, tail: str = "", *, style: str = "") -> None:
    """Print a line of harmless text, `head` in a style. In a pipe it is never wrapped."""
    line = Text(head, style=style)
    if tail:
        line = Text.assemble(line, "  ", tail)
    console.print(line, soft_wrap=not console.is_terminal, highlight=False)
