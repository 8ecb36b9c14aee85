"""Say which modules of this repository a piece of Python imports, directly or by others."""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import PurePosixPath

import grimp
from tools.landed import ROOT

SOURCES = (
    "src",
    "integrations/langchain/src",
    "integrations/llama-index/src",
    "integrations/ray/src",
    "research/src",
    "judge/src",
    "tests",
    ".",
)
"""The folders from which the tests import."""
PACKAGES = (
    "demur",
    "langchain_demur",
    "llama_index.evaluation.demur",
    "demur_ray",
    "demur_research",
    "demur_judge",
    "support",
    "contract",
    "peers",
    "tools",
    "bench",
)
COMMANDS = {
    r"-m\W+demur\b": "demur.__main__",
    r"-m\W+demur_research\b": "demur_research.__main__",
}
"""What starts a command in a process of its own, and the module that then runs."""


@cache
def graph() -> grimp.ImportGraph:
    """Return which module imports which, imports inside functions too."""
    sys.path[:0] = [str(ROOT / source) for source in SOURCES]
    return grimp.build_graph(*PACKAGES, cache_dir=None)


def reached(texts: Iterable[str]) -> set[str]:
    """Return the modules that the given Python imports or starts, directly or by other modules."""
    imports, found = graph(), set[str]()
    for text in texts:
        named = {module for sign, module in COMMANDS.items() if re.search(sign, text)}
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                named |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        found |= named & imports.modules
    for name in [*found]:
        found |= imports.find_upstream_modules(name)
    # To import a module runs the packages around it.
    around = {name.rsplit(".", up)[0] for name in found for up in range(1, name.count(".") + 1)}
    return found | around & imports.modules


def module_of(file: str) -> str | None:
    """Return the module that a file belongs to: a data file belongs to the package around it."""
    for source in SOURCES:
        inside = PurePosixPath(file)
        if source != ".":
            if not file.startswith(f"{source}/"):
                continue
            inside = inside.relative_to(source)
        names = [*inside.parent.parts, *([inside.stem] if inside.suffix == ".py" else [])]
        while names:
            if (name := ".".join(names)) in graph().modules:
                return name
            names.pop()
    return None


def digest(modules: set[str], *texts: str) -> str:
    """Return a hash of the files of the modules, of the data beside them, and of the texts."""
    found = hashlib.sha256()
    for source in SOURCES[: SOURCES.index("tests")]:
        for path in sorted((ROOT / source).rglob("*")):
            file = path.relative_to(ROOT).as_posix()
            if path.is_file() and "__pycache__" not in file and module_of(file) in modules:
                found.update(f"{file}\n".encode() + path.read_bytes())
    for text in texts:
        found.update(text.encode())
    return found.hexdigest()
