"""Run `demur diff`: compare two runs over the same questions, and fail if they got worse."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.markdown import Markdown

from demur.cli import console, judged
from demur.cli.options import json_option
from demur.comparing import Condition, Pair, changed, changes_markdown, pair_up
from demur.errors import DemurError


def diff(
    baseline: Annotated[str, typer.Argument(help="The log, or results of demur score, as before.")],
    current: Annotated[str, typer.Argument(help="The log, or results of demur score, as now.")],
    evaluator: Annotated[list[str] | None, typer.Option(help="An evaluator to compare.")] = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help='End with 1 if this holds, such as "failure rate rises by 2 points at 95 %"; may '
            "be repeated. FIGURE rises|falls by N points at C %: with confidence C, the failure "
            "rate, undetermined rate or mean score changes by more than N hundredths.",
        ),
    ] = None,
    other_judge: Annotated[
        bool, typer.Option("--other-judge", help="Allow --fail-if although the judge changed too.")
    ] = False,
    markdown: Annotated[
        Path | None, typer.Option(help="Write Markdown for a comment here; - prints it.")
    ] = None,
    as_json: Annotated[bool, json_option("one line of JSON")] = False,
) -> int:
    """Show what got worse and what got better between two runs over the same questions.

    Answers are paired by id, or else by question. docs/diff.md explains figures and conditions.

    Exit codes: 0 no condition holds, 1 a condition holds, 2 nothing can be compared or there are
    too few pairs for a condition, 64 wrong usage, 130 interrupted.
    """
    try:
        conditions = [Condition.read(text) for text in fail_if or ()]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--fail-if") from error
    console.may_write([markdown], Path(baseline), Path(current), option="--markdown")
    with console.errors().status("reading the answers"):
        runs = before, after = [judged.read(one, None, texts=True) for one in (baseline, current)]
    ids = pair_up(*({id: held.questions.get(id) for id in held.same} for held in runs))
    rest = [len(held.same) - len(ids) for held in runs]
    about = f"{len(ids):,} pairs of answers; not paired: {rest[0]:,} of {before.name}, "
    about += f"{rest[1]:,} of {after.name}"
    names = evaluator or [name for name in before.judged if name in after.judged]
    for held in runs:
        console.say_left_out(held.name, held.damaged)
        for name in names:
            judged.chosen(held, name)
    changes = [changed(name, _pairs(name, ids, *runs)) for name in dict.fromkeys(names)]
    if not any(change.figures for change in changes):
        raise DemurError(
            f"nothing can be compared ({about}): expected answers that an evaluator judged in both "
            "runs, with the same id or, in logs, the same question. Give rows the field id"
        )
    others = [f"{one.evaluator}: {one.other_judge}" for one in changes if one.other_judge]
    if others and conditions and not other_judge:
        raise DemurError(
            "the judge changed too, so a change need not be that of the answers: "
            f"{'; '.join(others)}. Judge {before.name} again, or give --other-judge"
        )
    tests = len(changes) * len(conditions)
    verdicts = [condition.of(change, tests) for change in changes for condition in conditions]
    page = changes_markdown(about, changes, verdicts)
    if markdown not in (None, Path("-")):
        console.write_page(markdown, page)
    with console.pipe_may_close():
        if as_json and markdown != Path("-"):
            told = {"baseline": before.name, "current": after.name, "pairs": len(ids)}
            told |= {"not_paired": rest, "evaluators": changes, "conditions": verdicts}
            console.print_json(told)
        elif (out := console.output()).is_terminal and markdown is None:
            out.print(Markdown(page))
        else:
            typer.echo(page, nl=False)
    holds = {verdict["holds"] for verdict in verdicts}
    otherwise = console.UNDECIDED if None in holds else console.PASSED
    return console.FAILED if True in holds else otherwise


def _pairs(name: str, ids: Sequence[tuple[str, str]], *runs: judged.Held) -> list[Pair]:
    (before, after), pairs = runs, list[Pair]()
    for a, b in ids:
        old, new = before.judged[name].get(a), after.judged[name].get(b)
        texts = [before.questions.get(a, a)]
        if old and new and (old.finding, new.finding) == ("passed", "failed"):  # it got worse
            first = next(judged.claims(after, name, b), {})
            if first.get("label") not in (None, "Entailment"):
                texts += [f"{first['label']}: {first['claim']}", f"“{first['quote'] or '–'}”"]
            else:  # such as an evaluator that knows no claims
                texts.append(new.parts[0].explanation)
        pairs.append((before.groups[a], old, new, texts))
    return pairs
