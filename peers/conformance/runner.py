"""Start adapters, each in its environment, and have them do jobs."""

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
"""The environment variables that turn the products' telemetry and downloads off."""
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


class AdapterError(Exception):
    """Say that an adapter cannot be started or does not answer."""


class Adapter:
    """Represent a running adapter, which `running` starts."""

    def __init__(self, guard: Guard, process: subprocess.Popen[str]) -> None:
        """Take a process that was started and has not reported yet that it is ready."""
        self.guard, self._process = guard, process
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def answer(self, seconds: float) -> dict[str, Any]:
        """Return the next line of JSON.

        Raises:
            AdapterError: It takes longer than `seconds`, the process has ended, or it reports a
                failure.
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
        """Have the adapter do a job, and return the result. It raises what `answer` raises."""
        assert self._process.stdin is not None
        print(json.dumps(job), file=self._process.stdin, flush=True)
        return self.answer(seconds)


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
def running(guard: Guard, log: Path | None = None) -> Iterator[Adapter]:
    """Run an adapter for the length of a `with` block.

    Args:
        guard: The product and its setting.
        log: The file for what the adapter writes to standard error. None: it is dropped.

    Raises:
        AdapterError: The adapter cannot be started.
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
