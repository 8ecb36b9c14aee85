"""Where the rows of a labelled set come from: a file, or a package that knows the set's name."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import entry_points
from itertools import chain
from pathlib import Path
from typing import Any

import typer

from demur.errors import DemurError
from demur.scoring import ScoringError
from demur.views import terminal

GROUP = "demur.data_sets"
"""The entry points through which sets are found. Each is a function from a name and a path, or
None, to the set's rows; it raises LookupError for a name that it does not know, and DemurError or
ValueError where the set cannot be had."""


@contextmanager
def rows_of(file: str, data: Path | None) -> Iterator[tuple[Path, Path]]:
    """A file of rows, and beside what results are to be put by default.

    Args:
        file: A file's name, or that of a set.
        data: Where the publisher's files of the set are, if it was said.

    Raises:
        typer.BadParameter: There is neither such a file nor such a set, or `data` has no effect.
        ScoringError: The set cannot be had, or the file is none that can be read twice.
    """
    path = Path(file)
    if path.exists():
        if data is not None:
            raise typer.BadParameter("it has no effect with a file", param_hint="--data")
        if not path.is_file():  # a pipe can be read only once
            raise ScoringError(f"{file} is no ordinary file: write the rows to one first")
        yield path, path
        return
    with tempfile.TemporaryDirectory(prefix="demur-") as folder:
        spooled = Path(folder) / "rows.jsonl"
        try:
            with spooled.open("w", encoding="utf-8") as out:
                for row in _named(file, data):
                    out.write(json.dumps(row, allow_nan=False) + "\n")
        except DemurError:
            raise
        except (ValueError, TypeError) as error:
            raise ScoringError(f"the data set {file!r} cannot be had: {error}") from error
        yield spooled, Path(re.sub(r"[^\w.-]+", "-", file).strip(".-") or "set")


def _named(name: str, data: Path | None) -> Iterable[Mapping[str, Any]]:
    points = entry_points(group=GROUP)
    for point in points:
        try:
            rows = iter(point.load()(name, data))
            # A generator raises only when it is asked for the first row.
            return chain([first] if (first := next(rows, None)) is not None else [], rows)
        except LookupError:
            continue
        except (ImportError, AttributeError) as error:
            raise DemurError(
                f"{point.value}, which offers data sets, is broken: {error}"
            ) from error
    message = (
        f"there is no file {name!r}, and no data set of this name: demur-bench datasets lists them"
        if points
        else f"there is no file {name!r}. Data sets that have names need demur-research: "
        "pip install demur-research"
    )
    raise typer.BadParameter(terminal.one_line(message), param_hint="FILE")
