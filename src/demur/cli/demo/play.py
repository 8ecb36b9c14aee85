"""Run the demonstration: ask a guarded chain real questions, and show what the guard does."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from rich.console import Console
from rich.rule import Rule

from demur import Guard
from demur._system import make_private_folder, owner_only
from demur.cli.demo import telling
from demur.cli.demo.chain import guarded
from demur.cli.demo.corpus import passages
from demur.cli.demo.index import open_index
from demur.errors import DemurError, ModelCallError
from demur.guard import Guarded, Trace
from demur.local import MINILM, MiniLM, model_dir
from demur.observe.log import open_log
from demur.runtime import describe
from demur.schema import Usage
from demur.views import terminal
from demur.views.report import write_report

QUESTIONS = (
    "Does random.randint include the upper end?",
    "Is the result of os.listdir sorted?",
)
"""The questions, as a programmer would ask them. A small model says yes to both, and is wrong the
second time. The second was chosen from some 45 because its correction passes: of about 23 wrong
answers that the guard rejected, it mended 5, and abstained on the others (2026-11-29)."""

RETRIEVED = 2
"""The number of passages for a question, and for each failed claim when the chain answers again. It
is small because a small model reads slowly."""


def play(
    console: Console,
    model: BaseChatModel,
    traces: Path | None = None,
    embeddings: Embeddings | None = None,
    questions: Sequence[str] = QUESTIONS,
) -> None:
    """Run the demonstration, and show each question as soon as its answer has been checked.

    Args:
        console: The console to print to.
        model: The model that answers, and that checks the answers.
        traces: The file for the traces, as JSON; None for a new file in the user's state folder. A
            report is written beside it.
        embeddings: The embeddings for the search; None for `MiniLM`.
        questions: The questions to ask.

    Raises:
        DemurError: The model gave no answer, something is not installed, or a file cannot be used.
    """
    started = time.monotonic()
    retriever = open_retriever(console, embeddings or MiniLM())
    path = traces or _new_file()
    save(path, [])  # a file that cannot be written fails now, not in two minutes
    guard = guarded(model, retriever)
    terminal.say(
        console,
        "A LangChain chain answers questions about the standard library from passages of its "
        "documentation. A guard checks each answer, claim by claim, against the passages that the "
        "chain retrieved, and acts when one fails. The questions were chosen to show both; the "
        "answers are not prepared. A small model makes mistakes, as an author and as a judge: on "
        "other questions this guard abstains more often than it mends.",
    )
    done: list[Guarded[str]] = []
    for question in questions:
        _show_question(console, question, f"{len(done) + 1} of {len(questions)}")
        with console.status("answering and checking"):
            done.append(_ask(guard, question))
        _show_answer(console, done[-1])
        save(path, done)
    _show_summary(console, [one.trace for one in done], time.monotonic() - started)
    terminal.say(console, terminal.one_line(f"Traces: {path}"))
    terminal.say(console, terminal.one_line(f"Report: {_report(path)}"), "open it in a browser")


def open_retriever(console: Console, embeddings: Embeddings) -> BaseRetriever:
    """Return the retriever of the demonstration's chain, and show the progress of its indexing."""
    documents = passages()
    with console.status("opening the index") as status:

        def report(done: int, total: int) -> None:
            line = f"indexing, this once: {done:,} of {total:,} passages"
            if console.is_terminal:
                status.update(line)
            else:
                terminal.say(console, line)

        folder = model_dir() / "demo-index"
        index = open_index(documents, embeddings, MINILM.sha256, folder, report)
    retriever: BaseRetriever = index.as_retriever(search_kwargs={"k": RETRIEVED})
    return retriever


def _ask(guard: Guard[str, str], question: str) -> Guarded[str]:
    try:
        return guard.with_trace().invoke(question)
    except DemurError:
        raise
    except Exception as error:  # the model's own error: a guard lets a chain's errors through
        raise ModelCallError(f"The model gave no answer: {describe(error)}") from error


# --- What is shown -----------------------------------------------------------------------------


def _show_question(console: Console, question: str, place: str) -> None:
    console.print()
    if console.is_terminal:
        console.print(Rule())
    terminal.say(console, f"Question {place}:", question, style="bold")


def _show_answer(console: Console, answered: Guarded[str]) -> None:
    trace = answered.trace
    for at, attempt in enumerate(trace.attempts):
        console.print()
        if at:
            said = telling.action(trace.attempts[at - 1], attempt)
            terminal.say(console, "Why:", terminal.harmless(said), style="bold yellow")
        text = terminal.harmless(attempt.answer)
        terminal.say(console, f"Answer {at + 1}:", text, style="bold cyan")
        titles = [str(document.metadata["title"]) for document in attempt.contexts]
        for evaluation in attempt.evaluations:
            terminal.show(console, evaluation, titles)
    console.print()
    ending = terminal.harmless(telling.ending(trace))
    terminal.say(console, "The guard:", ending, style="bold yellow")
    terminal.say(console, "Final answer:", terminal.harmless(answered.output), style="bold green")
    terminal.show_sources(console, trace.attempts[-1])
    terminal.say(console, f"{terminal.usage_line(trace.usage)} of calls", style="dim")


def _show_summary(console: Console, traces: Sequence[Trace], seconds: float) -> None:
    console.print()
    terminal.say(console, telling.tally(traces), style="bold")
    spent = sum((trace.usage for trace in traces), Usage())
    terminal.say(
        console, f"In all: {terminal.usage_line(spent)} of calls; {seconds:.0f} s went by."
    )


# --- What is kept ------------------------------------------------------------------------------


def _new_file() -> Path:
    import platformdirs  # it is in the extra that the index needs

    name = f"demo-{datetime.now():%Y%m%d-%H%M%S}.json"
    return Path(platformdirs.user_state_dir("demur")) / name


def _report(traces: Path) -> Path:
    """Write a page about the traces beside them, and return its path."""
    path = traces.with_suffix(".html")
    try:
        with open_log(traces) as log:
            write_report(log, path, title="demur demo")
    except (OSError, ValueError) as error:  # a path that no file can have is a ValueError
        why = getattr(error, "strerror", None) or error
        raise DemurError(f"the report cannot be written to {path}: {why}") from error
    return path


def save(path: Path, answered: Sequence[Guarded[str]]) -> None:
    """Write the traces of all questions so far, as a JSON list."""
    records = [
        {"output": one.output, "trace": json.loads(one.trace.model_dump_json(fallback=str))}
        for one in answered
    ]
    try:
        make_private_folder(path.parent)
        with open(path, "w", encoding="utf-8", opener=owner_only) as file:
            file.write(json.dumps(records, indent=2) + "\n")
    except OSError as error:
        raise DemurError(
            f"the traces cannot be written to {path}: {error.strerror or error}. "
            "Name another file: demur demo --traces FILE"
        ) from error
