"""Test that the style sheet affects only the view, and that a notebook gets it with the view."""

from __future__ import annotations

import itertools
import math
import re

import pytest

from demur import Claim, ClaimLabel, Evidence, Span
from demur.edits import cited, places_of
from demur.guard import Attempt, Trace
from demur.views import Element, stylesheet
from support.records import BEGIN, attempt, found, guarded, refuted, run, scored, undetermined

GOOD = ClaimLabel.ENTAILMENT


def _rules() -> list[tuple[str, str]]:
    css = re.sub(r"/\*.*?\*/", "", stylesheet(), flags=re.DOTALL)
    css = re.sub(r"@(media|container)[^{]*\{", "", css).replace("}\n}", "}")
    return [(a.strip(), b) for a, b in re.findall(r"([^{}]+)\{([^{}]*)\}", css)]


def test_every_rule_is_about_our_own() -> None:
    selectors = [one.strip() for heads, _ in _rules() for one in re.split(r",\s*\n", heads)]
    assert len(selectors) > 80
    ours = re.compile(r"(\[data-jp-theme-light=\"\w+\"\] |\.vscode-\w+ )?\.demur(-colors$|[ ,]|$)")
    assert [one for one in selectors if not ours.match(one)] == []


def test_nothing_is_loaded_and_nothing_ends_the_style() -> None:
    css = stylesheet().casefold()
    for bad in ("url(", "@import", "@font-face", "</", "expression(", "http"):
        assert bad not in css
    assert "&" not in css.replace("&amp;", "&amp")  # HTML has no escapes inside a style.


def test_each_theme_sets_the_same_colours() -> None:
    light, dark, jupyter_light, jupyter_dark = _themes()
    assert light == jupyter_light
    assert dark == jupyter_dark
    assert light.keys() == dark.keys()
    assert not set(light.items()) & set(dark.items())


def _themes() -> list[dict[str, str]]:
    found = [dict(re.findall(r"(--demur-[\w-]+): (#\w{6});", body)) for _, body in _rules()]
    return [one for one in found if len(one) > 3]


# The light that is seen with all cones or without one kind, for dichromats: Machado, Oliveira and
# Fernandes 2009.
_SEEN = {
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no long": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "no middle": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "no short": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}


@pytest.mark.parametrize("cones", _SEEN)
@pytest.mark.parametrize("part", ["-soft", "-line"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_differ_for_the_colour_blind(theme: str, part: str, cones: str) -> None:
    found = _themes()[theme == "dark"]
    labs = [_lab(found[f"--demur-{one}{part}"], cones) for one in ("good", "doubt", "bad", "open")]
    # A distance of 2.3 can just be noticed.
    assert min(math.dist(a, b) for a, b in itertools.combinations(labs, 2)) > 7


def _lab(color: str, cones: str) -> tuple[float, float, float]:
    """Return the CIELAB values of a colour as it is seen."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    light = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    r, g, b = (math.fsum(k * v for k, v in zip(row, light, strict=True)) for row in _SEEN[cones])
    xyz = (
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089,
    )
    x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def test_classes_are_styled_and_styles_are_used() -> None:
    proof = Evidence(context=0, span=Span(start=0, end=10), text="The Danube", label=GOOD)
    told = {"label": GOOD, "triplet": ("a", "b", "c"), "span": Span(start=0, end=3)}
    claims = (*(Claim(text="x", evidence=(proof,), **told) for _ in "12"), Claim(text="y"))
    first, second = refuted(), found(claims=claims, explanation="why")
    views = [guarded(first, second, undetermined(), tags=("t",)), scored(redacted=True)]
    longer = attempt(second, contexts=("The Danube " * 100, "new"))
    views.append(run(attempt(first), longer))
    entailed = Claim(text="x", evidence=(proof,), label=GOOD, span=Span(start=0, end=3))
    answer = attempt(found(claims=(entailed,)), removed=("It is red.",))
    views += [answer, _citing(answer)]
    html = "".join(one._repr_html_().partition("</style>")[2] for one in views)
    used = {one for names in re.findall(r'class="([^"]*)"', html) for one in names.split()}
    styled = set(re.findall(r"\.(demur[\w-]*)", stylesheet()))
    assert used ^ styled == {"demur-colors"}


def _citing(answer: Attempt) -> Trace:
    parts = places_of(answer.answer)
    left = cited(answer.answer, parts, answer.evaluations, answer.contexts, "numbers")
    return Trace(
        outcome="trimmed",
        reason="it held",
        attempts=(answer,),
        citations=left.citations,
        usage=answer.usage,
        time=BEGIN,
        seconds=1,
    )


def test_a_notebook_gets_style_and_view_as_plain_text() -> None:
    html = scored()._repr_html_()
    assert type(html) is str
    assert not isinstance(html, Element)
    assert html.startswith(f"<style>{stylesheet()}</style><article ")
