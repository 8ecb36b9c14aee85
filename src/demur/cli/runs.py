"""Carry out a run of `demur score` or `demur compare`, and show how far it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from demur.cli.console import errors
from demur.cli.progress import Report, counts
from demur.cli.summary import spent
from demur.runtime import CallPolicy, policy_for
from demur.schema import Prices
from demur.scoring import Progress, Run
from demur.views import terminal

ROWS_AT_ONCE = 16


def policy_of(model: object, at_once: int | None) -> CallPolicy | None:
    """Return the model's own policy with `at_once` calls at a time; None if no number is given."""
    return None if at_once is None else replace(policy_for(model, None), max_concurrency=at_once)


def carry_out(
    run: Run, task: str, prices: Prices | None, first: Callable[[Report], None] | None = None
) -> bool:
    """Score what is missing, and show the progress of the run.

    Args:
        run: The run.
        task: The name of the task, for the progress.
        prices: The prices, for the cost so far.
        first: A function that is called first, unless everything is done.

    Returns:
        False after an interrupt, otherwise True.
    """
    results, path = run.results, terminal.one_line(str(run.results.path))
    if results.aside:
        aside = terminal.one_line(str(results.aside))
        terminal.say(errors(), f"the earlier results are in {aside}")
    if results.cut:
        cut = f"{path} ended in a torn line: {results.cut} bytes were removed"
        terminal.say(errors(), cut)

    def tell(now: Progress) -> None:
        open_cases = f"{now.undetermined:,} undetermined, " if now.undetermined else ""
        report(task, f"{open_cases}{spent(now.usage, prices)}", now.done, now.total)

    try:
        with counts() as report:
            if first is not None and run.done < run.total:
                first(report)
            run.score(tell)
    except KeyboardInterrupt:
        far = f"stopped: {run.done:,} of {run.total:,} are in {path}; the same command goes on"
        terminal.say(errors(), far)
        return False
    return True
