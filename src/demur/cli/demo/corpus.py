"""Read the standard library's documentation, in which the demonstration's chain searches."""

from __future__ import annotations

import hashlib
import importlib
import inspect
from collections.abc import Iterable, Iterator
from types import ModuleType

from langchain_core.documents import Document

from demur._text import windows
from demur.errors import DemurError

LONGEST = 100
"""The maximal number of tokens of a passage. The local model reads slowly, and small models lose
track in long texts."""

MODULES = (
    *("argparse", "base64", "bisect", "calendar", "collections", "configparser", "contextlib"),
    *("copy", "csv", "dataclasses", "datetime", "decimal", "difflib", "enum", "filecmp"),
    *("fnmatch", "fractions", "functools", "getpass", "glob", "gzip", "hashlib", "heapq", "hmac"),
    *("html", "io", "ipaddress", "itertools", "json", "keyword", "linecache", "logging", "math"),
    *("mimetypes", "operator", "os", "os.path", "pathlib", "pickle", "platform", "pprint", "queue"),
    *("random", "re", "reprlib", "secrets", "selectors", "shelve", "shlex", "shutil", "signal"),
    *("socket", "statistics", "string", "struct", "subprocess", "sys", "tempfile", "textwrap"),
    *("threading", "time", "timeit", "urllib.parse", "uuid", "warnings", "weakref", "zipfile"),
    "zlib",
)


def passages(modules: Iterable[str] = MODULES) -> list[Document]:
    """Return the documentation strings of the modules' functions and classes, cut into passages.

    Each passage begins with the full name, which is also in its metadata. Its id is a hash of the
    passage. A module that this Python lacks is left out.

    Raises:
        DemurError: There are no passages, because this Python runs without documentation strings.
    """
    documented: dict[str, str] = {}
    for name in modules:
        for title, text in _documented(name):
            documented.setdefault(text, title)  # two names of one function have the same text
    documents = [
        _passage(title, text[start:end])
        for text, title in documented.items()
        for start, end in windows(text, LONGEST, 0)
    ]
    if not documents:
        raise DemurError(
            "This Python has no documentation strings to answer questions from. "
            "Run the demo without -OO and PYTHONOPTIMIZE."
        )
    return documents


def _documented(name: str) -> Iterator[tuple[str, str]]:
    try:
        module = importlib.import_module(name)
    except ImportError:
        return
    for member in _public(module):
        thing = getattr(module, member, None)
        if inspect.isroutine(thing) or inspect.isclass(thing):
            # Only a class's own string counts; `__doc__` may be inherited from a base class.
            text = vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__
            if isinstance(text, str) and (kept := prose(inspect.cleandoc(text))):
                yield f"{name}.{member}", kept


def _public(module: ModuleType) -> list[str]:
    names = getattr(module, "__all__", None) or dir(module)
    return [name for name in names if not name.startswith("_")]


def prose(text: str) -> str:
    """Return a documentation string without the paragraphs that are sessions at the prompt."""
    return "\n\n".join(
        paragraph for paragraph in text.split("\n\n") if not paragraph.lstrip().startswith(">>>")
    )


def _passage(title: str, text: str) -> Document:
    content = f"{title}\n{text}"
    digest = hashlib.sha256(content.encode()).hexdigest()
    return Document(id=digest[:32], page_content=content, metadata={"title": title})
