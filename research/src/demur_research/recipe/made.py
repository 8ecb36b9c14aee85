"""Make rows by rules from texts: a sentence of a text is right, and with one detail changed, wrong.

The texts are passages of the sources, your own documents, or docstrings of Python's standard
library. The rules are for English.
"""

from __future__ import annotations

import ast
import random
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from demur._text import sentences
from demur_research.recipe.changes import reworded, wrong
from demur_research.recipe.rows import Label, TrainingRow

_LENGTHS = range(5, 46)
"""The words of a sentence that becomes a claim."""
_WINDOWS = (1, 2, 3, 4, 6, 9, 14)
"""The numbers of sentences that passages have."""
_MOST_WORDS = 450
_NEW_SHARE = 0.45
"""The share of a sentence's words that the rest of its text must lack, so that the rest does not
say what the sentence says."""


def from_texts(
    texts: Iterable[str], source: str, rng: random.Random, weight: float = 0.3
) -> list[TrainingRow]:
    """Return rows that are made from texts.

    A text of a few sentences gives one set of rows, and each further ten sentences one more: a
    sentence reworded ("support"), the same with a detail changed ("contradict"), with a sentence of
    another text added, and against the text without it (both "neutral").

    Args:
        texts: English texts of at least three sentences; shorter ones give no rows.
        source: The name of the rows' source.
        rng: The generator of all choices.
        weight: The weight of each row.
    """
    split = [found for text in dict.fromkeys(texts) if len(found := _claims(text)) >= 3]
    rows: dict[TrainingRow, None] = {}
    for found in split:
        for _ in range(1 + len(found) // 10):
            foreign = rng.choice(rng.choice(split))
            for passages, claim, label in _of_sentence(found, foreign, rng):
                rows[TrainingRow(passages, claim, label, source, weight=weight)] = None
    return list(rows)


def _of_sentence(
    text: Sequence[str], foreign: str, rng: random.Random
) -> Iterator[tuple[str, str, Label]]:
    at = rng.randrange(len(text))
    length = rng.choice(_WINDOWS)
    start = max(0, at - rng.randrange(length))
    window = text[start : start + length]
    sentence = text[at]
    passages = " ".join(window)
    if len(passages.split()) > _MOST_WORDS:
        return
    said = reworded(sentence, rng)
    yield passages, said, "support"
    changed = wrong(said, passages, rng)
    if changed is not None:
        yield passages, changed, "contradict"
    if _says_more(foreign, passages):
        yield passages, f"{said} {foreign}", "neutral"
    rest = " ".join(one for one in window if one != sentence)
    if rest and _says_more(sentence, rest):
        yield rest, said, "neutral"


def _says_more(sentence: str, text: str) -> bool:
    """Return whether most of what a sentence is about is not in a text."""
    said, known = (set(re.findall(r"\w{4,}", one.lower())) for one in (sentence, text))
    return len(said - known) >= max(3, _NEW_SHARE * len(said))


def _claims(text: str) -> list[str]:
    found = (" ".join(text[start:end].split()) for start, end in sentences(text))
    return [one for one in found if len(one.split()) in _LENGTHS and one[-1:] in ".!?"]


def docstrings() -> Iterator[str]:
    """Yield the docstrings of Python's standard library, each behind the name that it is of.

    Their licence is the PSF License 2.0. The modules are read, and not imported.
    """
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        if path.stem.startswith("_") or path.stem not in sys.stdlib_module_names:
            continue
        with warnings.catch_warnings():  # old modules have escapes that new Pythons warn of
            warnings.simplefilter("ignore")
            module = ast.parse(path.read_bytes())
        for name, node in _defined(module, path.stem):
            told = ast.get_docstring(node)
            if told and len(told.split()) <= _MOST_WORDS:
                yield f"{name}: {told}"


def _defined(
    parent: ast.Module | ast.ClassDef, name: str
) -> Iterator[tuple[str, ast.ClassDef | ast.FunctionDef]]:
    for node in parent.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            yield f"{name}.{node.name}", node
            if isinstance(node, ast.ClassDef):
                yield from _defined(node, f"{name}.{node.name}")
