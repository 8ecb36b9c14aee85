"""Run a command of the command line, and read what it printed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from demur import cli


def flat(text: str) -> str:
    """Return a text without the frame and the breaks that a terminal's width adds."""
    return " ".join(text.replace("│", " ").split())


class Command:
    """Run one command in a folder, and say what it printed."""

    def __init__(self, name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.name, self.folder, self._capsys = name, folder, capsys

    def run(self, *arguments: object) -> tuple[int, str, str]:
        """Return the exit code, the output and the errors."""
        self._capsys.readouterr()
        code = cli.run([self.name, *map(str, arguments)])
        return (code, *self._capsys.readouterr())

    def as_json(self, *arguments: object, codes: Iterable[int] = (0,)) -> dict[str, Any]:
        """Return the line of JSON that the command printed."""
        code, out, err = self.run(*arguments, "--json")
        assert code in codes, err
        assert out.count("\n") == 1
        told: dict[str, Any] = json.loads(out)
        return told

    def refuses(self, *arguments: object, code: int = 2) -> str:
        """Return the error; nothing is printed, and no file is written."""
        before = self._files()
        ended, out, err = self.run(*arguments)
        assert (ended, out) == (code, "")
        assert self._files() == before
        return flat(err)

    def _files(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in self.folder.iterdir() if path.is_file()}


def csv_of(path: Path, labels: Mapping[str, bool]) -> Path:
    """Write a file of labels for `--labels`."""
    lines = "".join(f"{id},{str(label).lower()}\n" for id, label in labels.items())
    path.write_text(f"id,hallucinated\n{lines}")
    return path


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write rows for `demur score` or `demur compare`."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
