"""List the messages of the errors that demur raises, as `tests/messages.txt` has them.

    python tools/messages.py > tests/messages.txt

A new or changed message shows in a diff as a user will read it. It must say what was wrong, what
was expected and what to do. The text in braces is filled in when the error is raised.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = (ROOT / "src", *sorted((ROOT / "integrations").glob("*/src")), ROOT / "research" / "src")
ERRORS = ("Error", "Failed", "Rejected", "Warning")
"""The endings of the names of errors and warnings."""
USAGE = ("BadParameter", "UsageError")


def listed() -> Iterator[str]:
    """Yield each message under the name of its module, in the order of the code."""
    for source in SOURCES:
        for path in sorted(source.rglob("*.py")):
            found = list(_messages(ast.parse(path.read_text(encoding="utf-8"))))
            if found:
                yield f"# {path.relative_to(source).with_suffix('').as_posix().replace('/', '.')}"
                yield from found


def _messages(module: ast.Module) -> Iterator[str]:
    calls = (node for node in ast.walk(module) if isinstance(node, ast.Call))
    for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        name = ast.unparse(call.func).rpartition(".")[2]
        name = "MissingExtraError" if name == "needs" else name
        if not (name.endswith(ERRORS) or name in USAGE or name == "_warn"):
            continue
        texts = [_text(argument) for argument in call.args]
        # A message that is passed in a variable is listed where its text is written.
        if any(isinstance(part, (ast.Constant, ast.JoinedStr, ast.BinOp)) for part in call.args):
            yield f"{name}: {' | '.join(texts)}"


def _text(node: ast.expr) -> str:
    """Return a text as it is written in the code, with braces around what is filled in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_text, node.values))
    if isinstance(node, ast.FormattedValue):
        return f"{{{ast.unparse(node.value)}}}"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    return f"{{{ast.unparse(node)}}}"


if __name__ == "__main__":
    print("\n".join(listed()))
