"""Test interrupted commands: no traceback, the right exit code, and no files left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.records import jsonl, scored

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals are POSIX")

# A shell's background job, as in some CI, passes on to its children that SIGINT is ignored.
_LISTENING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
_WHILE_LOADING = """
import os, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), {signal})
sys.meta_path.insert(0, Finder())
from demur.__main__ import main
sys.argv = ["demur", "--version"]
main()
"""
_WHILE_WRITING = """
import importlib, os, sys
from demur.__main__ import main
module = importlib.import_module({module!r})
def stopped(*arguments, **options):
    assert os.listdir({folder!r})
    os.kill(os.getpid(), {signal})
module.{function} = stopped
sys.argv = ["demur", *{arguments!r}]
main()
"""


def _run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TMPDIR": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", _LISTENING + code],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.slow
def test_ctrl_c_while_it_loads_is_130(tmp_path: Path) -> None:
    ended = _run(_WHILE_LOADING.format(module="pydantic", signal=int(signal.SIGINT)), tmp_path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "number", "status"),
    [("report", signal.SIGTERM, 143), ("export", signal.SIGINT, 130)],
)
def test_no_temporary_folder_is_left(
    what: str, number: signal.Signals, status: int, tmp_path: Path
) -> None:
    log, out = jsonl(tmp_path / "a.jsonl", [scored()]), tmp_path / "out"
    out.mkdir()
    module, function, arguments = {
        "report": ("demur.views.report.page", "_put", ["report", str(log), "-o", f"{out}/a.html"]),
        "export": (
            "demur.observe.log.exports",
            "records",
            ["log", "export", str(log), f"{out}/a.csv"],
        ),
    }[what]
    code = _WHILE_WRITING.format(
        module=module, function=function, arguments=arguments, folder=str(out), signal=int(number)
    )
    ended = _run(code, out)
    assert (ended.returncode, ended.stderr) == (status, "")
    assert [*out.iterdir()] == []
