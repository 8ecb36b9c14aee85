"""Test the recipe for Pydantic AI with the agent of the page."""

from __future__ import annotations

from typing import Any

import pytest

from agent_server import Reply, search

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(600)]

SECTION, NAME = "Pydantic AI", "pydantic"
PACKAGES = ("pydantic-ai-slim[openai]>=2.66,<3",)
RIGHT, WRONG = "The Louvre is in Paris.", "The Louvre is in Rome."
REPLIES: dict[str, list[Reply]] = {
    "right": [search(), RIGHT],
    "mended": [search(), WRONG, RIGHT],
    "wrong": [search(), WRONG],
    "sourceless": [RIGHT],
    "nothing": ["I don't know."],
    "right_stream": [search(), RIGHT],
    "wrong_stream": [search(), WRONG],
    "events": [search(), WRONG, RIGHT],
}
DRIVER = """
import asyncio
import json

from pydantic_ai import PartDeltaEvent, PartStartEvent, UnexpectedModelBehavior

from plugged import guide


def question(case):
    return f"{case}: where is the Louvre?"


async def said(case):
    try:
        return [(await guide.run(question(case))).output, None]
    except UnexpectedModelBehavior as error:
        return [None, str(error.__cause__)]


async def streamed(case):
    seen = ""
    try:
        async with guide.run_stream(question(case)) as run:
            async for seen in run.stream_text(debounce_by=None):
                pass
            return [seen, await run.get_output(), None]
    except UnexpectedModelBehavior as error:
        return [seen, None, str(error)]


async def events(case):
    seen = ""
    async with guide.run_stream_events(question(case)) as coming:
        async for event in coming:
            if isinstance(event, PartStartEvent) and event.part.part_kind == "text":
                seen += event.part.content
            if isinstance(event, PartDeltaEvent) and event.delta.part_delta_kind == "text":
                seen += event.delta.content_delta
    return seen


async def main():
    cases = ("right", "mended", "wrong", "sourceless", "nothing")
    found = {case: await said(case) for case in cases}
    streams = {case: await streamed(case) for case in ("right_stream", "wrong_stream")}
    print(json.dumps({**found, **streams, "events": await events("events")}))


asyncio.run(main())
"""


@pytest.mark.parametrize("case", ["right", "nothing"])
def test_an_answer_that_the_tools_support_or_that_states_nothing_passes(
    told: dict[str, Any], case: str
) -> None:
    assert told[case]["said"] == [REPLIES[case][-1], None]
    assert len(told[case]["requests"]) == len(REPLIES[case])


def test_a_wrong_answer_is_answered_again_with_the_reasons(told: dict[str, Any]) -> None:
    assert told["mended"]["said"] == [RIGHT, None]
    *_, last = told["mended"]["requests"]
    reasons = str(last["messages"][-1]["content"])
    assert "Contradicted by the sources: The Louvre is in Rome." in reasons
    assert "<findings-" in reasons


def test_after_the_retries_an_error_has_the_reasons(told: dict[str, Any]) -> None:
    answer, reasons = told["wrong"]["said"]
    assert answer is None
    assert "Contradicted by the sources: The Louvre is in Rome." in reasons
    assert len(told["wrong"]["requests"]) == 4  # the search, and three answers


def test_an_answer_without_sources_never_passes(told: dict[str, Any]) -> None:
    answer, reasons = told["sourceless"]["said"]
    assert answer is None
    assert "could not decide about it (no contexts)" in reasons


def test_a_stream_leaves_before_the_check_as_the_page_says(told: dict[str, Any]) -> None:
    assert told["right_stream"]["said"] == [RIGHT, RIGHT, None]
    seen, answer, reason = told["wrong_stream"]["said"]
    assert (seen, answer) == (WRONG, None)
    assert "retries are not supported" in reason
    assert told["events"]["said"] == WRONG + RIGHT
