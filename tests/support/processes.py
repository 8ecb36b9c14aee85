"""Run processes beside the test's process, which end normally, with an error, or by a kill."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable

import pytest

from demur import DemurError
from demur.observe import Record
from support import records

posix = pytest.mark.skipif(os.name == "nt", reason="no forks, locks and modes on Windows")
"""The mark of tests that fork, or that look at locks and modes of files."""


def forked(work: Callable[[], object]) -> int:
    """Run `work` in a forked process, and return the id of the process."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def told(work: Callable[[], object], seconds: int = 30) -> str:
    """Run `work` in a forked process, with a time limit, and return its result as text.

    Raises:
        AssertionError: The process hung, or `work` raised; the traceback is on standard error.
    """
    out, into = os.pipe()

    def watched() -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
        os.write(into, str(work()).encode())

    child = forked(watched)
    os.close(into)
    with open(out, encoding="utf-8") as file:
        text = file.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == 0, "it hung" if code == -signal.SIGALRM else f"it ended with {code}"
    return text


def end(*children: int) -> None:
    """Wait for the processes, and check that all of them end with exit code 0."""
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [
        0 for _ in children
    ]


def together(count: int, work: Callable[[int], object]) -> None:
    """Run `work` with each number in a process of its own, all starting at the same moment."""
    told, tell = os.pipe()

    def wait_and_work(number: int) -> None:
        os.close(tell)
        os.read(told, 1)  # The read returns when the parent closes its end.
        work(number)

    children = [forked(lambda number=number: wait_and_work(number)) for number in range(count)]
    os.close(tell)
    os.close(told)
    end(*children)


def written_until_full(write: Callable[[Record], None], size: int) -> tuple[list[str], str]:
    """Write records until no file may grow any more, and lift the limit again.

    Call this in a process of its own.

    Args:
        write: A function that writes a record.
        size: The size in bytes that no file may exceed, as on a full disk.

    Returns:
        The ids of the records that were written, and the message of the error.
    """
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    kept: list[str] = []
    try:
        while True:
            record = records.scored(answer="x" * 1000)
            write(record)
            kept.append(record.id)
    except (OSError, DemurError) as error:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        return kept, str(error)
