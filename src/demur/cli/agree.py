"""Run `demur agree`: show how far a judge agrees with people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from demur._text import one_line
from demur.calibration import differences
from demur.cli import console, judged
from demur.cli.options import json_option
from demur.comparing import Agreed, agreements, decimal, interval, slices
from demur.errors import DemurError
from demur.observe.log import LABEL, read_labels
from demur.views import counted, terminal

_DECIDED = ("failed", "passed")
_SAYS = {True: LABEL, False: "supported"}
_MOST = 20
"""The most kappas, and the most differing answers, that are shown without --json."""


def agree(
    file: Annotated[str, typer.Argument(metavar="JUDGED", help="A log, or scored answers.")],
    labels: Annotated[
        list[Path] | None,
        typer.Option(
            help="A person's labels: CSV or JSON lines with the fields `id` (or `run`) and "
            f"`{LABEL}`; may be repeated for further people. [default: the labels in JUDGED]"
        ),
    ] = None,
    evaluator: Annotated[str | None, typer.Option(help="The judge, if there are several.")] = None,
    as_json: Annotated[bool, json_option("one line of JSON")] = False,
) -> int:
    """Show how far a judge agrees with people, and on which answers they differ.

    JUDGED is a log, or a file of demur score or demur compare. An undetermined answer is neither
    agreement nor disagreement. docs/agree.md explains the figures.

    Exit codes: 0 shown, 2 nothing to compare, 64 wrong usage, 130 interrupted.
    """
    people = {str(path): read_labels(path) for path in labels or ()}
    with console.errors().status("reading the verdicts"):
        every = {id: own[id] for own in people.values() for id in own}
        held = judged.read(file, every, texts=True)
    console.say_left_out(held.name, held.damaged)
    judge, people = judged.chosen(held, evaluator), people or {"people": held.labels}
    people = {f"labels of {who}" if who == judge else who: own for who, own in people.items()}
    verdicts = held.judged[judge]
    found = {id: one.finding for id, one in verdicts.items()}
    ids = [id for id in found if any(id in own for own in people.values())]
    failed = {id: found[id] == "failed" for id in ids if found[id] in _DECIDED}
    for who, own in people.items():
        if failed.keys().isdisjoint(own):
            raise DemurError(
                f"{held.name}: no answer that {judge} passed or failed has a label of {who}. Give "
                f"--labels a file with the ids of answers and whether they are {LABEL}, or give a "
                "judge that only scores a threshold"
            )
    prints = (one.fingerprints for id in failed for one in verdicts[id].parts)
    if differing := differences(filter(None, prints)):
        raise DemurError(
            f"{held.name}: the verdicts of {judge} are not of one judge, they depend on different "
            f"things: {'; '.join(differing)}. Give each judge a name of its own. {held.cut}"
        )
    known = [id for id in failed if id in held.attempts and id not in held.redacted]
    parts = {"all": [*found], **slices({id: held.attempts[id] for id in known})}
    raters = {judge: failed, **people}
    told = {
        "file": held.name,
        "judge": judge,
        "unknown_labels": sorted(held.unknown),
        "findings": {
            f"{who}, {word}": Counter(one for id, one in found.items() if own.get(id) is label)
            for who, own in people.items()
            for label, word in _SAYS.items()
        },
        "agreement": [*agreements(raters, held.groups, parts)],
        "differing": [
            {
                "id": id,
                "says": {who: _SAYS[own[id]] for who, own in raters.items() if id in own},
                "question": held.questions.get(id),
                "claims": [*judged.claims(held, judge, id)],
            }
            for id in sorted(failed, key=failed.__getitem__)  # first those that the judge passed
            if any(own.get(id, failed[id]) is not failed[id] for own in people.values())
        ],
    }
    with console.pipe_may_close():
        if as_json:
            console.print_json(told)
        else:
            _show(told)
    return console.PASSED


def _show(told: Mapping[str, Any]) -> None:
    out, cells = console.output(), []
    agreed: list[Agreed] = told["agreement"]
    people = [one for one in agreed if one.slice == "all" and told["judge"] not in one.raters]
    own = [one.kappa.value for one in people if one.kappa.value is not None]
    for one in agreed[:_MOST]:
        who, ends = " and ".join(one.raters), one.kappa.interval
        if own and ends and one.slice == "all" and one not in people:
            how = "as well as" if ends[1] >= min(own) else "less than"
            terminal.say(out, f"{one_line(who)} agree {how} people with each other.")
        same = f"{one.answers:,}", f"{one.same / one.answers:.1%}"
        kappa = decimal(one.kappa), interval(one.kappa)
        cells.append([one.slice, who, *same, *kappa, one.why or ""])
    console.table(out, ["answers", "who"], ["number", "same", "kappa", "95 %", "note"], cells)
    for who, counts in told["findings"].items():
        decided = ", ".join(f"{counts.pop(name, 0):,} {name}" for name in _DECIDED)
        rest = counted(counts) or "none"
        terminal.say(out, one_line(who), f"{decided}; in no kappa: {rest}")
    terminal.say(out, "labels of no answer", f"{len(told['unknown_labels']):,}")
    for row in told["differing"][:_MOST]:
        says = ", ".join(f"{who}: {word}" for who, word in row["says"].items())
        terminal.say(out, one_line(row["id"]), one_line(says), style="bold")
        lines = [f"{one['label']}: {one['claim']} “{one['quote'] or '–'}”" for one in row["claims"]]
        for line in filter(None, (row["question"], *lines)):
            terminal.say(out, f"  {one_line(line)}")
    if max(len(agreed), len(told["differing"])) > _MOST:
        terminal.say(out, f"at most {_MOST} of each are shown: --json prints all")
