"""Find the rows of a labelled set: in a file, or in a package that knows the set's name."""

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
"""The group of entry points in which packages register data sets. Each is a function that takes a
name, and a path or None, and returns the set's rows. It raises LookupError for a name that it does
not know, and DemurError or ValueError if the rows cannot be read."""


@contextmanager
def rows_of(file: str, data: Path | None) -> Iterator[tuple[Path, Path]]:
    """Yield a file of rows, and the path beside which results are put by default.

    Args:
        file: The name of a file or of a data set.
        data: The folder with the publisher's files of the set, if it was given.

    Raises:
        typer.BadParameter: There is neither such a file nor such a set, or `data` has no effect.
        ScoringError: The set cannot be read, or the file can be read only once.
    """
    path = Path(file)
    if path.exists():
        if data is not None:
            raise typer.BadParameter("it has no effect with a file", param_hint="--data")
        if not path.is_file():  # a pipe, for example, can be read only once
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
            raise ScoringError(f"the data set {file!r} cannot be read: {error}") from error
        yield spooled, Path(re.sub(r"[^\w.-]+", "-", file).strip(".-") or "set")


def _named(name: str, data: Path | None) -> Iterable[Mapping[str, Any]]:
    points = entry_points(group=GROUP)
    for point in points:
        try:
            rows = iter(point.load()(name, data))
            # A generator raises only when its first row is requested.
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
