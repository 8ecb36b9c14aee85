"""The pytest plugin: options, fixtures, and the summary at the end of a run."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from demur.errors import DemurError
from demur.testing.sessions import Session, running

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable

    from demur.recording import Recording

_SESSION = pytest.StashKey[Session]()
_WORKER_LOG = "demur_log"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and the setting of demur."""
    add, replies = parser.getgroup("demur").addoption, "the setting demur_replies"
    told = f"Ask models for replies that FILE lacks, and record them there. [FILE: {replies}]"
    add("--demur-record", nargs="?", const="", metavar="FILE", help=told)
    told = "Keep the findings in a log (.sqlite or .jsonl), for demur diff and demur report."
    add("--demur-log", metavar="FILE", help=told)
    add("--demur-report", metavar="PAGE", help="Write the findings as a page for a browser.")
    told = "The recording that models reply from, from the folder of this file on."
    parser.addini("demur_replies", told, default="demur-replies.jsonl")


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Fix the delimiters in judges' prompts, so that a recording fits in another process."""
    if _replies(early_config, early_config.known_args_namespace.demur_record) is not None:
        os.environ["DEMUR_SECRET"] = "demur-replies"


def pytest_configure(config: pytest.Config) -> None:
    """Begin a session.

    Raises:
        UsageError: The options do not fit together, or a file cannot be written.
    """
    record, log = config.getoption("--demur-record"), config.getoption("--demur-log")
    if record is not None and config.getoption("numprocesses", None):
        raise pytest.UsageError("--demur-record: only one process can record: run without -n")
    if record and not record.endswith(".jsonl"):
        raise pytest.UsageError(
            f"--demur-record: expected a file that ends in .jsonl, got {record!r}: write "
            "--demur-record=FILE, or give the option after the tests"
        )
    for file in filter(None, (record, log, config.getoption("--demur-report"))):
        if not Path(file).absolute().parent.is_dir():
            raise pytest.UsageError(f"there is no folder for {file}")
    ours = Path(tempfile.gettempdir(), f"demur-{uuid.uuid4().hex}.jsonl")
    # All processes of a run write to one log.
    logs = [Path(getattr(config, "workerinput", {}).get(_WORKER_LOG, ours))]
    logs += [Path(log).absolute()] if log else []  # a test may change the folder
    session = Session(logs, _replies(config, record), record is not None)
    config.stash[_SESSION] = session
    running.append(session)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a process of pytest-xdist where the log is."""
    node.workerinput[_WORKER_LOG] = str(node.config.stash[_SESSION].logs[0])


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say where models' replies come from."""
    session = config.stash[_SESSION]
    doing = "recorded in" if session.records else "replayed from"
    return f"demur: replies are {doing} {session.replies}" if session.replies else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Know which test runs."""
    item.config.stash[_SESSION].item = item


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Sum up the findings of all processes, and write the report."""
    ours, page = session.config.stash[_SESSION], session.config.getoption("--demur-report")
    if hasattr(session.config, "workerinput"):
        return
    if not ours.logs[0].is_file():
        ours.said += [f"{page} is not written: no answer was checked"] if page else []
        return
    from demur.testing.summary import summary

    try:
        for line in summary(ours.logs[0], Path(page) if page else None):
            ours.said.append(line)
    except (DemurError, OSError, ValueError) as error:
        ours.said.append(f"ERROR: no report was written: {error}")
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Show scores, undetermined answers and costs."""
    session = config.stash[_SESSION]
    if session.records and session.replies != _replies(config, ""):
        session.said.append(f"to replay, set demur_replies in pytest's settings: {session.replies}")
    if session.said:
        terminalreporter.section("demur")
    for line in session.said:
        terminalreporter.line(line)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the session, and remove its own log."""
    if (session := config.stash.get(_SESSION, None)) is not None:
        running.remove(session)
        session.opened.close()
        if not hasattr(config, "workerinput"):
            session.logs[0].unlink(missing_ok=True)


@pytest.fixture
def demur_replies(request: pytest.FixtureRequest) -> Iterator[Recording | None]:
    """Have all LangChain models reply from the recording during a test.

    The value is the recording, whose `embedding` makes a recorded embedding model; None if nothing
    is recorded.
    """
    with request.config.stash[_SESSION].replying() as recording:
        yield recording


@pytest.fixture
def demur_guarded(
    request: pytest.FixtureRequest, demur_replies: Recording | None
) -> Callable[..., Runnable[Any, Any]]:
    """Return a function that wraps a chain, so that a test fails if an answer is not grounded.

    The arguments of the function are the chain, then evaluators as `demur.Guard` takes them (none
    for `RefChecker` with the judge "small"), and of the guard's options `question`, `answer`,
    `contexts`, `conversation` and `on_abstain`. Models reply as with `demur_replies`.
    """
    from demur.testing.checking import Checked

    return partial(Checked, request.config.stash[_SESSION])


def _replies(config: pytest.Config, record: str | None) -> Path | None:
    """Return the recording to write, or the one to replay if there is one."""
    if record:
        return Path(record).absolute()
    base = config.rootpath if config.inipath is None else config.inipath.parent
    file = base / config.getini("demur_replies")
    return file if record is not None or file.is_file() else None
