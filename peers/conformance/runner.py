"""Start adapters, each in its environment, and have them do jobs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers import adapters
from peers.adapters import Adapter, AdapterError

from . import facts

_HERE = Path(__file__).parent
_START = 240.0
"""The seconds that a product may take to be imported on a busy machine."""


@dataclass(frozen=True)
class Guard:
    """Describe one product in one setting."""

    name: str
    """The name, as `--guard` and the table show it."""
    adapter: str
    """The name of the adapter's file, without its extension."""
    setting: str
    """One of the adapter's settings."""
    environment: str | None
    """The name of the environment that it runs in. None: that of this interpreter, which has
    demur."""
    packages: tuple[str, ...]
    """The packages whose versions the table shows."""
    own_prompt: bool = False
    """Whether the product brings the judge's prompt; otherwise its user writes it, here an
    adapter."""
    judges_itself: bool = False
    """Whether the judge is a model in the product's process. Then no endpoint of a judge can fail
    or be slow, and the server does not see what is judged."""


@dataclass(frozen=True)
class Running:
    """Represent a running guard."""

    guard: Guard
    adapter: Adapter

    def job(self, seconds: float, **job: Any) -> dict[str, Any]:
        """Have the adapter do a job, and return the result. It raises what `Adapter.ask` raises."""
        return self.adapter.ask(job, seconds)


def calls(numbers: list[int], url: str) -> list[dict[str, Any]]:
    """Return what the clients ask: a call for each number, with the URL of the models."""
    return [
        {
            "at": at,
            "url": url,
            "question": facts.question(at),
            "contexts": [facts.evidence(at)],
        }
        for at in numbers
    ]


@contextmanager
def running(guard: Guard, log: Path | None = None) -> Iterator[Running]:
    """Run a guard's adapter for the length of a `with` block.

    Args:
        guard: The product and its setting.
        log: The file for what the adapter writes to standard error. None: it is dropped.

    Raises:
        AdapterError: The adapter cannot be started.
        NoEnvironmentError: Its environment cannot be made.
    """
    adapter = str(_HERE / "adapters" / f"{guard.adapter}.py")
    with tempfile.TemporaryDirectory() as home, open(log or os.devnull, "a") as errors:
        (Path(home) / ".guardrailsrc").write_text(
            "id=none\nenable_metrics=false\nuse_remote_inferencing=false\n"
        )
        command = _HERE / "harness.py", [adapter, guard.setting]
        with adapters.running(guard.environment, *command, home, errors, HOME=home) as found:
            if guard.setting not in found.told(_START)["settings"]:
                raise AdapterError(f"{guard.adapter} has no setting {guard.setting!r}")
            yield Running(guard, found)
