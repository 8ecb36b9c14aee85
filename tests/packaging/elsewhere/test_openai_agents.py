"""Test the recipe for the OpenAI Agents SDK with the agent of the page."""

from __future__ import annotations

from typing import Any

import pytest

from agent_server import Reply, search

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(600)]

SECTION, NAME = "OpenAI Agents SDK", "openai_agents"
PACKAGES = ("openai-agents>=0.24,<1",)
RIGHT, WRONG = "The Louvre is in Paris.", "The Louvre is in Rome."
REPLIES: dict[str, list[Reply]] = {
    "right": [search(), RIGHT],
    "wrong": [search(), WRONG],
    "sourceless": [RIGHT],
    "nothing": ["I don't know."],
    "stream": [search(), WRONG],
}
DRIVER = """
import asyncio
import json

from agents import OutputGuardrailTripwireTriggered, Runner, set_default_openai_api

from openai_agents_recipe import Run
from plugged import ask, guide

set_default_openai_api("chat_completions")  # which the server here speaks


async def said(case):
    try:
        return [await ask(f"{case}: where is the Louvre?"), None]
    except OutputGuardrailTripwireTriggered as error:
        return [None, error.guardrail_result.output.output_info]


async def streamed(case):
    seen = ""
    try:
        run = Runner.run_streamed(guide, f"{case}: where is the Louvre?", context=Run())
        async for event in run.stream_events():
            data = getattr(event, "data", None)
            if getattr(data, "type", "") == "response.output_text.delta":
                seen += data.delta
    except OutputGuardrailTripwireTriggered as error:
        return [seen, error.guardrail_result.output.output_info]


async def main():
    found = {case: await said(case) for case in ("right", "wrong", "sourceless", "nothing")}
    print(json.dumps({**found, "stream": await streamed("stream")}))


asyncio.run(main())
"""


@pytest.mark.parametrize("case", ["right", "nothing"])
def test_an_answer_that_the_tools_support_or_that_states_nothing_passes(
    told: dict[str, Any], case: str
) -> None:
    assert told[case]["said"] == [REPLIES[case][-1], None]


def test_a_wrong_answer_trips_the_guardrail_with_the_reasons(told: dict[str, Any]) -> None:
    answer, reasons = told["wrong"]["said"]
    assert answer is None
    assert "Contradicted by the sources: The Louvre is in Rome." in reasons
    assert "opened as a museum in 1793" in reasons
    assert len(told["wrong"]["requests"]) == 2


def test_an_answer_without_sources_trips_it(told: dict[str, Any]) -> None:
    answer, reasons = told["sourceless"]["said"]
    assert answer is None
    assert "could not decide about it (no contexts)" in reasons


def test_a_stream_leaves_before_the_check_as_the_page_says(told: dict[str, Any]) -> None:
    seen, reasons = told["stream"]["said"]
    assert seen == WRONG
    assert "Contradicted by the sources" in reasons
