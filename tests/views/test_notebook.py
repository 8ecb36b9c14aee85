"""Test that the style sheet affects only the view, and that a notebook gets it with the view."""

from __future__ import annotations

import re

from demur import ClaimLabel
from demur.views import stylesheet
from demur.views.elements import Element
from support.records import scored

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


def test_a_notebook_gets_style_and_view_as_plain_text() -> None:
    html = scored()._repr_html_()
    assert type(html) is str
    assert not isinstance(html, Element)
    assert html.startswith(f"<style>{stylesheet()}</style><article ")
