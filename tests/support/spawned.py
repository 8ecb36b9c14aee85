"""Run code in processes of their own, forked from one that has imported demur, which takes long.

They end as interpreters do: they wait for threads, and call what is registered for the exit.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import IO

from support.waiting import until

_SERVER = """
import json, os, signal, sys
import langchain_openai
import demur.cli
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
for line in sys.stdin:
    task = json.loads(line)
    if not (child := os.fork()):
        break
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
for number, path in enumerate((os.devnull, task["out"], task["err"])):
    opened = os.open(path, os.O_RDWR | os.O_CREAT)
    os.dup2(opened, number)
    os.close(opened)
os.environ.update(task["env"])
sys.argv = ["-c", *task["arguments"]]
exec(compile(task["code"], "<the test's code>", "exec"), {"__name__": "__main__"})
"""


@functools.cache
def _server() -> subprocess.Popen[str]:
    """Start the process that forks the others. It ends with its input, which is this process."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-c", _SERVER],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


class Spawned:
    """Represent a process that runs some code. Only one runs at a time."""

    def __init__(self, code: str, folder: Path, *arguments: object, **environment: str) -> None:
        """Start it; its output goes to files in the folder."""
        number = len([*folder.glob("*.err")])
        self._out, self._err = folder / f"{number}.out", folder / f"{number}.err"
        task = {
            "code": code,
            "arguments": [*map(str, arguments)],
            "out": str(self._out),
            "err": str(self._err),
            "env": environment,
        }
        into = _server().stdin
        assert into is not None
        into.write(f"{json.dumps(task)}\n")
        into.flush()
        self.id = int(_said().readline())

    @property
    def out(self) -> str:
        """Return what it has printed so far."""
        return self._out.read_text(encoding="utf-8") if self._out.exists() else ""

    @property
    def err(self) -> str:
        """Return what it has written to standard error so far."""
        return self._err.read_text(encoding="utf-8") if self._err.exists() else ""

    def printed(self, lines: int) -> None:
        """Wait until it has printed so many lines."""
        until(lambda: self.out.count("\n") >= lines)

    def signal(self, number: int) -> None:
        """Send it a signal. It must not have ended."""
        os.kill(self.id, number)

    def end(self) -> int:
        """Wait until it ends, and return its exit code."""
        return int(_said().readline())


def _said() -> IO[str]:
    said = _server().stdout
    assert said is not None
    return said


def spawned_demur(folder: Path, *arguments: object, **environment: str) -> Spawned:
    """Start a command of demur."""
    code = "from demur.__main__ import main; main()"
    return Spawned(code, folder, *arguments, **{"NO_PROXY": "*", **environment})
