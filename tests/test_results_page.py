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


def _written(day: date) -> str:
    """Return the page with all outputs of a day."""
    first = _PAGE.replace("old\n", f"\n{day.isoformat()}:\n\none two\n\n")
    return first.replace("kept\n", f"\n{day.isoformat()}:\n\nthree\n\n")


def test_outputs_are_replaced_and_dated_and_the_rest_stays(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(_PAGE)
    before = date.today()
    assert _write(page).returncode == 0
    assert page.read_text() in {_written(before), _written(date.today())}  # at midnight
