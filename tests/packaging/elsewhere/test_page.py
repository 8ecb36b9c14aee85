"""Test the files of docs/elsewhere.md without the frameworks that they are for."""

from __future__ import annotations

import contextlib
import io

import pytest

from support.pages import DOCS, Fence, fences

*RECIPES, OTHER = fences(DOCS / "elsewhere.md", "python")


def test_there_are_six_recipes() -> None:
    assert [fence.section for fence in RECIPES] == [
        *("LiteLLM proxy", "OpenAI Agents SDK", "Pydantic AI", "Haystack", "DSPy", "CrewAI")
    ]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda fence: fence.section)
def test_a_recipe_is_short_and_can_be_compiled(recipe: Fence) -> None:
    lines = recipe.text.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    compile(recipe.text, recipe.section, "exec")


@pytest.mark.slow
def test_the_lines_for_any_other_framework_print_what_the_page_says() -> None:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(OTHER.text, OTHER.section, "exec"), {})  # noqa: S102  # The page is ours.
    assert printed.getvalue() == OTHER.printed
