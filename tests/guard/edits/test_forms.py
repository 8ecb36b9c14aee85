"""Test the forms in which an answer shows its citations."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import AIMessage

from demur import ClaimLabel, Evaluation, Evidence, Span
from demur.guard.edits import FORMS, Cited, Form, annotation, cited, places_of
from support.held import LOUVRE, HeldByNumbers

CONTEXTS = LOUVRE


def _evaluation(answer: str, contexts: Any = CONTEXTS) -> Evaluation:
    return HeldByNumbers().invoke({"answer": answer, "contexts": contexts})


def _cited(answer: str, form: Form = "numbers", contexts: Any = CONTEXTS) -> Cited:
    evaluation = _evaluation(answer, contexts)
    return cited(answer, places_of(answer), [evaluation], contexts, form)


ANSWER = "It opened in 1793. It has 35000 works."


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("numbers", "It opened in 1793 [1]. It has 35000 works [2]."),
        ("footnotes", "It opened in 1793 [^1]. It has 35000 works [^2]."),
        (
            "links",
            "It opened in 1793 [[1]](https://museums.example/louvre). It has 35000 works [2].",
        ),
        ("blocks", ANSWER),
        ("list", ANSWER),
    ],
)
def test_each_form_marks_the_supported_sentences(form: Form, text: str) -> None:
    found = _cited(ANSWER, form)
    assert found.text == text
    assert [found.text[one.start : one.end] for one in found.citations] == [
        text[: text.index(" It has")],
        text[text.index("It has") :],
    ]


@pytest.mark.parametrize("form", FORMS)
def test_a_citation_tells_the_document_and_the_place_of_its_quote(form: Form) -> None:
    first, second = _cited(ANSWER, form).citations
    assert first.number == 1
    assert first.quote == CONTEXTS[0].page_content[first.document_start : first.document_end]
    assert (first.id, first.title) == ("louvre-1", "Louvre guide")
    assert first.url == "https://museums.example/louvre"
    assert first.metadata == CONTEXTS[0].metadata
    assert (second.number, second.id, second.title, second.url) == (2, None, "works.txt", None)


def test_footnotes_have_the_quotes_below() -> None:
    found = _cited(f"{ANSWER} It is from 1793.", "footnotes")
    assert found.content == found.text + (
        "\n\n[^1]: [Louvre guide](https://museums.example/louvre): "
        "“The Louvre, in Paris, opened as a museum in 1793.”"
        "\n\n[^2]: works.txt: “On show are 35000 works of art.”"
    )
    assert _cited(ANSWER, "numbers").content == _cited(ANSWER, "numbers").text


def test_blocks_are_langchains_own() -> None:
    found = _cited(ANSWER, "blocks")
    message = AIMessage(content=found.content)
    assert message.text == ANSWER
    (block,) = message.content_blocks
    first = block["annotations"][0]  # type: ignore[typeddict-item]
    assert first["type"] == "citation"
    assert first["url"] == "https://museums.example/louvre"
    assert first["title"] == "Louvre guide"
    assert ANSWER[first["start_index"] : first["end_index"]] == "It opened in 1793."
    assert first["cited_text"] == CONTEXTS[0].page_content
    assert first["extras"]["document_id"] == "louvre-1"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("Was it 1793? Yes!", "Was it 1793 [1]? Yes!"),
        ("It opened in 1793", "It opened in 1793 [1]"),
        ("It opened in **1793.**", "It opened in **1793 [1].**"),
        ("- opened in 1793\n- 35000 works", "- opened in 1793 [1]\n- 35000 works [2]"),
        ("Facts:\n1. since 1793\n2. 35000 works", "Facts:\n1. since 1793 [1]\n2. 35000 works [2]"),
        (
            "| year | works |\n|---|---|\n| 1793 | many |",
            "| year | works |\n|---|---|\n| 1793 | many [1] |",
        ),
        ("```\nyear = 1793\n```", "```\nyear = 1793\n```"),
        ('```json\n{"year": 1793}\n```', '```json\n{"year": 1793}\n```'),
        ("それは1793年です。", "それは1793年です[1]。"),
        (
            "It opened in 1793, for whose .__next__() there are 35000 works. Yes.",
            "It opened in 1793, for whose .__next__() there are 35000 works [1][2]. Yes.",
        ),
        ("In 1850 it burnt. Nobody cared.", "In 1850 it burnt. Nobody cared."),
        ("It opened in 1793, or in 1850.", "It opened in 1793, or in 1850."),
    ],
)
def test_a_mark_stands_where_a_reader_looks_for_it(answer: str, text: str) -> None:
    assert _cited(answer).text == text


@pytest.mark.parametrize(
    "answer",
    [
        "It opened in 1793 [2]. It has 35000 works [1].",
        "It opened in 1793. [2] It has 35000 works. [9]",
        "It opened in 1793[^7]. It has 35000 works[^1].\n\n[^1]: burnt\n[^7]: javascript:alert(1)",
        "It opened in 1793 [[1]](https://evil.example). It has 35000 works [1](javascript:x).",
        "It opened in 1793 【3†source】. It has 35000 works (Source: works.txt).\n\nSources: 1, 2",
    ],
)
def test_what_the_chain_cited_by_itself_gives_way(answer: str) -> None:
    assert _cited(answer).text.rstrip() == "It opened in 1793 [1]. It has 35000 works [2]."


def test_a_sentence_with_an_unsupported_claim_has_no_mark() -> None:
    evaluation = _evaluation(ANSWER)
    wrong = evaluation.claims[0].model_copy(update={"label": ClaimLabel.NEUTRAL, "evidence": ()})
    both = evaluation.model_copy(update={"claims": (*evaluation.claims, wrong)})
    found = cited(ANSWER, places_of(ANSWER), [both], CONTEXTS, "numbers")
    assert found.text == "It opened in 1793. It has 35000 works [2]."


@pytest.mark.parametrize(
    "changes",
    [
        {"text": "The Louvre opened in 1793."},
        {"context": 7},
        {"context": None},
        {"context": 1},
        {"label": ClaimLabel.CONTRADICTION},
        {"span": Span(start=3, end=60)},
    ],
)
def test_a_quote_that_does_not_stand_in_its_document_is_none(changes: dict[str, Any]) -> None:
    evaluation = _evaluation("It opened in 1793.")
    (claim,) = evaluation.claims
    (evidence,) = claim.evidence
    forged = claim.model_copy(update={"evidence": (evidence.model_copy(update=changes),)})
    evaluation = evaluation.model_copy(update={"claims": (forged,)})
    found = cited(
        "It opened in 1793.", places_of("It opened in 1793."), [evaluation], CONTEXTS, "numbers"
    )
    assert found == Cited("It opened in 1793.", (), "numbers")


def test_of_a_structured_answer_the_values_are_told_by_their_paths() -> None:
    answer = '{"year": 1793, "works": {"count": 35000}, "burnt": 1850}'
    found = _cited(answer, "footnotes")
    assert found.text == answer
    assert [(one.path, one.number) for one in found.citations] == [
        ("$.year", 1),
        ("$.works.count", 2),
    ]
    assert [answer[one.start : one.end] for one in found.citations] == ["1793", "35000"]


_SENTENCES = st.lists(
    st.sampled_from(
        [
            *("It opened in 1793.", "It has 35000 works.", "In 1850 it burnt.", "Fine!"),
            *("- since 1793", "# 1793", "Year 1793 [2].", "(Source: 1)", "```\n1793\n```"),
        ]
    ),
    min_size=1,
    max_size=8,
)


@given(_SENTENCES, st.sampled_from(FORMS), st.text(max_size=40), st.text(max_size=40))
def test_every_quote_is_copied_from_its_document_in_every_form(
    sentences: list[str], form: Form, title: str, before: str
) -> None:
    contexts = [
        Document(f"{before}Open since 1793. {title}", metadata={"title": title}),
        Document(f"{title}\n35000 works are there", metadata={"source": before}),
    ]
    answer = "\n".join(sentences)
    found = _cited(answer, form, contexts)
    for one in found.citations:
        text = contexts[one.document].page_content
        assert one.quote == text[one.document_start : one.document_end]
        assert annotation(one)["cited_text"] == one.quote
    for first, second in pairwise(found.citations):
        assert first.end <= second.start or first.start == second.start


def test_evidence_of_several_evaluators_counts_once() -> None:
    evaluation = _evaluation(ANSWER)
    found = cited(ANSWER, places_of(ANSWER), [evaluation, evaluation], CONTEXTS, "numbers")
    assert len(found.citations) == 2


def test_several_documents_stand_side_by_side() -> None:
    evaluation = _evaluation(ANSWER)
    first, second = evaluation.claims
    also = Evidence.model_validate(second.evidence[0].model_dump())
    claim = first.model_copy(update={"evidence": (also, *first.evidence)})
    evaluation = evaluation.model_copy(update={"claims": (claim,)})
    found = cited(ANSWER, places_of(ANSWER), [evaluation], CONTEXTS, "numbers")
    assert found.text == "It opened in 1793 [1][2]. It has 35000 works."


def test_no_password_of_an_address_is_shown() -> None:
    source = "https://me:se@cret@museums.example/louvre?at=@home"
    metadata = {"source": source, "more": [source, "mail me@museums.example"]}
    contexts = [Document("Open since 1793.", metadata=metadata)]
    found = _cited("It opened in 1793.", "footnotes", contexts)
    (citation,) = found.citations
    assert "cret" not in str(found.content) + str(citation.model_dump())
    assert citation.title == "https://museums.example/louvre?at=@home"
    assert citation.metadata["more"][1] == "mail me@museums.example"
    assert citation.url is None
