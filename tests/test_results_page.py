"""Test that the tool which writes commands' outputs into a page changes nothing else in it."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_PAGE = """\
# Title

<!-- run -->

```console
echo one \\
    two
```

<!-- output -->
old
<!-- end -->

Between.

<!-- run -->

```console
echo three
```

<!-- output -->
kept
<!-- end -->
"""


def _write(page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.results", str(page), *options]
    return subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=60)


def test_outputs_are_replaced_and_dated_and_the_rest_stays(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(_PAGE)
    assert _write(page).returncode == 0
    today = date.today().isoformat()
    expected = _PAGE.replace("old\n", f"\n{today}:\n\none two\n\n")
    assert page.read_text() == expected.replace("kept\n", f"\n{today}:\n\nthree\n\n")


def test_only_the_commands_that_are_meant_are_run(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(_PAGE)
    assert _write(page, "--only", "three").returncode == 0
    assert "old\n" in page.read_text()
    assert "kept\n" not in page.read_text()


def test_a_command_that_fails_leaves_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(_PAGE.replace("echo three", "exit 3"))
    ended = _write(page)
    assert ended.returncode != 0
    assert "ended with 3" in ended.stderr
    assert "old\n" in page.read_text()
