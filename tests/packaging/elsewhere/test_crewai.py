"""Test the recipe for CrewAI with the crew of the page."""

from __future__ import annotations

from typing import Any

import pytest

from agent_server import Reply, search

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(600)]

SECTION, NAME = "CrewAI", "crewai"
PACKAGES = ("crewai>=1.15,<2",)
RIGHT, WRONG = "The Louvre is in Paris.", "The Louvre is in Rome."
ACTION = 'Thought: I look it up.\nAction: search\nAction Input: {"query": "Louvre"}'
FINAL = f"Thought: I now know the final answer.\nFinal Answer: {RIGHT}"
REPLIES: dict[str, list[Reply]] = {
    "right": [search(), RIGHT],
    "mended": [search(), WRONG, search(), RIGHT],
    "from_memory": [search(), WRONG, RIGHT],
    "wrong": [search(), WRONG, search(), WRONG, search(), WRONG],
    "sourceless": [RIGHT],
    "nothing": ["I don't know."],
    "stream": [search(), WRONG, search(), RIGHT],
    "react": [ACTION, FINAL] * 3,
}
DRIVER = """
import json

from crewai import LLM

from plugged import ask, crew, guide


def said(case):
    try:
        return [ask(f"{case}: where is the Louvre?"), None]
    except Exception as error:
        return [None, str(error)]


cases = ("right", "mended", "from_memory", "wrong", "sourceless", "nothing")
found = {case: said(case) for case in cases}

crew.stream = True
run = crew.kickoff(inputs={"question": "stream: where is the Louvre?"})
seen = "".join(chunk.content for chunk in run)
found["stream"] = [seen, run.result.raw]
crew.stream = False

guide.llm = LLM(model="openai/gpt-4o-mini")
type(guide.llm).supports_function_calling = lambda self: False
found["react"] = said("react")
print(json.dumps(found))
"""


@pytest.mark.parametrize("case", ["right", "nothing"])
def test_an_answer_that_the_tools_support_or_that_states_nothing_passes(
    told: dict[str, Any], case: str
) -> None:
    assert told[case]["said"] == [REPLIES[case][-1], None]
    assert len(told[case]["requests"]) == len(REPLIES[case])


def test_a_wrong_answer_is_answered_again_with_the_reasons(told: dict[str, Any]) -> None:
    assert told["mended"]["said"] == [RIGHT, None]
    again = str(told["mended"]["requests"][2]["messages"])
    assert "Contradicted by the sources: The Louvre is in Rome." in again
    assert "<findings-" in again
    # The agent begins again without what its tool returned.
    assert "tool" not in [one["role"] for one in told["mended"]["requests"][2]["messages"]]


@pytest.mark.parametrize("case", ["from_memory", "sourceless", "react"])
def test_an_answer_without_sources_never_passes(told: dict[str, Any], case: str) -> None:
    answer, reasons = told[case]["said"]
    assert answer is None
    assert "could not decide about it (no contexts)" in reasons


def test_after_the_retries_the_task_fails_with_the_reasons(told: dict[str, Any]) -> None:
    answer, reasons = told["wrong"]["said"]
    assert answer is None
    assert "after 2 retries" in reasons
    assert "Contradicted by the sources: The Louvre is in Rome." in reasons
    assert len(told["wrong"]["requests"]) == 6


def test_a_stream_leaves_before_the_check_as_the_page_says(told: dict[str, Any]) -> None:
    seen, answer = told["stream"]["said"]
    assert WRONG in seen
    assert answer == RIGHT
