"""Read public data sets from the files that their publishers offer.

A new data set is a module with a `DataSet`, and a line in `DATA_SETS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from demur.cli import progress
from demur.cli.console import errors
from demur.views import terminal
from demur_research.datasets import (
    aggrefact,
    chale,
    everyday,
    factcheck_bench,
    faithbench,
    fever_symmetric,
    fool_me_twice,
    haltt4llm,
    halueval,
    phd,
    ragtruth,
    refchecker,
    summedits,
    truthfulqa,
    wice,
    wikibio,
)
from demur_research.datasets.catalogue import DataSet
from demur_research.datasets.finding import Report, download, find
from demur_research.datasets.rows import Reading

DATA_SETS: Mapping[str, DataSet] = {
    known.name: known
    for known in (
        chale.DATA_SET,
        truthfulqa.DATA_SET,
        halueval.QA,
        halueval.GENERAL,
        phd.DATA_SET,
        wikibio.DATA_SET,
        refchecker.DATA_SET,
        haltt4llm.DATA_SET,
        wice.DATA_SET,
        fever_symmetric.DATA_SET,
        factcheck_bench.DATA_SET,
        summedits.DATA_SET,
        fool_me_twice.DATA_SET,
        faithbench.DATA_SET,
        ragtruth.DATA_SET,
        aggrefact.DATA_SET,
        everyday.DATA_SET,
    )
}
"""The data sets by name, in the order in which they are listed."""


def read(name: str, data: Path | None = None, report: Report | None = None) -> Reading:
    """Return the rows of a data set.

    Args:
        name: One of `DATA_SETS`.
        data: The folder of all data sets, the folder of this one, or its file. None: the folder
            that `DEMUR_DATA` names, then earlier downloads, then a distribution that brings the
            set. If the set is in none of these, its licence is shown and it is downloaded.
        report: Hears how far a download is. By default, a bar on standard error shows it.

    Raises:
        ValueError: The name is unknown, or the files cannot be found, downloaded or read. The
            message says where to put them.
    """
    if name not in DATA_SETS:
        raise ValueError(f"unknown data set {name!r}: expected one of {', '.join(DATA_SETS)}")
    return read_set(DATA_SETS[name], data, report)


def read_set(known: DataSet, data: Path | None = None, report: Report | None = None) -> Reading:
    """Return the rows of a data set that need not be one of `DATA_SETS`; see `read`."""
    files = find(known, data)
    if files is None:
        fetch(known, report)
        files = find(known) or {}
    return read_files(known, files)


def read_files(known: DataSet, files: Mapping[str, Path]) -> Reading:
    """Return the rows of files that `find` found.

    Raises:
        ValueError: The files cannot be read, hold no row, or hold a key twice.
    """
    found = replace(known.read(files), folder=next(iter(files.values())).parent)
    names = ", ".join(sorted({str(path) for path in files.values()})[:3])
    if not found.rows:
        raise ValueError(
            f"{names}: it holds no row of {known.title} that can be used: name another file or "
            "folder with --data"
        )
    (key, times), *_ = Counter(row.key for row in found).most_common(1)
    if times > 1:
        raise ValueError(f"{names}: the key {key!r} stands there {times} times, expected once")
    if files.keys() <= {*known.other_forms}:
        return found
    missing = tuple(file.path for file in known.files if file.path not in files)
    return replace(found, missing=missing)


def fetch(known: DataSet, report: Report | None = None) -> None:
    """Show a data set's licence on standard error, and download the set; see `download`."""
    _say(f"{known.title}: {known.home}")
    _say(f"Licence: {known.licence}")
    if report is not None:
        done = download(known, report)
    else:
        with progress.downloads() as told:
            done = download(known, told)
    for path, why in done.left_out.items():
        _say(f"{path}: left out, since it could not be downloaded: {why}")
    for place, sha256 in done.trusted.items():
        _say(f"{place}: no checksum is known; from now on it is {sha256}, that of this download")


def _say(line: str) -> None:
    terminal.say(errors(), terminal.one_line(line))
