"""Test the passages that the demonstration reads."""

from __future__ import annotations

import sys
import types

import pytest

from demur import DemurError
from demur._text import count_tokens
from demur.cli.demo import corpus


def _module(monkeypatch: pytest.MonkeyPatch, **members: object) -> None:
    module = types.ModuleType("invented")
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, "invented", module)


def test_the_standard_library_gives_many_short_passages_with_names() -> None:
    found = corpus.passages()
    assert len(found) > 500
    for passage in found:
        title = passage.metadata["title"]
        assert passage.page_content.startswith(f"{title}\n")
        # Windows do not count the white space between sentences.
        assert count_tokens(passage.page_content.partition("\n")[2]) <= 1.2 * corpus.LONGEST
    assert len({passage.id for passage in found}) == len(found)
    texts = {one.metadata["title"]: one.page_content for one in found}
    assert "parent" in texts["tempfile.mkdtemp"] or "directory" in texts["tempfile.mkdtemp"]


def test_functions_and_classes_are_read_and_values_private_names_and_doubles_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Base:
        """A base."""

    class Silent(Base):
        pass

    def function() -> None:
        """Do a thing."""

    _module(
        monkeypatch,
        function=function,
        same=function,
        Base=Base,
        Silent=Silent,
        _hidden=lambda: None,
        value="a string has a documentation string too",
    )
    found = corpus.passages(["invented", "no_such_module"])
    assert [one.page_content for one in found] == [
        "invented.Base\nA base.",
        "invented.function\nDo a thing.",
    ]


def test_sessions_at_the_prompt_are_left_out() -> None:
    text = (
        "One line\nand the next.\n\n>>> f(1)\n1\n\n    >>> f(2)\n\n    indented text\n\nThe last."
    )
    assert corpus.prose(text) == "One line\nand the next.\n\n    indented text\n\nThe last."
    assert corpus.prose("") == ""


def test_without_documentation_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    _module(monkeypatch, silent=lambda: None)
    with pytest.raises(DemurError, match="-OO"):
        corpus.passages(["invented"])
