"""Test the report's table and thresholds in real Chromium."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.reports import LAPTOP, RUNS, on, texts

pytestmark = pytest.mark.browser


# -- the table -------------------------------------------------------------------------------------


def test_the_worst_answers_come_first_and_pages_turn(report: Path, chromium: Any) -> None:
    def do(page: Any) -> None:
        scores = [float(one) for one in texts(page, "score")]
        assert scores == sorted(scores)
        assert len(scores) == 50
        assert page.inner_text("#shown") == "162 runs, 1 to 50 shown"
        assert page.locator("th.score").get_attribute("aria-sort") == "ascending"
        assert page.locator("#back").is_disabled()
        for number in (2, 3, 4):
            page.click("#forth")
            assert page.inner_text("#page") == f"Page {number} of 4"
        assert page.locator("#forth").is_disabled()
        last = texts(page, "score")
        assert len(last) == 12
        assert last[-1] == "–"  # A run without a score comes last in either order.
        page.click("th.score button")
        assert page.locator("th.score").get_attribute("aria-sort") == "descending"
        again = [float(one) for one in texts(page, "score")]
        assert again == sorted(again, reverse=True)

    on(report, chromium, do)


def test_each_column_sorts(report: Path, chromium: Any) -> None:
    def do(page: Any) -> None:
        for key in ("verdict", "label", "question", "model", "time", "attempts"):
            page.click(f"th.{key} button")
            up = [one.lower() for one in texts(page, key)]
            assert up == sorted(up)
            page.click(f"th.{key} button")
            down = [one.lower() for one in texts(page, key)]
            assert down == sorted(down, reverse=True)
            assert up[0] != down[0]
            assert page.locator("#rows th[aria-sort$=ending]").count() == 1

    on(report, chromium, do)


def test_search_and_filters_choose_rows(report: Path, chromium: Any) -> None:
    def do(page: Any) -> None:
        def shown() -> int:
            return int(page.inner_text("#shown").split()[0].replace("No", "0"))

        page.fill("#query", "RIVER 15")
        assert shown() == 11
        page.fill("#query", "id-77")
        assert texts(page, "question") == ["What of river 77?"]
        page.fill("#query", "nowhere")
        assert page.inner_text("#shown") == "No run matches."
        page.fill("#query", "")
        page.select_option("#verdict", "undetermined")
        assert shown() == 1
        page.select_option("#verdict", "")
        page.select_option("#outcome", "recovered")
        assert texts(page, "attempts") == ["2"]
        page.select_option("#outcome", "")
        page.select_option("#label", "yes")
        assert set(texts(page, "label")) == {"hallucinated"}
        hallucinated = shown()
        page.select_option("#side", "passes")
        passing = shown()
        page.select_option("#side", "fails")
        assert 0 < passing < hallucinated == passing + shown()
        page.select_option("#label", "-")
        assert set(texts(page, "label")) == {"–"}
        page.select_option("#side", "")
        page.select_option("#finding", "failed")
        assert set(texts(page, "verdict")) <= {"failed"}

    on(report, chromium, do)


# -- thresholds ------------------------------------------------------------------------------------

# The position of a line, as a share of the axis, which runs over scores from 0 to 1.
PLACE = """name => {
    const box = (selector) =>
        document.querySelector(`#chart-0-scores ${selector}`).getBoundingClientRect();
    const axis = box(".role-axis-domain line");
    return (box(`.${name}_marks line`).left - axis.left) / axis.width;
}"""
FIGURE = "section:not([hidden]) [data-figure={}]"


def test_the_slider_says_what_would_pass(report: Path, chromium: Any) -> None:
    known = [
        (one.attempts[0].evaluations[0].score, one.metadata.get("hallucinated")) for one in RUNS
    ]
    scored = [(score, label) for score, label in known if score is not None]

    def do(page: Any) -> None:
        page.focus("#range-0")
        page.keyboard.press("Home")
        assert page.inner_text(FIGURE.format("pass_rate")) == "100.0 %"
        assert page.inner_text(FIGURE.format("leak")) == "100.0 %"
        for _ in range(40):
            page.keyboard.press("ArrowRight")
        threshold = sorted({score for score, _ in scored})[40]
        passed = sum(score >= threshold for score, _ in scored)
        assert f"{passed} of {len(scored)} answers pass a threshold of" in page.inner_text(
            "#told-0"
        )
        wrong = [score for score, label in scored if label]
        leak = sum(score >= threshold for score in wrong) / len(wrong)
        assert page.inner_text(FIGURE.format("leak")) == f"{leak:.1%}".replace("%", " %")
        recall = float(page.inner_text(FIGURE.format("recall")).split()[0])
        assert recall == pytest.approx(100 * (1 - leak), abs=0.06)
        assert "pass" in page.get_attribute("#range-0", "aria-valuetext")
        assert page.evaluate(PLACE, "chosen") == pytest.approx(threshold, abs=0.002)
        page.keyboard.press("End")
        assert page.inner_text(FIGURE.format("pass_rate")) == "0.0 %"
        page.fill("#number-0", "0.5")
        page.keyboard.press("Enter")
        passed = sum(score >= 0.5 for score, _ in scored)
        assert page.inner_text("#told-0").startswith(f"{passed} of {len(scored)} answers")
        page.select_option("#side", "fails")
        assert page.inner_text("#shown").startswith(f"{len(scored) - passed} of")
        for none in ("", "1e999"):
            page.fill("#number-0", "")
            page.locator("#number-0").press_sequentially(none)
            page.keyboard.press("Tab")
            assert float(page.input_value("#number-0")) >= 0.5
            assert page.inner_text("#told-0").startswith(f"{passed} of {len(scored)} answers")
        page.fill("#number-0", "99")
        page.keyboard.press("Tab")
        assert page.inner_text(FIGURE.format("pass_rate")) == "0.0 %"
        assert page.inner_text("#shown").startswith(f"{len(scored)} of")

    on(report, chromium, do)


def test_another_evaluator_has_its_own_figures_and_scores(report: Path, chromium: Any) -> None:
    def do(page: Any) -> None:
        assert page.locator("section.evaluator:visible h3").all_inner_texts() == ["RefChecker"]
        page.select_option("#evaluator", label="FEWL")
        assert page.locator("section.evaluator:visible h3").all_inner_texts() == ["FEWL"]
        page.wait_for_selector("#chart-1-scores svg")
        lowest = min(
            one.score
            for record in RUNS
            for one in record.attempts[0].evaluations
            if one.name == "FEWL" and one.score is not None
        )
        assert texts(page, "score")[0] == f"{lowest:.3f}"

    on(report, chromium, do)


def test_figures_and_numbers_are_there_without_scripts(report: Path, chromium: Any) -> None:
    def steps(page: Any, seen: Any) -> None:
        page.goto(report.as_uri())
        assert page.locator("section.evaluator:visible").count() == 2
        page.locator("summary", has_text="Thresholds in numbers").first.click()
        assert page.locator("table.numbers:visible tbody tr").count() > 10
        assert page.locator(".chart svg:visible").count() == page.locator(".chart").count() > 4
        assert page.locator(".filters:visible, .slider:visible").count() == 0
        assert "needs JavaScript" in page.inner_text("#answers")

    chromium(steps, java_script_enabled=False, **LAPTOP)
