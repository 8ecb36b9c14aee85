"""Write the outputs of a page's commands into the page: `python -m tools.results [PAGE]`.

A block of a page has a command between the first two marks, and its output before the third:

    <!-- run -->

    ```console
    demur-bench rv-table-1 --format markdown
    ```

    <!-- output -->
    ...
    <!-- end -->

A shell runs the commands in the folder of the repository. They find the data sets by DEMUR_DATA and
the recordings by RECORDINGS. If a command fails, the run ends and the page is unchanged. Exit code
2, for an undetermined result, is no failure if there is an output. `--only TEXT` runs the commands
that contain TEXT, and keeps the other outputs.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

_BLOCK = re.compile(
    r"(?P<head><!-- run -->\n\n```console\n(?P<command>(?:[^`\n][^\n]*\n)+)```\n\n"
    r"<!-- output -->\n)"
    r"(?P<output>.*?)(?=<!-- end -->)",
    re.DOTALL,
)


def write(page: str, only: str = "") -> str:
    """Return the page with new outputs.

    Raises:
        SystemExit: A command failed.
    """

    def made(block: re.Match[str]) -> str:
        command = block["command"]
        if only not in command:
            return block[0]
        output = _output(command)
        return f"{block['head']}\n{date.today().isoformat()}:\n\n{output.strip()}\n\n"

    return _BLOCK.sub(made, page)


def _output(command: str) -> str:
    print(command.strip(), file=sys.stderr, flush=True)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        command, shell=True, text=True, stdout=subprocess.PIPE, env={**os.environ, "PATH": path}
    )
    if done.returncode not in (0, 2) or not done.stdout.strip():
        raise SystemExit(f"it ended with {done.returncode}: the page is left as it was")
    return done.stdout


def main() -> None:
    """Write the new outputs into the page."""
    parser = argparse.ArgumentParser(description="Write the outputs of a page's commands into it.")
    parser.add_argument("page", nargs="?", type=Path, default=Path("docs/results.md"))
    parser.add_argument("--only", default="", help="run only the commands that contain this text")
    arguments = parser.parse_args()
    text = arguments.page.read_text(encoding="utf-8")
    arguments.page.write_text(write(text, arguments.only), encoding="utf-8")


if __name__ == "__main__":
    main()
