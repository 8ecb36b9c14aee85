"""Script the endpoint of the pages' examples, which knows that the Louvre did not open in 1851.

The outputs that pages show with it illustrate the form of a result. They say nothing about quality.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages

from support.fakes import isolated, stage_of
from support.openai_server import Answer

ANSWER = "The Louvre is in Paris and opened as a museum in 1793."
WRONG = "1851"
PAIRS = """\
1. Wrong Answer: It opened in 1851.
1. Non-Wrong Answer: It opened in 1793.
2. Wrong Answer: It opened in Rome.
2. Non-Wrong Answer: It opened in Paris.
3. Wrong Answer: It opened as a bank.
3. Non-Wrong Answer: It opened as a museum."""


def serve(request: dict[str, Any], number: int) -> Answer:
    """Answer a request: reject claims and answers with the wrong year, and support all others."""
    messages = convert_to_messages(request["messages"])
    stage = stage_of(messages)
    if request.get("tools") and messages[-1].type == "human":
        return _tool_call(request)
    if stage == "claim":
        label = _label(isolated("claim", messages))
        tokens = {name: -0.01 if name == label else -6.0 for name in ("Entailment", "Neutral")}
        tokens["Contradiction"] = -0.01 if label == "Contradiction" else -6.0
        return Answer(label, first_token=tokens if request.get("logprobs") else None)
    return Answer(_text(stage, messages))


def _tool_call(request: dict[str, Any]) -> Answer:
    """Call the first tool with the question, as an agent's model does before it answers."""
    tool = request["tools"][0]["function"]
    given = {next(iter(tool["parameters"]["properties"])): request["messages"][-1]["content"]}
    call = {
        "index": 0,
        "id": f"call_{len(request['messages'])}",
        "type": "function",
        "function": {"name": tool["name"], "arguments": json.dumps(given)},
    }
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "finish_reason": "tool_calls"}
    head = {"id": "chatcmpl-1", "created": 1, "model": request["model"]}
    if request.get("stream"):
        chunk = {
            **head,
            "object": "chat.completion.chunk",
            "choices": [{**choice, "delta": message}],
        }
        events = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n"
        return Answer(body=events.encode(), headers={"Content-Type": "text/event-stream"})
    whole = {**head, "object": "chat.completion", "choices": [{**choice, "message": message}]}
    return Answer(body=json.dumps(whole).encode())


def _text(stage: str, messages: Sequence[BaseMessage]) -> str:
    asked = "\n".join(str(message.content) for message in messages)
    match stage:
        case "extraction":
            return _triplets(isolated("answer", messages))
        case "joint":
            lines = isolated("claims", messages).splitlines()
            return "\n".join(f"{line.partition('.')[0]}. {_label(line)}" for line in lines)
        case "reference" | "sample":
            return f"1. {ANSWER}\n2. It opened in 1793."
        case "pairs":
            return PAIRS
        case "construction":
            year = WRONG if WRONG in isolated("passage", messages) else "1793"
            return f"Entity: the Louvre\nQuestion: Which museum in Paris opened in {year}?"
        case "access":
            return "unknown" if WRONG in asked else "the Louvre"
        case "relevance":
            return "No." if WRONG in isolated("answer", messages) else "Yes."
        case "self_contradiction":
            return "Consistent"
        case "verdict":
            return "Non-factual." if WRONG in asked else "Factual."
        case "comparison" | "preference":
            return "A"
        case _:
            return ANSWER


def _label(claim: str) -> str:
    return "Contradiction" if WRONG in claim else "Entailment"


def _triplets(answer: str) -> str:
    sentences = [found.split() for found in re.split(r"(?<=[.!?])\s+", answer)]
    rows = [
        (" ".join(words[:2]), " ".join(words[2:-1]), words[-1].rstrip(".!?"))
        for words in sentences
        if len(words) > 3
    ]
    return "\n".join(f'("{a}", "{b}", "{c}")' for a, b, c in rows) or "No claims"
