"""Test the page of a comparison in real Chromium: complete, readable, without requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from demur.comparing import Compared, Comparison, Estimate, Quality
from demur.views.report import comparison_page
from support.reports import LAPTOP, PHONE, on

pytestmark = pytest.mark.browser

NASTY = '</title><img src=x onerror="window.pwned=1"><b>bold</b>\u202e\x00'


def _compared(name: str, auroc: float | None, tokens: float, line: bool = False) -> Compared:
    interval = None if auroc is None else (max(0.0, auroc - 0.1), min(1.0, auroc + 0.05))
    quality = Quality(auroc=Estimate(auroc, interval), f1=Estimate(0.7, None))
    cost: Any = {"tokens": tokens, "seconds": tokens / 100, "calls": 2.0, "money": None}
    return Compared(name, 200, 190, 80, 190, 7, 3, quality, cost, line)


def _comparison(*detectors: Compared) -> Comparison:
    return Comparison(
        name="set.jsonl",
        model="openai:x",
        answers=200,
        hallucinated=80,
        groups=100,
        unlabelled=4,
        unknown=0,
        cost="tokens",
        prices=None,
        detectors=detectors,
        left_out={"fewl": NASTY},
    )


DETECTORS = (
    _compared("floor-longest", 0.55, 0, line=True),
    _compared("zero-shot", 0.7, 80.4, line=True),
    _compared(NASTY, 0.65, 900),
    _compared("refchecker", 0.9, 2000, line=True),
    _compared("lost", None, 300),
)


def _write(folder: Path, comparison: Comparison) -> Path:
    page = folder / "page.html"
    page.write_text(comparison_page(comparison), encoding="utf-8")
    return page


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _write(tmp_path_factory.mktemp("comparison"), _comparison(*DETECTORS))


def test_it_shows_chart_and_tables_and_runs_nothing(page: Path, chromium: Any) -> None:
    def do(shown: Any) -> None:
        for size in (LAPTOP, PHONE):
            shown.set_viewport_size(size["viewport"])
            wide = shown.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            assert wide[0] <= wide[1]
        assert shown.evaluate("window.pwned") is None
        assert shown.locator("img, script").count() == 0
        assert shown.locator("#chart svg").bounding_box()["height"] > 100
        rows = shown.locator("table").nth(1).locator("tbody tr")
        assert rows.count() == 5
        assert "●" in rows.nth(1).inner_text()
        assert "bold</b>" in rows.nth(2).inner_text()
        assert "fewl" in shown.locator("#left-head + ul").inner_text()
        assert "without a label, which are left out: 4." in shown.locator(".about").inner_text()

    on(page, chromium, do)


def test_the_line_is_named_and_every_point_is_told(page: Path, chromium: Any) -> None:
    def do(shown: Any) -> None:
        texts = shown.locator("#chart svg .mark-text.role-mark text").all_text_contents()
        assert set(texts) >= {"floor-longest", "zero-shot", "refchecker"}
        assert not any("bold" in text for text in texts)
        told = shown.locator("#chart svg title").all_text_contents()
        assert "zero-shot: AUROC 0.700 (0.600 to 0.750), 80.4 an answer" in told
        # A detector without an AUROC has no point.
        assert len([text for text in told if "AUROC" in text]) == 4
        # Higher points are better, and points further right are more expensive.
        places = {
            one.locator("title").text_content().partition(":")[0]: one.bounding_box()
            for one in shown.locator("#chart path:has(> title)").all()
        }
        assert places["floor-longest"]["x"] < places["zero-shot"]["x"] < places["refchecker"]["x"]
        assert places["floor-longest"]["y"] > places["zero-shot"]["y"] > places["refchecker"]["y"]
        shown.locator("summary").click()
        assert shown.locator("details td").first.is_visible()

    on(page, chromium, do)
