"""Test how the citations that a chain wrote into an answer are found."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document

from demur._text import marks_in, without_sources

CONTEXTS = (
    Document("a", id="x1", metadata={"source": "files/museum.txt", "title": "Louvre guide"}),
    Document("b", metadata={"url": "https://city.example/paris"}),
    Document("c"),
)


@pytest.mark.parametrize(
    ("mark", "documents"),
    [
        ("[2]", (1,)),
        ("[^2]", (1,)),
        ("[[2]]", (1,)),
        ("[2](https://city.example)", (1,)),
        ("[[2]](javascript:alert(1))", (1,)),
        ("[1, 3]", (0, 2)),
        ("[1-3]", (0, 1, 2)),
        ("[2–3; 1]", (0, 1, 2)),
        ("【1】", (0,)),
        ("【3†source】", (2,)),
        ("(Source: 2)", (1,)),
        ("(source: museum.txt)", (0,)),
        ("(Sources: Louvre guide; paris)", (0, 1)),
        ("(Quelle: x1)", (0,)),
        ("(Fuentes: 2)", (1,)),
        ("(Источник: museum.txt)", (0,)),
        ("(المصدر: 2)", (1,)),
        ("(来源：2)", (1,)),
        ("[4]", (None,)),
        ("[1, 9]", (0, None)),
        ("(Source: another guide)", (None,)),
    ],
)
def test_in_a_sentence_they_name_documents_by_number_or_name(
    mark: str, documents: tuple[int | None, ...]
) -> None:
    answer = f"It opened in 1793 {mark}. It is big."
    (found,) = marks_in(answer, CONTEXTS)
    assert answer[found.start : found.end] == f" {mark}"
    assert found.documents == documents
    assert not found.is_list


@pytest.mark.parametrize(
    ("sources", "documents", "states_nothing"),
    [
        ("Source: Louvre guide", (0,), True),
        ("Sources: museum.txt, 3", (0, 2), True),
        ("**Sources:** [1], [2]", (0, 1), True),
        ("Sources:\n- [1] museum.txt\n- paris", (0, 1), True),
        ("References:\n\n1. museum.txt\n2. paris", (0, 1), True),
        ("[^1]: museum.txt", (0,), True),
        ("[1]: the tower burnt down in 1850", (0,), False),
        ("Source: a book that says that it burnt", (None,), False),
        ("Sources: museum.txt, nothing.pdf", (0, None), False),
    ],
)
def test_below_they_name_the_sources_of_what_stands_above(
    sources: str, documents: tuple[int | None, ...], states_nothing: bool
) -> None:
    answer = f"It opened in 1793.\n\n{sources}"
    (found,) = marks_in(answer, CONTEXTS)
    assert answer[found.start : found.end] == f"\n\n{sources}"
    assert found.documents == documents
    assert found.is_list
    assert found.states_nothing is states_nothing


@pytest.mark.parametrize(
    "answer",
    [
        "It opened in [1793].",
        "See items[0] and sys.argv[1] for what the user gave.",
        "Write `x[1]` for it.",
        "Like this:\n```python\nx[1]\n```\nand so on.",
        '{"items": [1]}',
        "[1]",
        "The source of the river is high.",
        "(see the map)",
    ],
)
def test_what_only_looks_like_one_is_none(answer: str) -> None:
    assert marks_in(answer, CONTEXTS) == ()


def test_a_line_that_names_documents_and_nothing_else_states_nothing() -> None:
    answer = "It opened in 1793.\n\nSource: Louvre guide"
    said = without_sources(answer, CONTEXTS)
    assert said.rstrip() == "It opened in 1793."
    assert len(said) == len(answer)


@pytest.mark.parametrize("line", ["Source: 1 and it burnt in 1850", "[1]: it burnt", "Source: 7"])
def test_a_line_that_says_more_is_read(line: str) -> None:
    answer = f"It opened in 1793.\n\n{line}"
    assert without_sources(answer, CONTEXTS) == answer
