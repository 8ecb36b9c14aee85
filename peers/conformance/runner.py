"""Starts adapters, each in its environment, and has them do jobs."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers import environments

from . import facts

_HERE = Path(__file__).parent
_QUIET = {
    "GUARDRAILS_RUN_SYNC": "false",
    "OTEL_SDK_DISABLED": "true",
    "DO_NOT_TRACK": "1",
    "NEMO_GUARDRAILS_NO_USAGE_STATS": "1",
    "NEMOGUARDRAILS_TELEMETRY": "false",
    "LANGSMITH_TRACING": "false",
    "ANONYMIZED_TELEMETRY": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "true",
    "TOKENIZERS_PARALLELISM": "false",
    "OPENAI_API_KEY": "none",
}
"""What turns the products' telemetry and downloads off."""
_START = 240.0
"""Seconds that a product may take to be imported, on a machine with more to do."""


@dataclass(frozen=True)
class Guard:
    """One product in one setting."""

    name: str
    """As `--guard` and the table have it."""
    adapter: str
    """The adapter's file, without its ending."""
    setting: str
    """One of the adapter's."""
    environment: str | None
    """Whose environment it runs in; None: this interpreter's, which has demur."""
    packages: tuple[str, ...]
    """Whose versions the table tells."""
    own_prompt: bool = False
    """Whether the judge's prompt is the product's; else its user writes it, here an adapter."""


class AdapterError(Exception):
    """An adapter cannot be started, or does not answer."""


class Adapter:
    """A running adapter; see `running`."""

    def __init__(self, guard: Guard, process: subprocess.Popen[str]) -> None:
        """It has been started, and not said yet that it is ready."""
        self._guard, self._process = guard, process
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def answer(self, seconds: float) -> dict[str, Any]:
        """The next line of JSON.

        Raises:
            AdapterError: It takes longer, the process has ended, or it says that it failed.
        """
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            raise AdapterError(f"no answer within {seconds:.0f} seconds") from None
        if line is None:
            raise AdapterError("it has ended; see above what it wrote")
        found: dict[str, Any] = json.loads(line)
        if "error" in found:
            raise AdapterError(found["error"].strip().splitlines()[-1][:300])
        return found

    def job(self, seconds: float, **job: Any) -> dict[str, Any]:
        """Have it do one; raises as `answer` does."""
        assert self._process.stdin is not None
        print(json.dumps(job), file=self._process.stdin, flush=True)
        return self.answer(seconds)


def calls(numbers: list[int], url: str) -> list[dict[str, Any]]:
    """What clients ask, for each number, and where the models are."""
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
def running(guard: Guard, log: Path | None = None) -> Iterator[Adapter]:
    """Run an adapter for the length of the block.

    Args:
        guard: Which.
        log: Where to put what it writes to standard error; None: nowhere.

    Raises:
        AdapterError: It cannot be started.
        NoEnvironmentError: Its environment cannot be made.
    """
    own = guard.environment is None
    interpreter = Path(sys.executable) if own else environments.python(str(guard.environment))
    adapter = str(_HERE / "adapters" / f"{guard.adapter}.py")
    with tempfile.TemporaryDirectory() as home:
        (Path(home) / ".guardrailsrc").write_text(
            "id=none\nenable_metrics=false\nuse_remote_inferencing=false\n"
        )
        settings = {**os.environ, **_QUIET, "HOME": home}
        if own:
            root = _HERE.parents[1]
            paths = ("src", "integrations/langchain/src", "integrations/llama-index/src")
            settings["PYTHONPATH"] = os.pathsep.join(str(root / path) for path in paths)
        else:
            settings.pop("PYTHONPATH", None)
        with open(log or os.devnull, "a") as errors:
            process = subprocess.Popen(
                [interpreter, str(_HERE / "harness.py"), adapter, guard.setting],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=settings,
                cwd=home,
            )
            try:
                found = Adapter(guard, process)
                if guard.setting not in found.answer(_START)["settings"]:
                    raise AdapterError(f"{guard.adapter} has no setting {guard.setting!r}")
                yield found
            finally:
                process.kill()
                process.wait()
