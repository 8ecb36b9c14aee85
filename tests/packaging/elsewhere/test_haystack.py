"""Test the recipe for Haystack in the pipeline of the page."""

from __future__ import annotations

from typing import Any

import pytest

from agent_server import Reply

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(600)]

SECTION, NAME = "Haystack", "haystack"
PACKAGES = ("haystack-ai>=3.4,<4",)
RIGHT, WRONG = "The Louvre is in Paris.", "The Louvre is in Rome."
REPLIES: dict[str, list[Reply]] = {
    "right": [RIGHT],
    "mended": [WRONG, RIGHT],
    "wrong": [WRONG],
    "nothing": ["I don't know."],
    "stream": [WRONG, RIGHT],
    "sourceless": [RIGHT],
}
DRIVER = """
import json

from haystack import Document
from haystack.core.errors import PipelineMaxComponentRuns
from haystack.dataclasses import ChatMessage

from haystack_recipe import HallucinationCheck
from plugged import ask, pipeline, store


def said(case):
    try:
        return [ask(f"{case}: where is the Louvre?"), None]
    except PipelineMaxComponentRuns as error:
        return [None, str(error)]


found = {case: said(case) for case in ("right", "mended", "wrong", "nothing")}
seen = []
pipeline.get_component("llm").streaming_callback = lambda chunk: seen.append(chunk.content)
streamed = said("stream")
found["stream"] = ["".join(seen), *streamed]
pipeline.get_component("llm").streaming_callback = None
store.delete_documents([one.id for one in store.filter_documents()])
found["sourceless"] = said("sourceless")

two = [ChatMessage.from_assistant(f"The Louvre is in {place}.") for place in ("Paris", "Rome")]
source = Document(content="The Louvre, in Paris, opened as a museum in 1793.")
passed = HallucinationCheck().run(replies=two, messages=[], documents=[source])
found["several"] = [one.text for one in passed["replies"]]
print(json.dumps(found))
"""


@pytest.mark.parametrize("case", ["right", "nothing"])
def test_a_reply_that_the_documents_support_or_that_states_nothing_passes(
    told: dict[str, Any], case: str
) -> None:
    assert told[case]["said"] == [REPLIES[case][0], None]
    assert len(told[case]["requests"]) == 1


def test_a_wrong_reply_is_replied_again_with_the_reasons(told: dict[str, Any]) -> None:
    assert told["mended"]["said"] == [RIGHT, None]
    asked, again = told["mended"]["requests"]
    *before, reply, reasons = again["messages"]
    assert before == asked["messages"]
    assert reply["content"] == WRONG
    assert "Contradicted by the sources: The Louvre is in Rome." in str(reasons["content"])
    assert "<findings-" in str(reasons["content"])


@pytest.mark.parametrize("case", ["wrong", "sourceless"])
def test_after_the_runs_an_error_is_raised(told: dict[str, Any], case: str) -> None:
    answer, reason = told[case]["said"]
    assert answer is None
    assert "Maximum run count 3 reached" in reason
    assert len(told[case]["requests"]) == 3


def test_the_reason_of_a_reply_without_sources_is_told(told: dict[str, Any]) -> None:
    *_, last = told["sourceless"]["requests"]
    assert "could not decide about it (no contexts)" in str(last["messages"][-1]["content"])


def test_of_several_replies_the_one_that_was_checked_passes(told: dict[str, Any]) -> None:
    assert told["several"]["said"] == [RIGHT]


def test_a_stream_leaves_before_the_check_as_the_page_says(told: dict[str, Any]) -> None:
    assert told["stream"]["said"] == [WRONG + RIGHT, RIGHT, None]
