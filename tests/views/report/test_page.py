"""Test the page as a file: what it holds, what it cannot hold, and when it is written."""

from __future__ import annotations

import base64
import gzip
import json
import re
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape

from demur import Evaluation, Failure, Threshold
from demur._text import harmless
from demur.errors import MissingExtraError
from demur.observe.log import LogError, Totals, open_log, summarise
from demur.views import record_html
from demur.views.report import write_report
from demur.views.report.embedding import digest
from demur.views.report.page import Written
from support.logs import FORMS, RUNS
from support.logs import written as made
from support.records import (
    attempt,
    found,
    guarded,
    hostile,
    jsonl,
    nothing_to_check,
    refuted,
    run,
    scored,
    sqlite,
)
from support.records import undetermined as undecided


class Page(HTMLParser):
    """Parse a page as a browser would."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.text = path.read_text(encoding="utf-8")
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.words: list[str] = []
        self._inside = ""
        self.feed(self.text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif self._inside != "style":
            self.words.append(data)

    @property
    def said(self) -> str:
        return " ".join(" ".join(self.words).split())

    def data(self, id: str) -> Any:
        return json.loads(next(text for given, text in self.scripts if given.get("id") == id))

    @property
    def details(self) -> list[str]:
        return [
            one
            for given, text in self.scripts
            if given.get("type") == "text/plain"
            for one in json.loads(gzip.decompress(base64.b64decode(text)))
        ]


@pytest.fixture(autouse=True)
def _nothing_drawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the figures out, which take the most time, except where a test looks at them."""
    if not request.node.get_closest_marker("slow"):
        monkeypatch.setattr("vl_convert.vegalite_to_svg", lambda picture: "")


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., tuple[Page, Written]]:
    def write(records: Any, **given: Any) -> tuple[Page, Written]:
        out = tmp_path / "report.html"
        with open_log(jsonl(tmp_path / "log.jsonl", records)) as log:
            written = write_report(log, out, **given)
        return Page(out), written

    return write


# -- what it holds ---------------------------------------------------------------------------------


def test_every_run_is_in_it_with_its_details(tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    with open_log(sqlite(tmp_path / "log", RUNS)) as log:
        written = write_report(log, out)
        totals = summarise(log)
    page = Page(out)
    assert written == Written(len(RUNS), len(RUNS), (), 0, out.stat().st_size)
    rows = page.data("data")
    assert rows["id"] == [one.id for one in RUNS]
    assert rows["time"] == [round(one.time.timestamp() * 1000) for one in RUNS]
    assert rows["verdict"] == [one.attempts[0].verdict for one in RUNS]
    assert rows["attempts"] == [len(one.attempts) for one in RUNS]
    assert rows["outcome"] == [one.outcome for one in RUNS]
    assert page.details == [str(record_html(one)) for one in RUNS]
    _adds_up(page, rows, totals)


def _adds_up(page: Page, rows: dict[str, Any], totals: Totals) -> None:
    """Assert that the rows add up to what `demur log summary` says of the log."""
    names = re.findall(r'<h3 id="evaluator-\d+">(.*?)</h3>', page.text, re.DOTALL)
    groups = {str(escape(harmless(one.evaluator))): one for one in totals.groups}
    assert len(names) == len(groups) == len(rows["scores"])
    for name, findings, scores in zip(names, rows["findings"], rows["scores"], strict=True):
        group = groups[name]
        assert {one: findings.count(one) for one in group.findings} == group.findings
        known = [one for one in scores if one is not None]
        assert group.mean == (pytest.approx(sum(known) / len(known)) if known else None)
    for verdict, number in totals.verdicts.items():
        assert rows["verdict"].count(verdict) == number
        assert f"{number} {verdict.replace('_', ' ')}" in page.said


def test_labels_are_metadata_or_given(write: Any) -> None:
    runs = [scored(at=at, metadata={"hallucinated": at == 1}) for at in range(3)] + [scored(at=9)]
    page, written = write(runs, labels={runs[0].id: True, "nobody": False})
    assert page.data("data")["label"] == [True, True, False, None]
    assert written.unknown == 1
    assert "1 label belongs to runs that are not here" in page.said
    assert "3 of 4 answers have a label: 2 hallucinated, 1 not" in page.said
    page, _ = write([scored()])
    assert "No answer has a label" in page.said


def test_what_is_wrong_is_counted_by_kind_and_category(write: Any) -> None:
    def failed(failure: Failure) -> Evaluation:
        return found("Whole", 0.0, False, failure=failure)

    runs = [
        scored(refuted(), failed(Failure.IRRELEVANT), at=0),
        scored(refuted(), failed(Failure.SELF_CONTRADICTION), at=1),
        scored(found(), failed(Failure.IRRELEVANT), failed(Failure.VAGUE), at=2),
        scored(found(), at=3),
        run(attempt(nothing_to_check(), verdict="failed"), at=4),
        run(attempt(undecided()), at=5),
        guarded(found(), failed(Failure.MISMATCH), at=6),  # Only the first answer has this failure.
        scored(failed(Failure.OTHER), at=7),
    ]
    page, _ = write(runs)
    assert re.search(
        "2 contradicts a reference 25.0 % 2 unsupported 25.0 % 2 irrelevant or nonsensical 25.0 % "
        "1 contradicts itself 12.5 %",
        page.said,
    )
    assert _table(page, "What is wrong") == [
        ["a claim is not in the references", "unsupported", "2", "25.0 %"],
        ["a reference contradicts a claim", "contradicts a reference", "2", "25.0 %"],
        ["it does not address the question", "irrelevant or nonsensical", "2", "25.0 %"],
        ["it would fit other questions too", "irrelevant or nonsensical", "1", "12.5 %"],
        ["one part of it rules out another", "contradicts itself", "1", "12.5 %"],
        ["it states nothing to check", "–", "1", "12.5 %"],
        ["it is rejected without a kind", "–", "1", "12.5 %"],
    ]
    page, _ = write([scored()])
    assert "What is wrong" not in page.said


def _table(page: Page, caption: str) -> list[list[str]]:
    """Return the cells of a table's body."""
    (body,) = re.findall(rf">{caption}</caption>.*?<tbody>(.*?)</tbody>", page.text, re.DOTALL)
    rows = re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]


@pytest.mark.parametrize("form", FORMS)
def test_of_a_large_log_the_sums_are_of_all_and_the_answers_of_the_newest(
    form: str, tmp_path: Path, request: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("demur.views.report.page.MOST", 20)
    out = tmp_path / "report.html"
    with open_log(made(form, tmp_path, RUNS, request)) as log:
        written = write_report(log, out, labels={RUNS[0].id: True, RUNS[-1].id: False})
        totals = summarise(log)
    page = Page(out)
    assert (written.rows, written.runs, written.unknown) == (20, len(RUNS), 1)
    assert page.data("data")["id"] == [one.id for one in RUNS[-20:]]
    assert f"{len(RUNS)} runs from 2026-11-20" in page.said
    assert (
        f"Quality and cost are of all {len(RUNS)} runs. The thresholds, the charts and the list of "
        "answers are of the newest 20."
    ) in page.said
    assert page.said.count("Of the newest 20 runs.") == 2
    for verdict, number in totals.verdicts.items():
        assert f"{number} {verdict.replace('_', ' ')}" in page.said
    quality = _table(page, "What each evaluator found")
    assert {row[0]: row[1] for row in quality} == {
        str(escape(harmless(group.evaluator))): f"{group.judged:,}" for group in totals.groups
    }
    wrong = _table(page, "What is wrong")
    assert sorted(int(row[2]) for row in wrong) == sorted(totals.failures.values())
    assert "1 of 20 answers has a label" in page.said


def test_prices_are_of_a_million_tokens(write: Any) -> None:
    usage = {"calls": 1, "input_tokens": 2_000_000, "output_tokens": 500_000, "seconds": 1.0}
    one = run(scored(found(usage=usage)).attempts[0])
    page, _ = write([one], prices=(0.5, 4.0))
    assert re.search(r"judging: RefChecker 1 0 2,000,000 500,000 1.0 3.00", page.said)
    assert "Prices: 0.5 for a million tokens in, 4 for a million out" in page.said
    page, _ = write([one])
    assert "Prices" not in page.said


@pytest.mark.slow
def test_a_threshold_is_marked_where_it_belongs(write: Any) -> None:
    given = Threshold(
        on_abstain="pass",
        value=0.4,
        method="percentile",
        percentile=10,
        evaluator="B",
        fingerprints={"model": "m"},
        samples=10,
        passed=9,
    )
    ones = [found(name, at / 10, None) for at in range(10) for name in ("A", "B")]
    runs = [scored(*ones[at * 2 : at * 2 + 2], at=at) for at in range(10)]
    page, _ = write(runs, threshold=given)
    lines = re.findall(r"(?:chosen|given)_marks(?=\")|chart-\d-scores(?=\")", page.text)
    assert lines == [
        *("chart-0-scores", "chosen_marks"),
        *("chart-1-scores", "chosen_marks", "given_marks"),
    ]
    assert page.said.count("Threshold 0.4.") == 1
    assert "was not chosen for such scores" in page.said
    nobody = given.model_copy(update={"evaluator": "C"})
    page, _ = write(runs, threshold=nobody)
    assert "The threshold is for C, which has no scores here" in page.said
    page, _ = write(runs, threshold=given.model_copy(update={"evaluator": None}))
    assert "does not say which evaluator" in page.said


# -- small logs ------------------------------------------------------------------------------------


def test_an_empty_log_is_a_report_that_says_so(write: Any) -> None:
    page, written = write([])
    assert (written.rows, written.runs) == (0, 0)
    assert "No run is in it yet" in page.said
    assert written.bytes < 100_000
    assert sum("type" not in given for given, _ in page.scripts) == 0


@pytest.mark.parametrize(
    "runs",
    [
        [scored(undecided())],
        [scored(nothing_to_check())],
        [scored(found(score=None))],
        [scored(found(score=-1e300)), scored(found(score=1e300), at=1)],
        [scored(model=None, name=None)],
    ],
)
def test_little_or_odd_things_are_shown_too(runs: Any, write: Any) -> None:
    page, written = write(runs)
    assert written.rows == len(runs) == len(page.details)
    for given, text in page.scripts:
        if given.get("type") == "application/json":
            json.loads(text, parse_constant=lambda name: pytest.fail(name))


def test_damaged_runs_are_left_out_and_told(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "log.jsonl", RUNS[:3])
    path.write_bytes(path.read_bytes() + b'{"id": 1}\n' + RUNS[3].as_json().encode() + b'\n{"to')
    with open_log(path) as log:
        written = write_report(log, tmp_path / "a.html")
        assert (written.rows, len(written.damaged)) == (4, 2)
        assert "2 runs cannot be read and are left out. line 4:" in Page(tmp_path / "a.html").said
        written = write_report(log, tmp_path / "a.html", last=2)
        assert (written.rows, len(written.damaged)) == (2, 2)
        assert "These are the newest 2 of 4 runs." in Page(tmp_path / "a.html").said


# -- what it cannot hold ---------------------------------------------------------------------------

NASTY = '</script><script>x=1</script><img src=x onerror="x=1"><!--\u2028\x00\u202e</style>{{7*7}}'


def test_hostile_texts_stay_texts(write: Any) -> None:
    plain, _ = write([scored(refuted(label="a"), metadata={"hallucinated": True})])
    bad = refuted(NASTY, label=NASTY, explanation=NASTY, fingerprints={NASTY: NASTY})
    other = refuted(NASTY, fingerprints={NASTY: "2"})
    nasty = scored(
        bad, answer=NASTY, id=NASTY, model=NASTY, name=NASTY, metadata={"hallucinated": True}
    )
    page, _ = write(
        [nasty, scored(other, at=1), hostile(at=2)],
        title=f"{NASTY}\ud800",  # a lone surrogate, which no file can hold
        labels={NASTY: False, NASTY + "2": True},
    )
    allowed = {name for name, _ in plain.elements} | {"p", "li", "ul", "b", "select", "option"}
    assert {name for name, _ in page.elements} <= allowed
    attributes = {key for _, given in plain.elements for key in given}
    assert {key for _, given in page.elements for key in given} <= attributes | {"title"}
    assert not any(key.startswith("on") for _, given in page.elements for key in given)
    kinds = [given.get("type") for given, _ in page.scripts]
    assert kinds.count(None) == 1
    assert set(kinds) == {None, "application/json", "text/plain"}
    assert page.data("data")["id"][0] == NASTY
    for raw in ("\x00", "\u202e", "\x1b"):
        assert raw not in page.text
    assert "{{7*7}}" in page.said


def test_only_its_own_scripts_may_run(write: Any) -> None:
    page, _ = write(RUNS[:3])
    (policy,) = [
        given["content"]
        for name, given in page.elements
        if name == "meta" and given.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-inline" not in policy.partition("style-src")[0]
    (code,) = [text for given, text in page.scripts if "type" not in given]
    assert digest(code) in policy
    assert policy.count("sha256-") == 1


# -- when it is written ----------------------------------------------------------------------------


def test_what_fails_leaves_the_page_that_was_there(tmp_path: Path, monkeypatch: Any) -> None:
    out = tmp_path / "a.html"
    out.write_text("before")

    def fail(record: object) -> str:
        raise LogError("no")

    with open_log(jsonl(tmp_path / "log", RUNS[:2])) as log:
        monkeypatch.setattr("demur.views.report.page.record_html", fail)
        with pytest.raises(LogError):
            write_report(log, out)
    assert out.read_text() == "before"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.html", "log"]


def test_bad_arguments_are_refused(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "log", RUNS[:2])
    with open_log(path) as log:
        with pytest.raises(ValueError, match="is the log itself"):
            write_report(log, path)
        with pytest.raises(ValueError, match="is no ordinary file"):
            write_report(log, tmp_path)
        with pytest.raises(ValueError, match="last: expected at least 1, got 0"):
            write_report(log, tmp_path / "a.html", last=0)
        for prices in ((-1.0, 1.0), (0.0, float("nan")), (float("inf"), 0.0)):
            with pytest.raises(ValueError, match="prices: expected numbers"):
                write_report(log, tmp_path / "a.html", prices=prices)
        with pytest.raises(OSError, match="nowhere"):
            write_report(log, tmp_path / "nowhere" / "a.html")
    assert [one.name for one in tmp_path.iterdir()] == ["log"]


@pytest.mark.parametrize("package", ["jinja2", "vl_convert"])
def test_what_is_not_installed_is_named(package: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    missing = pytest.raises(MissingExtraError, match=r"demur\[cli\]")
    with open_log(jsonl(tmp_path / "log", RUNS[:2])) as log, missing:
        write_report(log, tmp_path / "a.html")
