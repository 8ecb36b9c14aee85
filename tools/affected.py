"""Run the tests that `make test` leaves out, as far as a change can reach them.

    python -m tools.affected           run them
    python -m tools.affected --show    say what would run, and why

The change is what differs from the last landing (`tools.landed`). It reaches a suite if it touches
a file of the suite, a file that the suite names, or a module that the suite imports, directly or by
other modules. A file of which nothing is known reaches every suite. `make test-all` asks nothing
of this: it runs everything.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath

from tools.imports import module_of, reached
from tools.landed import ROOT, git, landed


@dataclass(frozen=True)
class Suite:
    """Represent tests that can be left out."""

    target: str
    """The target of the Makefile that runs them; from `slow`, suites are left out one by one."""
    tests: tuple[str, ...]
    """The files and folders of the tests."""
    read: tuple[str, ...] = ()
    """The files and folders that the tests read without importing them."""


SUITES = (
    Suite("slow", ("integrations/langchain/tests",), ("integrations/langchain",)),
    Suite("slow", ("integrations/llama-index/tests",), ("integrations/llama-index",)),
    Suite("slow", ("integrations/ray/tests",), ("integrations/ray",)),
    Suite("slow", ("research/tests",), ("research",)),
    Suite("slow", ("tests/browser",)),
    Suite("slow", ("tests/peers",), ("peers",)),
    Suite("real", ("tests/real", "integrations/llama-index/tests/test_real.py"), ("judge",)),
    Suite(
        "documentation",
        ("tests/documentation", "tests/exemplars/test_finetuning.py"),
        ("src", "docs", "integrations", "research", "zensical.toml", "README.md", "CHANGELOG.md"),
    ),
    Suite(
        "packaging",
        ("tests/packaging",),
        ("src", "judge", "integrations", "research", "README.md", "LICENSE", "CHANGELOG.md"),
    ),
)
ALWAYS = re.compile(
    r"tests/(?!support/|contract/).*|notebooks/.*|\.github/.*|.*\.md|\.ci/landed|\.gitignore"
)
"""The files for which there are tests that always run, or none; suites may read them as well."""


def changed(before: str) -> list[str]:
    """Return the files that differ from the commit, also those that are not committed yet."""
    found = git("diff", "--name-only", "--no-renames", before).splitlines()
    return sorted({*found, *git("ls-files", "--others", "--exclude-standard").splitlines()})


@cache
def _texts(suite: Suite) -> tuple[str, ...]:
    places = [ROOT / place for place in suite.tests]
    files = [file for p in places for file in (p.rglob("*.py") if p.is_dir() else [p])]
    return tuple(file.read_text("utf-8") for file in files)


@cache
def _modules(suite: Suite) -> set[str]:
    return reached(_texts(suite))


def reasons(files: Iterable[str]) -> Mapping[Suite, str]:
    """Return the suites that a change of these files reaches, each with the file that decided."""
    found: dict[Suite, str] = {}
    for suite in SUITES:
        for file in files:
            module = module_of(file)
            if (
                module in _modules(suite)
                or any(f"{file}/".startswith(f"{place}/") for place in suite.tests + suite.read)
                or any(PurePosixPath(file).name in text for text in _texts(suite))
                or (module is None and not _known(file))
            ):
                found.setdefault(suite, file)
    return found


def _known(file: str) -> bool:
    """Return whether it is known which suites a file without a module reaches."""
    places = [place for suite in SUITES for place in suite.tests + suite.read]
    return bool(ALWAYS.fullmatch(file)) or any(f"{file}/".startswith(f"{p}/") for p in places)


def main() -> None:
    """Run the suites that the change reaches, in one run of make."""
    before = landed()
    if before is None:
        why: Mapping[Suite, str] = dict.fromkeys(SUITES, "the last landing is not in this history")
    else:
        why = reasons(changed(before))
    for suite in SUITES:
        said = f"runs, because of {why[suite]}" if suite in why else "cannot be reached: left out"
        print(f"affected: {suite.tests[0]} {said}", file=sys.stderr, flush=True)
    targets = dict.fromkeys(["slow", "notebooks", *(suite.target for suite in why)])
    out = [path for s in SUITES if s.target == "slow" and s not in why for path in s.tests]
    if "--show" not in sys.argv[1:]:
        command = ["make", "-j2", "--output-sync=target", *targets, f"LEFT_OUT={' '.join(out)}"]
        sys.exit(subprocess.run(command, cwd=ROOT).returncode)


if __name__ == "__main__":
    main()
