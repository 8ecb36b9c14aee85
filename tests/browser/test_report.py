"""The report in real Chromium: it shows, it answers, and nothing in it runs that is not its own."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from demur import Claim, ClaimLabel, Evaluation, Evidence, Span, Threshold, Usage
from demur.observe.log import open_log
from demur.observe.records import Record
from demur.report import write_report
from support.records import PASSAGE, attempt, found, guarded, hostile, jsonl, run, undetermined

pytestmark = pytest.mark.browser

LAPTOP = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 1}
RIGHT, WRONG = "It is 2,850 km long.", "It flows into the Adriatic Sea."
NASTY = '</script><img src=x onerror="window.pwned=1"><b>bold</b>\u2028\x00\u202e<!--'


def _judged(score: float, wrong: bool) -> Evaluation:
    """Two claims with their places and evidence."""
    quotes = ("2,850 km long", "flows into the Black Sea")
    claims = []
    for text, quote, bad in ((RIGHT, quotes[0], False), (WRONG, quotes[1], wrong)):
        label = ClaimLabel.CONTRADICTION if bad else ClaimLabel.ENTAILMENT
        at, place = f"{RIGHT} {WRONG}".index(text), PASSAGE.index(quote)
        evidence = Evidence(
            context=0, span=Span(start=place, end=place + len(quote)), text=quote, label=label
        )
        span = Span(start=at, end=at + len(text))
        claims.append(Claim(text=text, span=span, label=label, evidence=(evidence,)))
    return found("RefChecker", score, score >= 0.5, claims=tuple(claims))


def _runs(count: int) -> Iterator[Record]:
    """Half are hallucinated, with lower scores; a third has no label; two evaluators."""
    draw = random.Random(7)
    for at in range(count):
        wrong = at % 2 == 0
        score = round(draw.betavariate(2, 5) if wrong else draw.betavariate(5, 2), 4)
        judged = [_judged(score, wrong), found("FEWL", round(draw.gauss(0, 1), 4), None)]
        answer = f"{RIGHT} {WRONG}"
        yield run(
            attempt(*judged[: 1 + at % 3], answer=answer, question=f"What of river {at}?"),
            at=at * 60,
            model="llama" if at % 5 == 0 else "gpt",
            metadata={} if at % 3 == 0 else {"hallucinated": wrong},
            id=f"id-{at}",
        )


RUNS = [*_runs(160), guarded(at=1e5, id="id guarded/ä"), run(attempt(undetermined()), at=2e5)]


@pytest.fixture(scope="module")
def report(tmp_path_factory: Any) -> Path:
    return _write(tmp_path_factory.mktemp("report"), RUNS)


def _write(folder: Path, runs: Any, **given: Any) -> Path:
    with open_log(jsonl(folder / "log.jsonl", runs)) as log:
        write_report(log, folder / "report.html", **given)
    return folder / "report.html"


@contextmanager
def _clean(page: Any, seen: Any, path: Path, hash: str = "") -> Iterator[None]:
    """Opened and drawn; at the end nothing was complained of, and nothing was asked for."""
    page.goto(path.as_uri() + hash)
    page.wait_for_selector("section:not([hidden]) .chart .main-svg")
    yield
    assert seen.errors == []
    assert [one.partition("#")[0] for one in seen.requests] == [path.as_uri()]


def _on(report: Path, chromium: Any, do: Callable[[Any], None], **given: Any) -> None:
    """Do something with the page, and see that it is in order before and after."""
    hash = given.pop("hash", "")

    def steps(page: Any, seen: Any) -> None:
        with _clean(page, seen, report, hash):
            do(page)

    chromium(steps, **{**LAPTOP, **given})


def _texts(page: Any, column: str) -> list[str]:
    texts: list[str] = page.locator(f"#rows tbody td.{column}").all_inner_texts()
    return texts


# -- the table -------------------------------------------------------------------------------------


def test_the_worst_answers_come_first_and_pages_turn(report: Path, chromium: Any) -> None:
    def do(page: Any) -> None:
        scores = [float(one) for one in _texts(page, "score")]
        assert scores == sorted(scores)
        assert len(scores) == 50
        assert page.inner_text("#shown") == "162 runs, 1 to 50 shown"
        assert page.locator("th.score").get_attribute("aria-sort") == "ascending"
        assert page.locator("#back").is_disabled()
        for number in (2, 3, 4):
            page.click("#forth")
            assert page.inner_text("#page") == f"Page {number} of 4"
        assert page.locator("#forth").is_disabled()
        last = _texts(page, "score")
        assert len(last) == 12
        assert last[-1] == "–"  # without a score, whichever way it is sorted
        page.click("th.score button")
        assert page.locator("th.score").get_attribute("aria-sort") == "descending"
        again = [float(one) for one in _texts(page, "score")]
        assert again == sorted(again, reverse=True)

    _on(report, chromium, do)


def test_each_column_sorts(report: Path, chromium: Any) -> None:
    def do(page: Any) -> None:
        for key in ("verdict", "label", "question", "model", "time", "attempts"):
            page.click(f"th.{key} button")
            up = [one.lower() for one in _texts(page, key)]
            assert up == sorted(up)
            page.click(f"th.{key} button")
            down = [one.lower() for one in _texts(page, key)]
            assert down == sorted(down, reverse=True)
            assert up[0] != down[0]
            assert page.locator("#rows th[aria-sort$=ending]").count() == 1

    _on(report, chromium, do)


def test_search_and_filters_choose_rows(report: Path, chromium: Any) -> None:
    def do(page: Any) -> None:
        def shown() -> int:
            return int(page.inner_text("#shown").split()[0].replace("No", "0"))

        page.fill("#query", "RIVER 15")
        assert shown() == 11
        page.fill("#query", "id-77")
        assert _texts(page, "question") == ["What of river 77?"]
        page.fill("#query", "nowhere")
        assert page.inner_text("#shown") == "No run matches."
        page.fill("#query", "")
        page.select_option("#verdict", "undetermined")
        assert shown() == 1
        page.select_option("#verdict", "")
        page.select_option("#outcome", "recovered")
        assert _texts(page, "attempts") == ["2"]
        page.select_option("#outcome", "")
        page.select_option("#label", "yes")
        assert set(_texts(page, "label")) == {"hallucinated"}
        hallucinated = shown()
        page.select_option("#side", "passes")
        passing = shown()
        page.select_option("#side", "fails")
        assert 0 < passing < hallucinated == passing + shown()
        page.select_option("#label", "-")
        assert set(_texts(page, "label")) == {"–"}
        page.select_option("#side", "")
        page.select_option("#finding", "failed")
        assert set(_texts(page, "verdict")) <= {"failed"}

    _on(report, chromium, do)


# -- thresholds ------------------------------------------------------------------------------------

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
        assert f"{passed} of {len(scored)} answers have a score of" in page.inner_text("#told-0")
        wrong = [score for score, label in scored if label]
        leak = sum(score >= threshold for score in wrong) / len(wrong)
        assert page.inner_text(FIGURE.format("leak")) == f"{leak:.1%}".replace("%", " %")
        recall = float(page.inner_text(FIGURE.format("recall")).split()[0])
        assert recall == pytest.approx(100 * (1 - leak), abs=0.06)
        assert "pass" in page.get_attribute("#range-0", "aria-valuetext")
        at = page.evaluate("document.getElementById('chart-0-scores').layout.shapes[0].x0")
        assert at == threshold
        page.keyboard.press("End")
        assert page.inner_text(FIGURE.format("pass_rate")) == "0.0 %"
        page.fill("#number-0", "0.5")
        page.keyboard.press("Enter")
        passed = sum(score >= 0.5 for score, _ in scored)
        assert page.inner_text("#told-0").startswith(f"{passed} of {len(scored)} answers")
        page.select_option("#side", "fails")
        assert page.inner_text("#shown").startswith(f"{len(scored) - passed} of")
        page.fill("#number-0", "99")
        page.keyboard.press("Tab")
        assert page.inner_text(FIGURE.format("pass_rate")) == "0.0 %"
        assert page.inner_text("#shown").startswith(f"{len(scored)} of")

    _on(report, chromium, do)


def test_another_evaluator_has_its_own_figures_and_scores(report: Path, chromium: Any) -> None:
    def do(page: Any) -> None:
        assert page.locator("section.evaluator:visible h3").all_inner_texts() == ["RefChecker"]
        page.select_option("#evaluator", label="FEWL")
        assert page.locator("section.evaluator:visible h3").all_inner_texts() == ["FEWL"]
        page.wait_for_selector("#chart-1-scores .main-svg")
        lowest = min(
            one.score
            for record in RUNS
            for one in record.attempts[0].evaluations
            if one.name == "FEWL" and one.score is not None
        )
        assert _texts(page, "score")[0] == f"{lowest:.3f}"

    _on(report, chromium, do)


def test_numbers_are_there_without_scripts(report: Path, chromium: Any) -> None:
    def steps(page: Any, seen: Any) -> None:
        page.goto(report.as_uri())
        assert page.locator("section.evaluator:visible").count() == 2
        page.locator("summary", has_text="Thresholds in numbers").first.click()
        assert page.locator("table.numbers:visible tbody tr").count() > 10
        assert page.locator(".chart:visible, .filters:visible, .slider:visible").count() == 0
        assert "needs JavaScript" in page.inner_text("#answers")

    chromium(steps, java_script_enabled=False, **LAPTOP)


def test_a_threshold_that_was_given_is_marked(chromium: Any, tmp_path: Path) -> None:
    given = Threshold(
        value=0.41, method="percentile", percentile=5, evaluator="RefChecker", samples=9, passed=9
    )

    def do(page: Any) -> None:
        assert (
            page.evaluate("document.getElementById('chart-0-scores').layout.shapes[1].x0") == 0.41
        )
        assert page.locator(".guarantee:visible").inner_text().startswith("Threshold 0.41.")
        assert page.locator("#chart-0-scores .annotation-text").all_text_contents() == ["given"]

    _on(_write(tmp_path, RUNS, threshold=given), chromium, do)


# -- one run ---------------------------------------------------------------------------------------


def test_a_row_opens_its_run_and_a_claim_leads_to_its_evidence(report: Path, chromium: Any) -> None:
    def do(page: Any) -> None:
        page.fill("#query", "id-10")
        page.locator("#rows tbody tr td.answer").first.click()
        panel = page.locator("#panel[open]")
        panel.wait_for()
        assert "What of river 10" in page.inner_text("#panel-head")
        assert page.url.endswith("#run-id-10") or "#run-id-10" in page.url
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
        page.go_back()
        assert panel.is_visible()
        page.keyboard.press("Escape")
        page.wait_for_selector("#panel:not([open])", state="attached")
        assert "#" not in page.url

    _on(report, chromium, do)


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
        assert stops.count(False) <= 1  # but for the browser's own, behind the last one
        first = page.inner_text("#panel-head")
        page.click("#next")
        page.wait_for_function(
            "said => document.getElementById('panel-head').innerText !== said", arg=first
        )
        page.click("#previous")
        page.wait_for_function(
            "said => document.getElementById('panel-head').innerText === said", arg=first
        )
        page.keyboard.press("Escape")
        assert page.evaluate("document.activeElement.innerText") == first

    _on(report, chromium, do)


def test_an_address_opens_its_run_with_all_attempts(report: Path, chromium: Any) -> None:
    def do(page: Any) -> None:
        page.wait_for_selector("#panel[open] .demur-between")
        assert page.locator("#panel .demur-attempt").count() == 2
        assert "The guard asked for another answer" in page.inner_text("#panel-body")
        page.click("#close")
        page.evaluate("location.hash = '#run-nobody'")
        page.evaluate("location.hash = '#run-%E0%A4%A'")  # no text at all
        page.wait_for_timeout(100)
        assert page.locator("#panel[open]").count() == 0

    _on(report, chromium, do, hash="#run-id%20guarded%2F%C3%A4")


# -- looks -----------------------------------------------------------------------------------------


def _colours(page: Any) -> tuple[str, str]:
    """Of the page, and of a figure's text."""
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    text = page.locator("#chart-0-scores .xtitle").evaluate("one => getComputedStyle(one).fill")
    return paper, text


def _light(colour: str) -> float:
    """The relative luminance of WCAG, in [0, 1]."""
    parts = [int(one) / 255 for one in colour.partition("(")[2].rstrip(")").split(",")[:3]]
    red, green, blue = (
        one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_light(one), _light(other)))
    return (high + 0.05) / (low + 0.05)


def test_figures_follow_the_theme_and_paper_is_light(report: Path, chromium: Any) -> None:
    def do(page: Any) -> None:
        light = _colours(page)
        assert _light(light[0]) > 0.9
        page.emulate_media(color_scheme="dark")
        page.wait_for_timeout(300)
        dark = _colours(page)
        assert _light(dark[0]) < 0.05
        assert _contrast(*dark) > 7
        page.emulate_media(media="print", color_scheme="dark")
        page.wait_for_timeout(300)
        printed = _colours(page)
        assert printed == light
        for hidden in (".filters", ".controls", ".pager", "header nav"):
            assert not page.locator(hidden).first.is_visible()
        assert page.locator("#rows tbody tr").count() == 50
        page.emulate_media(media="screen", color_scheme="dark")
        page.wait_for_timeout(300)
        assert _colours(page) == dark
        assert len(page.pdf()) > 10_000
        assert _colours(page) == dark

    _on(report, chromium, do)


TEXTS = """() => {
    const found = [];
    const shown = (one) => one.checkVisibility({ visibilityProperty: true }) && one.offsetWidth > 1;
    const ground = (one) => {
        for (; one; one = one.parentElement) {
            const colour = getComputedStyle(one).backgroundColor;
            if (!colour.endsWith(", 0)") && colour !== "transparent") return colour;
        }
        return "rgb(255, 255, 255)";
    };
    for (const one of document.querySelectorAll("body *:not(script, option, :disabled)")) {
        const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
        if (own && one instanceof HTMLElement && shown(one))
            found.push([one.outerHTML.slice(0, 100), getComputedStyle(one).color, ground(one)]);
    }
    return found;
}"""


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_it_can_be_read(size: Any, report: Path, chromium: Any) -> None:
    def do(page: Any) -> None:
        for _ in range(2):
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                texts = page.evaluate(TEXTS)
                assert len(texts) > 100
                pale = [one for one in texts if _contrast(one[1], one[2]) < 4.5]
                assert not pale
            wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            assert wide[0] <= wide[1]
            page.evaluate("document.querySelector('#rows tbody a').click()")
            page.wait_for_selector("#panel[open] .demur-answer")

    _on(report, chromium, do, **size)


CONTROLS = """() => [
        ...document.querySelectorAll("input, select, button, summary, a, table, dialog")
    ]
    .filter((one) => !one.closest(".js-plotly-plot"))
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

    _on(report, chromium, do)


# -- hostile texts ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def nasty(tmp_path_factory: Any) -> Path:
    wrong = found(NASTY, 0.1, False, explanation=NASTY, label=NASTY)
    one = run(
        attempt(wrong, answer=NASTY, question=NASTY, contexts=(NASTY,)),
        id=NASTY,
        model=NASTY,
        name=NASTY,
        metadata={NASTY: NASTY},
    )
    runs = [one, hostile(at=5), run(attempt(found(NASTY, 0.9, True)), at=9)]
    return _write(tmp_path_factory.mktemp("nasty"), runs, title=NASTY)


def test_hostile_texts_stay_texts(nasty: Path, chromium: Any) -> None:
    def do(page: Any) -> None:
        assert "onerror" in page.inner_text("h1")
        assert any("onerror" in one for one in _texts(page, "answer"))
        page.locator("#rows tbody a", has_text="onerror").first.click()
        page.wait_for_selector("#panel[open] .demur-answer")
        assert "<b>bold</b>" in page.inner_text("#panel .demur-answer")
        assert page.locator("img, #panel b, #rows b").count() == 0
        assert page.evaluate("window.pwned") is None

    _on(nasty, chromium, do)


def test_what_gets_in_all_the_same_does_not_run(report: Path, chromium: Any) -> None:
    def steps(page: Any, seen: Any) -> None:
        with_handler = (
            "<img src='data:,x' onerror='window.pwned=1'><a href='javascript:window.pwned=1'>x</a>"
        )
        page.goto(report.as_uri())
        page.evaluate("text => document.body.insertAdjacentHTML('afterbegin', text)", with_handler)
        page.evaluate(
            "document.body.append(Object.assign(document.createElement('script'),"
            " { text: 'window.pwned=1' }))"
        )
        page.locator("a", has_text="x").first.click()
        page.wait_for_timeout(200)
        assert page.evaluate("window.pwned") is None
        assert any("Content Security Policy" in one for one in seen.errors)
        refused = page.evaluate("fetch('https://127.0.0.1:9/').then(() => 'sent', () => 'refused')")
        assert refused == "refused"
        assert [one for one in seen.requests if not one.startswith(report.as_uri())] == []

    chromium(steps, **LAPTOP)


# -- many ------------------------------------------------------------------------------------------


def test_ten_thousand_runs_answer_at_once(chromium: Any, tmp_path: Path) -> None:
    draw = random.Random(3)

    def runs() -> Iterator[Record]:
        for at in range(10_000):
            judged = Evaluation(name="x", score=draw.random(), passed=at % 3 > 0, usage=Usage())
            yield run(attempt(judged, question=f"Question {at}?"), at=at, id=f"{at}")

    report = _write(tmp_path, runs())
    step = """async ([id, value]) => {
        const begin = performance.now();
        const one = document.getElementById(id);
        if (value === undefined) one.click();
        else { one.value = value; one.dispatchEvent(new Event("input", { bubbles: true })); }
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        return performance.now() - begin;
    }"""

    def do(page: Any) -> None:
        times = {}
        for id, value in (
            ("query", "question 99"),
            ("query", ""),
            ("verdict", "failed"),
            ("range-0", "5000"),
        ):
            times[id, value] = page.evaluate(step, [id, value])
        assert page.inner_text("#shown").startswith("3,334 of 10,000 runs")
        for head in page.locator("#rows thead button").all():
            begin = page.evaluate("performance.now()")
            head.evaluate("one => one.click()")
            times[head.inner_text(), ""] = page.evaluate("performance.now()") - begin
        # The goal is 200 ms, see bench/report.py; a machine that is busy takes longer.
        assert max(times.values()) < 2000, times
        page.evaluate("location.hash = '#run-9999'")
        page.wait_for_selector("#panel[open] .demur-answer")
        assert page.inner_text("#panel-head") == "Question 9999?"

    _on(report, chromium, do)


def test_an_empty_report_is_in_order(chromium: Any, tmp_path: Path) -> None:
    report = _write(tmp_path, [])

    def steps(page: Any, seen: Any) -> None:
        page.goto(report.as_uri())
        assert "No run is in it yet" in page.inner_text("main")
        assert seen.errors == []

    chromium(steps, **LAPTOP)
