"""Show the progress of a task, with bars on a terminal and with lines in a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from demur.cli.console import errors
from demur.views import terminal

Report = Callable[[str, str, int, int], None]
"""A function that is called with the task, a note, the amount that is done, and the total."""

QUIET_SECONDS = 5.0
"""The number of seconds before the first line. A shorter task prints no line in a log."""
_LINE_SECONDS = 60.0


def downloads() -> AbstractContextManager[Report]:
    """Return a context whose function shows the progress of downloads, in bytes."""
    return _shown(_download_lines, DownloadColumn(), TransferSpeedColumn())


def counts() -> AbstractContextManager[Report]:
    """Return a context whose function shows the progress of items that are counted."""
    return _shown(_count_lines, MofNCompleteColumn())


@contextmanager
def _shown(lines: Callable[[Console], Report], *columns: ProgressColumn) -> Iterator[Report]:
    console = errors()
    if not console.is_terminal:
        yield lines(console)
        return
    description = TextColumn("{task.description}", markup=False)
    with Progress(
        description, BarColumn(), *columns, TimeRemainingColumn(), console=console
    ) as bar:
        tasks: dict[str, TaskID] = {}

        def move(task: str, note: str, done: int, total: int) -> None:
            text = terminal.one_line(f"{task}, {note}")
            if task not in tasks:  # what was done before must not count for the speed
                tasks[task] = bar.add_task(text, total=total, completed=done)
            bar.update(tasks[task], description=text, completed=done, total=total)

        yield move


def _download_lines(console: Console) -> Report:
    """Return a function that prints a line for every tenth of a download."""
    shown: set[tuple[str, str, int]] = set()

    def move(task: str, note: str, done: int, total: int) -> None:
        tenth = 10 * done // total if total else 0
        if (task, note, tenth) not in shown:
            shown.add((task, note, tenth))
            line = terminal.one_line(f"{task}, {note}: {tenth * 10} % of {total:,} bytes")
            terminal.say(console, line)

    return move


def _count_lines(console: Console) -> Report:
    """Return a function that prints a line for every tenth and every minute of a long task."""
    begun: dict[str, tuple[float, int]] = {}
    shown: dict[str, tuple[float, int]] = {}

    def move(task: str, note: str, done: int, total: int) -> None:
        now, tenth = time.monotonic(), 10 * done // total if total else 0
        started, before = begun.setdefault(task, (now, done))
        if now - started < QUIET_SECONDS:
            return
        last, last_tenth = shown.get(task, (now, -1))
        if tenth == last_tenth and now - last < _LINE_SECONDS:
            return
        shown[task] = now, tenth
        left = (now - started) / (done - before) * (total - done) if done > before else 0.0
        rest = f", about {_duration(left)} left" if left else ""
        terminal.say(console, terminal.one_line(f"{task}, {note}: {done:,} of {total:,}{rest}"))

    return move


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
