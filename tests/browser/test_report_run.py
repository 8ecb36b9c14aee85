"""Test one run of the report in real Chromium: its panel, its address, its evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.reports import LAPTOP, on

pytestmark = pytest.mark.browser


@pytest.mark.smoke
def test_a_row_opens_its_run_and_a_claim_leads_to_its_evidence(report: Path, chromium: Any) -> None:
    def do(page: Any) -> None:
        page.fill("#query", "What of river 10?")
        page.locator("#rows tbody tr td.answer").first.click()
        panel = page.locator("#panel[open]")
        panel.wait_for()
        assert "What of river 10" in page.inner_text("#panel-head")
        page.wait_for_function("location.hash === '#run-id-10'")
        bad = panel.locator(".demur-answer a.demur-mark.demur-bad").first
        number = bad.get_attribute("data-claim")
        others = panel.locator(f"[data-claim~='{number}']:is(.demur-claim, .demur-reference *)")
        plain = others.first.evaluate("one => getComputedStyle(one).backgroundColor")
        bad.hover()
        for one in others.all():
            if "demur-note" not in (one.get_attribute("class") or ""):
                assert one.evaluate("one => getComputedStyle(one).backgroundColor") != plain
        bad.click()
        target = page.locator(":target")
        assert target.inner_text() == "flows into the Black Sea"
        assert target.evaluate("one => one.getBoundingClientRect().top") > 0
        assert panel.is_visible()
        # A copied address leads to the run.
        page.wait_for_function("location.hash === '#run-id-10'")
        page.go_back()
        assert panel.is_visible()
        page.keyboard.press("Escape")
        page.wait_for_selector("#panel:not([open])", state="attached")
        page.wait_for_function("!location.href.includes('#')")

    on(report, chromium, do)


def test_the_panel_by_keyboard(report: Path, chromium: Any) -> None:
    def do(page: Any) -> None:
        link = page.locator("#rows tbody a").nth(1)
        link.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("#panel[open]")
        focused = "document.activeElement.id"
        assert page.evaluate(focused) == "panel-head"
        inside = "document.getElementById('panel').contains(document.activeElement)"
        stops = []
        for _ in range(12):
            page.keyboard.press("Tab")
            stops.append(page.evaluate(inside) or page.evaluate("document.activeElement") is None)
        # The one exception is the browser's own stop behind the last one.
        assert stops.count(False) <= 1
        first = page.inner_text("#panel-head")
        page.focus("#next")
        page.keyboard.press("Enter")
        page.wait_for_function(
            "said => document.getElementById('panel-head').innerText !== said", arg=first
        )
        # The button keeps the focus, so it can be pressed again.
        assert page.evaluate(focused) == "next"
        page.click("#previous")
        page.wait_for_function(
            "said => document.getElementById('panel-head').innerText === said", arg=first
        )
        page.keyboard.press("Escape")
        assert page.evaluate("document.activeElement.innerText") == first

    on(report, chromium, do)


def test_an_address_opens_its_run_with_all_attempts(report: Path, chromium: Any) -> None:
    def do(page: Any) -> None:
        page.wait_for_selector("#panel[open] .demur-between")
        assert page.locator("#panel .demur-attempt").count() == 2
        assert "The guard asked for another answer" in page.inner_text("#panel-body")
        page.click("#close")
        for nobody in ("run-nobody", "run-%E0%A4%A"):  # The second text is not valid UTF-8.
            page.evaluate("hash => { location.hash = hash }", nobody)
            page.wait_for_selector("#panel[open] .notice")
            assert "asks for a run that is not in this report" in page.inner_text("#panel")
            page.keyboard.press("Escape")
            page.wait_for_selector("#panel:not([open])", state="attached")
            page.wait_for_function("!location.href.includes('#')")

    on(report, chromium, do, hash="#run-id%20guarded%2F%C3%A4")


def test_details_that_cannot_be_unpacked_are_told(report: Path, chromium: Any) -> None:
    def steps(page: Any, seen: Any) -> None:
        page.add_init_script("delete window.DecompressionStream")
        page.goto(report.as_uri())
        page.locator("#rows tbody a").first.click()
        page.wait_for_selector("#panel[open] .notice")
        assert "cannot be unpacked" in page.inner_text("#panel-body")
        assert seen.errors == []

    chromium(steps, **LAPTOP)


def test_a_run_that_is_open_is_printed_alone(report: Path, chromium: Any) -> None:
    def do(page: Any) -> None:
        page.locator("#rows tbody a").first.click()
        page.wait_for_selector("#panel[open] .demur-answer")
        page.emulate_media(media="print")
        assert page.locator(".demur-answer").first.is_visible()
        for hidden in ("header.page", "#quality", "#rows", "#close"):
            assert not page.locator(hidden).is_visible()
        panel = page.locator("#panel").evaluate("one => [one.scrollHeight, one.clientHeight]")
        assert panel[0] == panel[1]  # Nothing is cut off.

    on(report, chromium, do)
