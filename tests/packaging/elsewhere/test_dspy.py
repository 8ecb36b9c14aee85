"""Test the recipe for DSPy with the functions of the page."""

from __future__ import annotations

from typing import Any

import pytest

from agent_server import Reply

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(600)]

SECTION, NAME = "DSPy", "dspy"
PACKAGES = ("dspy>=3.4,<4",)
RIGHT, WRONG = "The Louvre is in Paris.", "The Louvre is in Rome."


def filled(answer: str) -> str:
    """Return an answer in the form in which DSPy's adapter asks for it."""
    fields = {"reasoning": "It is known.", "answer": answer, "completed": ""}
    return "\n\n".join(f"[[ ## {name} ## ]]\n{text}" for name, text in fields.items())


def replies(*answers: str) -> list[Reply]:
    return [filled(answer) for answer in answers]


REPLIES: dict[str, list[Reply]] = {
    "right": replies(RIGHT),
    "mended": replies(WRONG, RIGHT),
    "wrong": replies(WRONG),
    "nothing": replies("I don't know."),
    "sourceless": replies(RIGHT),
    "scored_right": replies(RIGHT),
    "scored_wrong": replies(WRONG),
    "bootstrapped": replies(WRONG),
    "stream": replies(WRONG, RIGHT),
}
DRIVER = '''
import asyncio
import json

import dspy

import plugged
from dspy_recipe import Refined, supported

WHERE = ": where is the Louvre?"
ANSWER = "passages: list[str], question -> answer"


def said(case):
    try:
        return [plugged.ask(case + WHERE), None]
    except ValueError as error:
        return [None, str(error)]


def examples(threshold):
    """Return how many examples an optimizer makes of a program whose answer is wrong."""
    row = dspy.Example(passages=plugged.passages, question="bootstrapped" + WHERE)
    optimizer = dspy.BootstrapFewShot(
        metric=supported, metric_threshold=threshold, max_labeled_demos=0
    )
    made = optimizer.compile(
        dspy.Predict(ANSWER), trainset=[row.with_inputs("passages", "question")]
    )
    return len(made.demos)


async def streamed(case):
    seen, answer = "", None
    listener = dspy.streaming.StreamListener("answer", allow_reuse=True)
    program = dspy.streamify(Refined(), stream_listeners=[listener])
    async for part in program(passages=plugged.passages, question=case + WHERE):
        if isinstance(part, dspy.streaming.StreamResponse):
            seen += part.chunk
        if isinstance(part, dspy.Prediction):
            answer = part.answer
    return [seen, answer]


found = {case: said(case) for case in ("right", "mended", "wrong", "nothing")}
for case in ("scored_right", "scored_wrong"):
    found[case] = plugged.score(dspy.Predict(ANSWER), case + WHERE)
found["bootstrapped"] = [examples(None), examples(1)]
found["stream"] = asyncio.run(streamed("stream"))
plugged.passages.clear()
found["sourceless"] = said("sourceless")
print(json.dumps(found))
'''


@pytest.mark.parametrize(("case", "answer"), [("right", RIGHT), ("nothing", "I don't know.")])
def test_an_answer_that_the_passages_support_or_that_states_nothing_passes(
    told: dict[str, Any], case: str, answer: str
) -> None:
    assert told[case]["said"] == [answer, None]
    assert len(told[case]["requests"]) == 1


def test_a_wrong_answer_is_answered_again_with_the_reasons(told: dict[str, Any]) -> None:
    assert told["mended"]["said"] == [RIGHT, None]
    asked, again = [str(one["messages"][-1]["content"]) for one in told["mended"]["requests"]]
    assert "Contradicted by the sources" not in asked
    assert "Contradicted by the sources: The Louvre is in Rome." in again
    assert "<findings-" in again


def test_after_the_tries_an_error_has_the_reasons(told: dict[str, Any]) -> None:
    answer, reasons = told["wrong"]["said"]
    assert answer is None
    assert "Contradicted by the sources: The Louvre is in Rome." in reasons
    # The prompts of the second and the third try are the same, and no cache replies to the third.
    assert len(told["wrong"]["requests"]) == 3


def test_an_answer_without_sources_never_passes(told: dict[str, Any]) -> None:
    answer, reasons = told["sourceless"]["said"]
    assert answer is None
    assert "could not decide about it (no contexts)" in reasons


def test_the_metric_tells_right_from_wrong(told: dict[str, Any]) -> None:
    assert told["scored_right"]["said"] == 100
    assert told["scored_wrong"]["said"] == 0


def test_an_optimizer_needs_the_threshold_that_the_page_names(told: dict[str, Any]) -> None:
    assert told["bootstrapped"]["said"] == [1, 0]


def test_a_stream_leaves_before_the_check_as_the_page_says(told: dict[str, Any]) -> None:
    seen, answer = told["stream"]["said"]
    assert WRONG in seen
    assert answer == RIGHT
