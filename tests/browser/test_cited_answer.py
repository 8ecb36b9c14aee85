"""Test an answer with its sources in real Chromium, as a web front end embeds it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from demur import Claim, ClaimLabel, Evidence, Span
from demur.guard import Attempt
from demur.guard.edits import places_of
from demur.views import cited_html
from support.records import attempt, found, refuted, run
from support.reports import on, unscored, write

pytestmark = pytest.mark.browser

GOOD = ClaimLabel.ENTAILMENT
DOCUMENTS = (
    Document(
        "The Danube is 2,850 km long. " + "It passes ten countries on its way. " * 40,
        metadata={"title": "Rivers of Europe", "url": "https://rivers.example/danube"},
    ),
    Document("Ulm lies on the Danube.", metadata={"source": "ulm.md"}),
)
ANSWER = (
    "The Danube is 2,850 km long. It passes ten countries. Nobody said this.\n\n- Ulm is on it."
)
MARKS = [
    "source 1: Rivers of Europe, for sentence 1",
    "source 1: Rivers of Europe, for sentence 2",
    "source 2: ulm.md, for sentence 2",
    "source 2: ulm.md, for item 1",
]
HEAD = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Ask</title>'
    '<meta name="viewport" content="width=device-width">'
    # This policy is as strict as it can be for a page with a style.
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
    "style-src 'unsafe-inline'\">"
)
KINDS = {"demur-cited", "A", "demur-number", "demur-title", "demur-quiet", "SUMMARY"}
HOSTILE = (
    "</style></a></li></ol></article><img src=x onerror=\"document.title='run'\"><script>"
    "document.title='run'</script><sup><a href=\"javascript:document.title='run'\">[1]</a></sup> "
    "[1](javascript:alert(1)) [2] \x1b]0;x\x07 \u202eevil \u2066"
)


def _cited(
    answer: str = ANSWER,
    documents: Sequence[Document] = DOCUMENTS,
    rests: Sequence[Sequence[int]] = ((0,), (0, 1), (), (1,)),
    **fields: Any,
) -> Attempt:
    """Return an answer that passed; `rests` has the documents that each of its parts rests on."""
    claims = []
    for part, sources in zip(places_of(answer), rests, strict=False):
        quotes = [(at, documents[at].page_content) for at in sources]
        proofs = [
            Evidence(
                context=at,
                span=Span(start=0, end=len(text)),
                text=text,
                label=ClaimLabel.ENTAILMENT,
            )
            for at, text in quotes
        ]
        label = GOOD if sources else ClaimLabel.NEUTRAL
        span = Span(start=part.start, end=part.end)
        claims.append(Claim(text="x", span=span, label=label, evidence=tuple(proofs)))
    made = attempt(found(claims=tuple(claims)), answer=answer, contexts=(), **fields)
    return made.model_copy(update={"contexts": tuple(documents)})


@pytest.fixture
def page_of(tmp_path: Path) -> Callable[..., str]:
    """Return a function that writes a page with the answer and returns its address."""

    def write(answer: Attempt) -> str:
        path = tmp_path / "page.html"
        html = f"{HEAD}<body><main>{cited_html(answer, style=True)}</main>"
        path.write_text(html, encoding="utf-8")
        return path.as_uri()

    return write


def _is_clean(seen: Any, address: str) -> bool:
    """Return whether the page had no errors and requested nothing but itself."""
    return seen.errors == [] and {one.partition("#")[0] for one in seen.requests} == {address}


def test_marks_lead_to_sources_and_back_by_the_keyboard_alone(
    chromium: Any, page_of: Callable[..., str]
) -> None:
    address = page_of(_cited())

    def steps(page: Any, seen: Any) -> None:
        page.goto(address)
        focused = page.locator(":focus")
        names = []
        links = page.locator("a[href], summary").count()
        for _ in range(links):
            page.keyboard.press("Tab")
            names.append(focused.get_attribute("aria-label") or focused.inner_text())
            outline = focused.evaluate("e => getComputedStyle(e).outlineStyle")
            assert outline == "solid"
        assert names == [
            *MARKS,
            "Rivers of Europe, on rivers.example, opens in a new tab",
            "981 more characters",
            "back to sentence 1",
            "back to sentence 2",
            "back to sentence 2",
            "back to item 1",
        ]
        page.get_by_label("source 2: ulm.md, for item 1").focus()
        page.keyboard.press("Enter")
        source = page.locator("li:target")
        assert "Ulm lies on the Danube." in source.inner_text()
        assert source.evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
        page.keyboard.press("Tab")  # The tabulator goes on from there.
        page.keyboard.press("Tab")
        assert focused.get_attribute("aria-label") == "back to item 1"
        page.keyboard.press("Enter")
        assert focused.get_attribute("aria-label") == "source 2: ulm.md, for item 1"
        assert page.locator("a:target").count() == 1
        assert _is_clean(seen, address)

    chromium(steps, viewport={"width": 700, "height": 400})


def test_a_screen_reader_is_told_what_is_what(chromium: Any, page_of: Callable[..., str]) -> None:
    address = page_of(_cited())

    def steps(page: Any, seen: Any) -> None:
        page.goto(address)
        nodes = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
        told = [(one["role"]["value"], one.get("name", {}).get("value")) for one in nodes]
        assert [name for role, name in told if role == "doc-endnotes"] == ["Sources"]
        assert [role for role, _ in told].count("list") == 1
        assert [role for role, _ in told].count("doc-endnote") == 2
        assert [name for role, name in told if role == "doc-noteref"] == MARKS
        assert ("doc-backlink", "back to sentence 1") in told
        # Each name contains the visible text, so that voice control can call it.
        for one in page.locator("a[aria-label]").all():
            said, name = one.inner_text().strip("[]"), one.get_attribute("aria-label")
            assert said in name

    chromium(steps)


def test_it_can_be_read_in_light_and_dark(
    chromium: Any, page_of: Callable[..., str], contrasts: str
) -> None:
    address = page_of(_cited())

    def steps(page: Any, seen: Any) -> None:
        page.goto(address)
        page.locator("summary").click()
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            told = page.evaluate(contrasts)
            assert {kind for kinds, _ in told for kind in kinds.split()} >= KINDS
            assert [(kind, ratio) for kind, ratio in told if ratio < 4.5] == []

    chromium(steps)


def test_hostile_texts_do_nothing(chromium: Any, page_of: Callable[..., str]) -> None:
    documents = [
        Document(HOSTILE, metadata={"title": HOSTILE, "url": "javascript:document.title='run'"}),
        Document(
            "A tower.", metadata={"title": "https://bank.example", "url": "https://evil.example"}
        ),
    ]
    answer = _cited(f"It is so. {HOSTILE}", documents, [(0, 1)] * 20, removed=(HOSTILE,))
    address = page_of(answer)

    def steps(page: Any, seen: Any) -> None:
        page.on("dialog", lambda dialog: seen.errors.append(dialog.message))
        page.goto(address)
        for link in page.locator('a[href^="#"]').all():
            link.click()
            assert page.locator(":target").count() == 1
        names = page.evaluate("[...document.body.querySelectorAll('*')].map(e => e.localName)")
        assert not set(names) & {"img", "script", "svg", "b", "del"}
        away = page.locator('a:not([href^="#"])')
        assert [one.get_attribute("href") for one in away.all()] == ["https://evil.example"]
        assert "evil.example ↗" in page.locator("li.demur-entry").last.inner_text()
        assert page.title() == "Ask"
        assert _is_clean(seen, address)

    chromium(steps)


def test_a_run_in_the_report_has_it_folded(chromium: Any, tmp_path: Path) -> None:
    last = _cited(origin="edit", recovery="strip", removed=("It is red.",))
    cited = run(attempt(refuted()), last, outcome="trimmed", reason="it held", id="id-cited")
    report = write(tmp_path, [unscored(cited)])

    def do(page: Any) -> None:
        panel = page.locator("#panel[open]")
        panel.wait_for()
        assert "✂ trimmed" in panel.inner_text()
        assert panel.locator("del").inner_text() == "It is red."
        mark = panel.locator("[role=doc-noteref]").last
        assert not mark.is_visible()
        panel.get_by_text("The answer with its sources").click()
        mark.click()
        assert "ulm.md" in page.locator("li:target").inner_text()
        assert panel.is_visible()
        # A copied address leads to the run.
        page.wait_for_function("location.hash === '#run-id-cited'")
        page.keyboard.press("Escape")
        assert "trimmed" in page.locator("#rows td.outcome").inner_text()
        assert page.locator("#outcome option[value=trimmed]").count() == 1

    on(report, chromium, do, hash="#run-id-cited")
