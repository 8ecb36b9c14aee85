"""Test what a notebook shows in real Chromium: links, keyboard, colours, hostile texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from demur import Claim, ClaimLabel, Evaluation, Evidence, Span
from demur.guard import Attempt
from demur.observe import Record
from support.records import (
    HOSTILE,
    WRONG,
    attempt,
    found,
    guarded,
    hostile,
    refuted,
    run,
    undetermined,
)

pytestmark = pytest.mark.browser

BEFORE = "It rises in the Black Forest, and runs through ten countries. " * 40
FACT = "The Danube is 2,850 km long."
GOOD = ClaimLabel.ENTAILMENT


def _proof(label: ClaimLabel) -> Evidence:
    span = Span(start=len(BEFORE), end=len(BEFORE) + len(FACT))
    return Evidence(context=0, span=span, text=FACT, label=label)


def _claim(said: str, label: ClaimLabel | None, *evidence: Evidence) -> Claim:
    at = WRONG.index(said)
    span = Span(start=at, end=at + len(said))
    triplet = ("a", "b", "c")
    return Claim(text=said, triplet=triplet, span=span, label=label, evidence=evidence)


def _evaluation() -> Evaluation:
    return refuted(
        claims=(
            _claim("4,000 km", ClaimLabel.CONTRADICTION, _proof(ClaimLabel.CONTRADICTION)),
            _claim("the mayor", ClaimLabel.NEUTRAL),
            _claim("Danube", ClaimLabel.ENTAILMENT, _proof(ClaimLabel.ENTAILMENT)),
            _claim("of Ulm", None).model_copy(update={"error": "unread"}),
        )
    )


def _record() -> Record:
    contexts = (BEFORE + FACT + BEFORE, BEFORE)
    first = attempt(_evaluation(), answer=WRONG, contexts=contexts)
    second = attempt(undetermined(), origin="feedback", feedback=guarded().attempts[1].feedback)
    return run(first, second, outcome="recovered", reason="it held", tags=("prod",))


def _cited() -> Attempt:
    """Return an answer with sources, from which a sentence was removed."""
    proof = Evidence(context=0, span=Span(start=0, end=len(FACT)), text=FACT, label=GOOD)
    claim = Claim(text=FACT, span=Span(start=0, end=len(FACT)), label=GOOD, evidence=(proof,))
    judged = found(claims=(claim,))
    return attempt(judged, answer=FACT, contexts=(FACT,), removed=("It is red.",))


@pytest.fixture
def page_of(tmp_path: Path) -> Callable[..., str]:
    """Return a function that writes a page with views as in a notebook, and gives its address."""

    def write(*views: Any, body: str = "", below: str = "") -> str:
        html = "\n".join(view._repr_html_() for view in views)
        path = tmp_path / "page.html"
        head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>A notebook</title>'
        narrow = '<meta name="viewport" content="width=device-width">'
        path.write_text(f"{head}{narrow}<body {body}>{html}{below}", encoding="utf-8")
        return path.as_uri()

    return write


# --- Links ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1280, 390])
def test_a_click_on_a_claim_leads_to_its_evidence_and_back(
    chromium: Any, page_of: Callable[..., str], width: int
) -> None:
    address = page_of(_record())

    def steps(page: Any, seen: Any) -> None:
        page.goto(address)
        page.click("a.demur-mark.demur-bad")
        target = page.locator(":target")
        assert target.count() == 1
        assert (target.evaluate("e => e.tagName"), target.inner_text()) == ("MARK", FACT)
        assert _in_view(page, ":target")
        assert _style(target, "outline-style") == "solid"
        page.click("mark + .demur-note.demur-bad a")
        target = page.locator(":target")
        assert target.evaluate("e => e.tagName") == "LI"
        assert "4,000 km" in target.inner_text()
        assert _in_view(page, ":target")
        target.locator(".demur-number a").click()
        assert page.locator(":target").inner_text() == "4,000 km"
        assert _in_view(page, ":target")
        # A mark without evidence leads to the list.
        page.click("a.demur-mark.demur-doubt")
        assert "the mayor" in page.locator("li:target").inner_text()
        assert seen.errors == []
        assert [one.partition("#")[0] for one in seen.requests] == [address]

    chromium(steps, viewport={"width": width, "height": 700})


# --- Looks ----------------------------------------------------------------------------------------


def test_every_text_can_be_read_in_light_and_dark(
    chromium: Any, page_of: Callable[..., str], contrasts: str
) -> None:
    address = page_of(_record())

    def steps(page: Any, seen: Any) -> None:
        page.goto(address)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            for pointed in (None, "li.demur-bad", "li.demur-doubt", "li.demur-open"):
                if pointed:
                    page.hover(pointed)
                told = page.evaluate(contrasts)
                kinds = {kind for kinds, _ in told for kind in kinds.split()}
                assert {f"demur-{one}" for one in ("good", "doubt", "bad", "open")} <= kinds
                assert [one for one in told if one[0] != "line" and one[1] < 4.5] == []
                assert [ratio for kind, ratio in told if kind == "line" and ratio < 3] == []

    chromium(steps, viewport={"width": 1280, "height": 900})


def test_a_notebooks_theme_goes_before_the_systems(
    chromium: Any, page_of: Callable[..., str]
) -> None:
    address = page_of(_record())

    def steps(page: Any, seen: Any) -> None:
        page.goto(address)
        for scheme, name, value, ground in (
            ("light", "class", "", "light"),
            ("dark", "class", "", "dark"),
            ("light", "data-jp-theme-light", "false", "dark"),
            ("dark", "data-jp-theme-light", "true", "light"),
            ("light", "class", "vscode-dark", "dark"),
        ):
            page.emulate_media(color_scheme=scheme)
            page.evaluate(
                """([name, value]) => {
                    for (const one of document.body.getAttributeNames())
                        document.body.removeAttribute(one)
                    document.body.setAttribute(name, value)
                }""",
                [name, value],
            )
            colour = _style(page.locator(".demur"), "background-color")
            assert (colour == "rgb(255, 255, 255)") == (ground == "light"), (scheme, name, value)

    chromium(steps)


def test_labels_differ_by_sign_word_and_line_and_not_by_colour_alone(
    chromium: Any, page_of: Callable[..., str]
) -> None:
    address = page_of(attempt(_evaluation(), answer=WRONG, contexts=(FACT,)))

    def steps(page: Any, seen: Any) -> None:
        page.goto(address)
        marks = page.locator("a.demur-mark").all()
        for forced in (False, True):
            page.emulate_media(forced_colors="active" if forced else "none")
            lines = {_style(one, "text-decoration-style") for one in marks}
            assert lines == {"solid", "dotted", "wavy", "dashed"}
        labels = page.locator("li .demur-label").all_inner_texts()
        assert labels == ["✗ Contradiction", "○ Neutral", "✓ Entailment", "? no label"]

    chromium(steps)


def test_a_view_keeps_to_its_width(chromium: Any, page_of: Callable[..., str]) -> None:
    long = attempt(found(explanation="x" * 900), answer="y" * 900, contexts=("z" * 5_000,))
    address = page_of(_record(), long, hostile())

    def steps(page: Any, seen: Any) -> None:
        page.goto(address)
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("() => document.documentElement.scrollWidth") <= width
            references = page.locator(".demur-references").first.bounding_box()
            answer = page.locator(".demur-answer").first.bounding_box()
            beside = references["x"] >= answer["x"] + answer["width"]
            assert beside == (width == 1280)

    chromium(steps)


def test_the_style_leaves_the_rest_of_the_notebook_alone(
    chromium: Any, page_of: Callable[..., str]
) -> None:
    below = '<div id="x"><p>p</p><a href="#">a</a><mark>m</mark><ol><li>l</li></ol></div>'
    address = page_of(_record(), _cited(), below=below)
    all_styles = (
        "() => [...document.querySelectorAll('#x, #x *')].map(e => "
        "[...getComputedStyle(e)].map(n => n + getComputedStyle(e).getPropertyValue(n)).join())"
    )

    def steps(page: Any, seen: Any) -> None:
        page.goto(address)
        styled = page.evaluate(all_styles)
        page.evaluate("() => document.querySelectorAll('style').forEach(e => e.disabled = true)")
        assert page.evaluate(all_styles) == styled
        assert len(styled) == 6

    chromium(steps)


# --- Hostile texts --------------------------------------------------------------------------------


def test_hostile_texts_do_nothing(chromium: Any, page_of: Callable[..., str]) -> None:
    attack = "</style></details><img src=x onerror=\"document.title='run'\"><script>document.title"
    attack += "='run'</script>" + HOSTILE
    claim = Claim(
        text=attack, label=ClaimLabel.CONTRADICTION, span=Span(start=0, end=len(attack) // 2)
    )
    judged = found(attack, 0.5, False, label=attack, explanation=attack, claims=(claim,))
    views = (
        hostile(),
        judged,
        attempt(
            judged, undetermined(why=attack), answer=attack, question=attack, contexts=[attack]
        ),
    )
    address = page_of(*views)

    def steps(page: Any, seen: Any) -> None:
        page.on("dialog", lambda dialog: seen.errors.append(dialog.message))
        page.goto(address)
        page.click("a.demur-mark")
        names = set(
            page.evaluate("() => [...document.body.querySelectorAll('*')].map(e => e.localName)")
        )
        assert not names & {"img", "script", "svg", "iframe", "b"}
        assert page.locator("*[onerror], *[onload]").count() == 0
        assert page.title() == "A notebook"
        assert (
            "</style></details><img src=x onerror"
            in page.locator(".demur-answer").last.inner_text()
        )
        assert seen.errors == []
        assert [one.partition("#")[0] for one in seen.requests] == [address]

    chromium(steps)


def _in_view(page: Any, css: str) -> bool:
    script = """css => {
      const e = document.querySelector(css).getBoundingClientRect()
      const [line] = document.querySelector(css).getClientRects()
      const above = document.elementFromPoint(line.left + 3, line.top + line.height / 2)
      return above !== null && e.top >= 0 && e.bottom <= innerHeight
        && document.querySelector(css).contains(above)
    }"""
    return bool(page.evaluate(script, css))


def _style(located: Any, name: str) -> str:
    found: str = located.evaluate("(e, name) => getComputedStyle(e).getPropertyValue(name)", name)
    return found
