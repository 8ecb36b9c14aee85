"""Test the whole report in real Chromium: its looks, what it lets run, how much it can hold."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from support.records import attempt, found, hostile, run
from support.reports import LAPTOP, PHONE, on, texts, write

NASTY = '</script><img src=x onerror="window.pwned=1"><b>bold</b>\u2028\x00\u202e<!--'

pytestmark = pytest.mark.browser


# -- looks -----------------------------------------------------------------------------------------


def _colours(page: Any) -> tuple[str, str]:
    """Return the colours of the page and of a figure's text."""
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    title = page.locator("#chart-0-scores .role-axis-title text").first
    text = title.evaluate("one => getComputedStyle(one).fill")
    return paper, text


def test_figures_follow_the_theme_and_paper_is_light(report: Path, chromium: Any) -> None:
    def do(page: Any) -> None:
        light = _colours(page)
        page.emulate_media(color_scheme="dark")
        dark = _colours(page)
        assert not set(light) & set(dark)
        page.emulate_media(media="print", color_scheme="dark")
        printed = _colours(page)
        assert printed == light
        for hidden in (".filters", ".controls", ".pager", "header nav"):
            assert not page.locator(hidden).first.is_visible()
        assert page.locator("#rows tbody tr").count() == 50
        page.emulate_media(media="screen", color_scheme="dark")
        assert _colours(page) == dark
        assert len(page.pdf()) > 10_000
        assert _colours(page) == dark

    on(report, chromium, do)


TEXTS = "body :not(script, style, noscript, title, option, :disabled)"


def test_it_can_be_read(report: Path, chromium: Any, contrasts: str) -> None:
    def do(page: Any) -> None:
        for _ in range(2):
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                told = page.evaluate(contrasts, TEXTS)
                assert "text" in {kind for kind, _ in told}  # The figures have texts too.
                assert [one for one in told if one[0] != "line" and one[1] < 4.5] == []
            for size in (PHONE, LAPTOP):
                page.set_viewport_size(size["viewport"])
                wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
                assert wide[0] <= wide[1]
            page.evaluate("document.querySelector('#rows tbody a').click()")
            page.wait_for_selector("#panel[open] .demur-answer")

    on(report, chromium, do)


CONTROLS = """() => [
        ...document.querySelectorAll("input, select, button, summary, a, table, dialog")
    ]
    .filter((one) => !(one.labels?.[0] ?? one.getAttribute("aria-label")
        ?? document.getElementById(one.getAttribute("aria-labelledby"))?.textContent
        ?? (one.caption?.textContent || one.innerText || one.textContent).trim()))
    .map((one) => one.outerHTML.slice(0, 120))"""


def test_it_can_be_heard(report: Path, chromium: Any) -> None:
    def do(page: Any) -> None:
        assert page.evaluate(CONTROLS) == []
        levels = page.evaluate(
            "[...document.querySelectorAll('h1,h2,h3,h4')].filter((one) => one.checkVisibility())"
            ".map((one) => Number(one.tagName[1]))"
        )
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
        for landmark in ("header", "main", "nav[aria-label]", "[role=search]"):
            assert page.locator(landmark).first.is_visible()
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map((one) => one.id)")
        assert len(ids) == len(set(ids))
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.locator("#query").focus()
        outline = page.locator("#query").evaluate("one => getComputedStyle(one).outlineStyle")
        assert outline == "solid"

    on(report, chromium, do)


# -- hostile texts ---------------------------------------------------------------------------------


def test_hostile_texts_stay_texts(chromium: Any, tmp_path: Path) -> None:
    wrong = found(NASTY, 0.1, False, explanation=NASTY, label=NASTY)
    one = run(
        attempt(wrong, answer=NASTY, question=NASTY, contexts=(NASTY,)),
        id=NASTY,
        model=NASTY,
        name=NASTY,
        metadata={NASTY: NASTY},
    )
    runs = [one, hostile(at=5), run(attempt(found(NASTY, 0.9, True)), at=9)]

    def do(page: Any) -> None:
        assert "onerror" in page.inner_text("h1")
        assert any("onerror" in one for one in texts(page, "answer"))
        page.locator("#rows tbody a", has_text="onerror").first.click()
        page.wait_for_selector("#panel[open] .demur-answer")
        assert "<b>bold</b>" in page.inner_text("#panel .demur-answer")
        assert page.locator("img, #panel b, #rows b").count() == 0
        assert page.evaluate("window.pwned") is None

    on(write(tmp_path, runs, title=NASTY), chromium, do)


def test_what_gets_in_all_the_same_does_not_run(report: Path, chromium: Any) -> None:
    def steps(page: Any, seen: Any) -> None:
        with_handler = (
            "<img src='data:,x' onerror='window.pwned=1'><a href='javascript:window.pwned=1'>x</a>"
        )
        page.goto(report.as_uri())
        page.evaluate(
            "refused = []; "
            "addEventListener('securitypolicyviolation', (one) => refused.push(one.sourceFile))"
        )
        page.evaluate("text => document.body.insertAdjacentHTML('afterbegin', text)", with_handler)
        page.evaluate(
            "document.body.append(Object.assign(document.createElement('script'),"
            " { text: 'window.pwned=1' }))"
        )
        page.locator("a", has_text="x").first.click()
        page.wait_for_function("refused.length >= 3")  # the handler, the script and the link
        assert page.evaluate("window.pwned") is None
        assert any("Content Security Policy" in one for one in seen.errors)
        refused = page.evaluate("fetch('https://127.0.0.1:9/').then(() => 'sent', () => 'refused')")
        assert refused == "refused"
        assert [one for one in seen.requests if not one.startswith(report.as_uri())] == []

    chromium(steps, **LAPTOP)
