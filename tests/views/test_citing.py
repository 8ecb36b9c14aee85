"""Test what a reader sees of an answer: marks, sources, quotes and links."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from markupsafe import Markup

from demur import Claim, ClaimLabel, Evidence, Span
from demur._secrets import SECRET
from demur._text import harmless, replace_surrogates
from demur.guard import Attempt, Guarded, Trace
from demur.guard.edits import cited, places_of
from demur.observe.redaction import redactor
from demur.views import cited_html
from demur.views.traces import record_html, trace_html
from support.html import ATTACKS, Page, page_of_own
from support.records import BEGIN, WRONG, attempt, found, nothing_to_check, refuted, run

GOOD, BAD = ClaimLabel.ENTAILMENT, ClaimLabel.CONTRADICTION
RIVERS = Document(
    "The Danube is 2,850 km long and flows into the Black Sea.",
    metadata={"title": "Rivers of Europe", "url": "https://rivers.example/danube?a=1&b=2"},
)
UNUSED = Document("Nothing of it.", metadata={"title": "Unused"})
ULM = Document("Ulm lies on the Danube. It is 2,850 km long.", metadata={"source": "a/ulm.md"})
TEXT = "The Danube is 2,850 km long. It is blue. It flows into the Black Sea."
LENGTH, SEA = "The Danube is 2,850 km long", "flows into the Black Sea."
Rest = tuple[str, int, str]
"""Words of an answer, with the number (from 0) and the words of the document that supports them."""
RESTS: Sequence[Rest] = (
    ("The Danube is 2,850 km long", 0, LENGTH),
    ("The Danube is 2,850 km long", 2, "It is 2,850 km long."),
    ("It flows into the Black Sea", 0, SEA),
)


def claims_of(answer: str, rests: Sequence[Rest], documents: Sequence[Document]) -> list[Claim]:
    claims: dict[str, list[Evidence]] = {}
    for said, at, quote in rests:
        start = documents[at].page_content.index(quote)
        span = Span(start=start, end=start + len(quote))
        proof = Evidence(context=at, span=span, text=quote, label=GOOD)
        claims.setdefault(said, []).append(proof)
    made = []
    for said, evidence in claims.items():
        span = Span(start=answer.index(said), end=answer.index(said) + len(said))
        made.append(Claim(text=said, span=span, label=GOOD, evidence=tuple(evidence)))
    return made


def passed(
    answer: str = TEXT,
    rests: Sequence[Rest] = RESTS,
    documents: Sequence[Document] = (RIVERS, UNUSED, ULM),
    **fields: Any,
) -> Attempt:
    """Return an answer that passed, with its evidence."""
    judged = found(claims=tuple(claims_of(answer, rests, documents)))
    shown = attempt(judged, answer=answer, contexts=(), **fields)
    return shown.model_copy(update={"contexts": tuple(documents)})


def trace_of(*attempts: Attempt, cites: bool = True, **fields: Any) -> Trace:
    last = attempts[-1]
    left = cited(last.answer, places_of(last.answer), last.evaluations, last.contexts, "numbers")
    given = {"outcome": "passed", "reason": "it was so", "seconds": 4, "time": BEGIN, **fields}
    return Trace(
        attempts=attempts, citations=left.citations if cites else (), usage=last.usage, **given
    )


def shown(answer: Any) -> Page:
    return Page(cited_html(answer))


# --- Marks and sources ----------------------------------------------------------------------------


def test_each_supported_sentence_has_a_mark_for_each_source() -> None:
    page = shown(passed())
    marked = "The Danube is 2,850 km long.[1][3] It is blue. It flows into the Black Sea.[1]"
    assert page.texts("demur-text") == [marked]
    # The second document supports nothing, so it has no number.
    assert page.texts("demur-number") == ["[1]", "[3]"]
    assert page.texts("cite") == ["Rivers of Europe", "ulm.md"]
    assert page.texts("demur-quote") == [f"“{LENGTH}”", f"“{SEA}”", "“It is 2,850 km long.”"]
    assert "Unused" not in cited_html(passed())


def test_marks_lead_to_sources_and_back_and_say_what_they_are() -> None:
    page = shown(passed())
    marks, backs = page.all("doc-noteref"), page.all("doc-backlink")
    assert [one["aria-label"] for one in marks] == [
        "source 1: Rivers of Europe, for sentence 1",
        "source 3: ulm.md, for sentence 1",
        "source 1: Rivers of Europe, for sentence 3",
    ]
    assert marks[1]["title"] == "ulm.md: “It is 2,850 km long.”"
    assert [page.behind(one)["text"][:3] for one in marks] == ["[1]", "[3]", "[1]"]
    assert {page.behind(one)["tag"] for one in marks} == {"li"}
    assert [one["text"] for one in backs] == ["sentence 1", "sentence 3", "sentence 1"]
    assert [one["aria-label"] for one in backs] == [f"back to {one['text']}" for one in backs]
    assert [page.behind(one) for one in backs] == [marks[0], marks[2], marks[1]]
    (notes,) = page.all("doc-endnotes")
    assert page.behind({"href": f"#{notes['aria-labelledby']}"})["text"] == "Sources"
    assert page.all("ol")[0]["role"] == "list"


def test_only_an_address_on_the_web_is_a_link_and_the_reader_is_told_where_it_leads() -> None:
    page = shown(passed())
    (link,) = [one for one in page.all("a") if not one["href"].startswith("#")]
    assert link["href"] == "https://rivers.example/danube?a=1&b=2"
    assert link["aria-label"] == "Rivers of Europe, on rivers.example, opens in a new tab"
    assert {"noopener", "noreferrer"} <= set(link["rel"].split())
    assert "rivers.example ↗" in page.texts("demur-quiet")


def test_a_quote_of_two_sentences_stands_once_and_a_long_one_is_folded() -> None:
    long = "It passes ten countries on its way, and many towns. " * 40
    document = Document(long, metadata={"title": "Long"})
    text = "It passes ten countries. It passes many towns."
    rests = [(one, 0, long.strip()) for one in ("It passes ten countries", "It passes many towns")]
    page = shown(passed(text, rests, [document]))
    (quote,) = page.texts("demur-quote")
    assert "more characters" in quote
    assert quote.replace(page.texts("summary")[0], "") == f"“{long.strip()}”"
    assert page.texts("doc-backlink") == ["sentence 1", "sentence 2"]


def test_lists_tables_code_and_values_have_their_marks_behind_them() -> None:
    answer = (
        "# The Danube\n\nIt is long.\n- It is 2,850 km long.\n\n| river | km |\n|---|---|\n"
        "| Danube | 2,850 |\n\n```\nlength = 2850\n```\n"
    )
    words = ("It is 2,850 km", "| Danube | 2,850 |", "length = 2850")
    page = shown(passed(answer, [(said, 0, LENGTH) for said in words]))
    (text,) = page.texts("demur-text")
    assert "- It is 2,850 km long.[1]\n" in text
    assert "| Danube | 2,850 |[1]\n" in text
    assert text.endswith("\nlength = 2850\n```[1]\n")
    assert page.texts("doc-backlink") == ["item 1", "row 1", "block of code 1"]
    data = '{"rivers": [{"name": "Danube", "km": 2850}]}'
    page = shown(passed(data, [("Danube", 0, LENGTH), ("2850", 0, LENGTH)]))
    assert page.texts("demur-text") == ['{"rivers": [{"name": "Danube"[1], "km": 2850[1]}]}']
    assert page.texts("doc-backlink") == ["$.rivers[0].name", "$.rivers[0].km"]


def test_an_answer_without_sources_is_its_text() -> None:
    for without in (attempt(found()), attempt(), attempt(refuted(), answer=WRONG)):
        page = shown(without)
        assert page.texts("article") == [without.answer]
        assert not page.all("a")


# --- What left ------------------------------------------------------------------------------------


def test_what_left_is_shown_and_nothing_else() -> None:
    bad = attempt(refuted(), answer=WRONG)
    for cites in (True, False):
        trace = trace_of(bad, passed(), outcome="recovered", cites=cites)
        for answer in (trace, Guarded("x", trace)):
            assert cited_html(answer) == cited_html(passed())
    refused = trace_of(bad, outcome="abstained", cites=False)
    assert shown(Guarded({"answer": "I do not know."}, refused)).texts("article") == [
        "I do not know."
    ]
    with pytest.raises(
        ValueError, match=r"did not pass \(abstained\).* give the value that with_trace"
    ):
        cited_html(refused)
    idle = attempt(nothing_to_check(), answer="Hello!")
    assert shown(trace_of(idle, outcome="nothing_to_check")).texts("article") == ["Hello!"]
    with pytest.raises(TypeError, match="answer: expected Guarded, Trace or Attempt, got str"):
        cited_html("an answer")  # type: ignore[arg-type]  # a mistake
    noted = Guarded(f"{WRONG}\n\nNot checked.", trace_of(attempt(refuted()), outcome="best_effort"))
    assert shown(noted).texts("article") == [f"{WRONG}\n\nNot checked."]


def test_what_was_taken_out_is_for_the_developer_alone() -> None:
    last = passed(origin="edit", recovery="strip", removed=("The mayor <b>says</b> so.",))
    trace = trace_of(attempt(refuted(), answer=WRONG), last, outcome="trimmed")
    assert "mayor" not in cited_html(trace)
    page = Page(trace_html(trace))
    assert page.texts("del") == ["The mayor <b>says</b> so."]
    assert "Taken out of the answer" in page.texts("demur-between")[0]
    assert Page(last._repr_html_()).texts("del") == ["The mayor <b>says</b> so."]
    assert "✂ trimmed" in page.texts("demur-head")[0]
    again = last.model_copy(update={"removed": (*last.removed, "It is red.")})
    page = Page(trace_html(trace_of(attempt(refuted()), last, again, outcome="trimmed")))
    assert page.texts("demur-removed") == ["The mayor <b>says</b> so.", "It is red."]


# --- In the other views ---------------------------------------------------------------------------


def test_a_trace_shows_it_first_where_the_guard_cites() -> None:
    trace = trace_of(passed())
    page = Page(trace_html(trace, "The Danube is 2,850 km long [1][3]. It is blue."))
    assert page.texts("demur-title")[0] == "As a reader sees it"
    assert "[1][3]" in page.texts("demur-reader")[0]
    assert "Returned" not in page.texts("demur-title")  # It would show the same answer again.
    assert len(page.ids) == len(set(page.ids))
    silent = Page(trace_html(trace_of(passed(), cites=False)))
    assert not silent.all("demur-reader")
    assert not silent.all("doc-noteref")


def test_a_guards_record_and_an_attempt_have_it_folded() -> None:
    fold = "The answer with its sources"
    guarded = run(passed(), outcome="passed")
    for html in (record_html(guarded), passed()._repr_html_()):
        page = Page(html.partition("</style>")[2] or html)
        (folded,) = [one for one in page.all("details") if one["text"].startswith(fold)]
        assert "[1][3]" in folded["text"]
        assert "open" not in folded
    failed = run(attempt(refuted()), outcome="abstained")
    for other in (run(passed()), failed, run(attempt(found()), outcome="passed")):
        assert fold not in record_html(other)


def test_of_changed_texts_nothing_is_cited() -> None:
    record = run(passed(), outcome="passed")
    assert "doc-noteref" in record_html(record)
    for how in ("remove", "hash", str.upper):
        assert "doc-noteref" not in record_html(redactor(how)(record))  # type: ignore[arg-type]
    leaky = TEXT.replace("It is blue.", "The key is sk-proj-abCD1234efGH5678ijKL9.")
    record = redactor()(run(passed(leaky), outcome="passed"))
    assert SECRET in record.answer
    assert "doc-noteref" not in record_html(record)


# --- Hostile texts --------------------------------------------------------------------------------
FORGED = (
    *("[x](javascript:alert(1))", "[1]", "[[2]](https://evil.example)", "<sup>[1]</sup>", "[^1]"),
    *("\n[^1]: evil", "\nSources: evil", "“", "”", "```\n", "| a |", "It is so! ", "{"),
    *("e\u0301", "👩‍👩‍👧"),
)
TEXTS = st.lists(st.sampled_from((*ATTACKS, *FORGED)), min_size=1, max_size=8).map("".join)


@st.composite
def judged(draw: Any) -> Attempt:
    """Draw an answer with claims anywhere in it; their evidence need not be in the documents."""
    answer = draw(TEXTS)
    documents = [
        Document(
            draw(TEXTS.map(lambda text: Markup(replace_surrogates(text))) | TEXTS),
            metadata={"title": draw(TEXTS), draw(st.sampled_from(("url", "source"))): draw(TEXTS)},
        )
        for _ in range(draw(st.integers(1, 3)))
    ]
    claims = []
    for part in places_of(answer):
        evidence = []
        for _ in range(draw(st.integers(0, 3))):
            at = draw(st.integers(0, len(documents) - 1))
            text = documents[at].page_content
            start = draw(st.integers(0, len(text)))
            span = Span(start=start, end=draw(st.integers(start, len(text))))
            quote = draw(st.just(text[span.start : span.end]) | TEXTS)
            evidence.append(Evidence(context=at, span=span, text=quote, label=GOOD))
        claims.append(
            Claim(
                text="a claim",
                span=Span(start=part.start, end=part.end),
                label=draw(st.sampled_from((GOOD, GOOD, GOOD, BAD))),
                evidence=tuple(evidence),
            )
        )
    shown = attempt(found(claims=tuple(claims)), answer=answer, contexts=())
    removed = tuple(draw(st.lists(TEXTS, max_size=2)))
    return shown.model_copy(update={"contexts": tuple(documents), "removed": removed})


ELEMENTS = {
    *("article", "section", "div", "p", "span", "sup", "a", "ol", "li", "cite", "blockquote"),
    *("details", "summary"),
}
ATTRIBUTES = {
    *("class", "id", "href", "title", "dir", "role", "rel", "target"),
    *("aria-label", "aria-labelledby", "aria-hidden"),
}


@pytest.mark.slow
@settings(max_examples=50)
@given(judged())
def test_every_quote_stands_in_its_document_and_texts_stay_texts(answer: Attempt) -> None:
    html = cited_html(answer)
    page = page_of_own(html, ELEMENTS, ATTRIBUTES)
    for link in page.all("a"):
        assert re.match(r"https?://|#demur-", link["href"])
        assert not link["href"].startswith("#") or page.behind(link)
    # Each mark is one that demur made. Forged marks are not links.
    entries = page.all("demur-entry")
    marks = page.all("doc-noteref")
    assert {page.behind(one)["id"] for one in marks} == {one["id"] for one in entries}
    told = (answer.evaluations, answer.contexts)
    left = cited(answer.answer, places_of(answer.answer), *told, "list")
    assert page.all("demur-cited")[0]["unmarked"] == harmless(left.text)
    for entry in entries:
        number = int(re.match(r"\[(\d+)\]", entry["text"])[1])  # type: ignore[index]
        assert entry["id"].endswith(f"-s{number}")
        document = harmless(answer.contexts[number - 1].page_content)
        at = page.elements.index(entry)
        following = page.elements[at + 1 :]
        inside = following[: _next(following, "demur-entry")]
        quotes = [one["text"] for one in inside if one.get("class") == "demur-quote"]
        assert quotes
        for quote in quotes:
            assert quote[0] + quote[-1] == "“”"
            assert quote[1:-1].strip() in document


def _next(elements: Sequence[dict[str, str]], class_: str) -> int:
    classes = [one.get("class", "").split() for one in elements]
    return next((at for at, names in enumerate(classes) if class_ in names), len(classes))
