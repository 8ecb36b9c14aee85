"""Define `demur-bench datasets`, which lists, describes and downloads the public data sets."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer

from demur.cli.console import complain, output, pipe_may_close
from demur.cli.console import table as print_table
from demur.views import terminal
from demur_research.commands.options import DataPath, attempt, say
from demur_research.datasets import DATA_SETS, fetch, read_files
from demur_research.datasets.catalogue import DataSet
from demur_research.datasets.finding import NotHereError, by_hand, cache, find
from demur_research.datasets.rows import Reading

_HEADS = (
    ["set", "labels of", "shows", "cannot show", "licence"],
    ["published", "usable here", "reader"],
)


def datasets(
    name: Annotated[
        str | None, typer.Argument(help="A data set to describe. [default: list all sets]")
    ] = None,
    data: DataPath = None,
    download: Annotated[
        bool, typer.Option("--download", help="Download the set's files from its publisher.")
    ] = False,
) -> None:
    """List the public data sets: licence, rows, what they can and cannot show."""
    if name is None:
        if download:
            raise typer.BadParameter("name the data set to fetch", param_hint="--download")
        rows = [_listed(known, data) for known in DATA_SETS.values()]
        with pipe_may_close():
            print_table(output(), *_HEADS, rows, whole={"set"})
        return
    if name not in DATA_SETS:
        told = f"expected one of {', '.join(DATA_SETS)}, got {name!r}"
        raise typer.BadParameter(told, param_hint="NAME")
    known = DATA_SETS[name]
    if download:
        attempt(lambda: fetch(known), "--download")
    with pipe_may_close():
        for line in _told(known, data):
            say(line)


def _listed(known: DataSet, data: Path | None) -> list[str]:
    try:
        files = find(known, data)
        here = f"{len(read_files(known, files)):,}" if files else "-"
    except NotHereError:
        here = "-"
    except ValueError as error:  # the other sets are still listed
        complain(terminal.one_line(str(error)))
        here = "cannot be read"
    published = "?" if known.published_rows is None else f"{known.published_rows:,}"
    note = "tried" if known.read_here else "not read here"
    what = [known.name, known.level, known.shows, known.cannot_show, known.licence]
    return [*what, published, here, note]


def _told(known: DataSet, data: Path | None) -> Iterator[str]:
    yield f"{known.title} ({known.name}): {known.home}"
    yield f"Licence: {known.licence}"
    rows = "unknown" if known.published_rows is None else f"{known.published_rows:,}"
    yield f"Labels: for each {known.level}. Rows that the publisher gives: {rows}"
    yield f"Shows: {known.shows}"
    yield f"Cannot show: {known.cannot_show}"
    if not known.read_here:
        yield (
            "Not read here: the publisher's own file was out of reach when the reader was written. "
            "The reader was tried on files of the documented form."
        )
    for file in known.files:
        if known.shipped is not None:
            yield f"File: {file.path}, which comes with demur: {known.shipped}"
            continue
        if file.url is None:
            yield f"File: {file.path}, by hand from {known.home}"
            continue
        checksum = file.sha256 or "not known: the one of the first download holds from then on"
        yield f"File: {file.path}, from {file.url}; sha256 {checksum}"
    for path in known.other_forms:
        yield f"Or, in another form: {path}"
    yield f"Looked for in: {', '.join(_places(known, data))}"
    files = attempt(lambda: find(known, data), "--data")
    if files is None:
        account = next((file for file in known.files if file.url is None), None)
        if account is None:
            yield f"Not on this machine: demur-bench datasets {known.name} --download fetches it."
        else:
            told = f"Not on this machine: {known.home} gives it to users with an account."
            yield f"{told} {by_hand(account)}."
        return
    found = attempt(lambda: read_files(known, files), "--data")
    yield from _read(known, files, found)


def _places(known: DataSet, data: Path | None) -> Iterator[str]:
    if data is not None:
        yield str(data)
        return
    yield os.environ.get("DEMUR_DATA") or "DEMUR_DATA (not set)"
    yield str(cache())
    if known.shipped is not None:
        yield str(known.shipped)


def _read(known: DataSet, files: Mapping[str, Path], found: Reading) -> Iterator[str]:
    first = next(iter(files.values()))
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    yield f"Here: {len(found):,} rows that can be used, from {first}{more}"
    for name, why in known.filters.items():
        yield f"Left out, {found.left_out.get(name, 0):,} rows: {name}. {why}"
    for name, what in known.traps.items():
        yield f"Kept, {found.kept.get(name, 0):,} times: {name}. {what}"
    if found.missing:
        yield f"Missing: {', '.join(found.missing)}"
