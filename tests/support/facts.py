"""Answers whose verdict is known by construction, and a judge that knows it from the text alone.

Item `n` is said to be red and to be heavy. Of an even item both is so; of an odd one neither or
only the first, by turns. What the judge replies follows from the request's own text: a reply that
reached the wrong request would make a wrong claim, label or score.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages

from demur import ClaimLabel, Evaluation, Sample
from support.fakes import isolated, stage_of
from support.openai_server import Answer

ATTRIBUTES = ("red", "heavy")
Grade = Literal["right", "partial", "undetermined", "wrong"]
""""partial": the decision and all labels that there are, are right; of the rest the evaluation says
that it is missing, and gives bounds of the score that hold. Anything made up is wrong."""
_FACT = re.compile(rf"Item (\d+) is ({'|'.join(ATTRIBUTES)})")


def sample(number: int) -> Sample:
    """What is judged."""
    return Sample(question=question(number), answer=answer(number), contexts=["A list of items"])


def with_samples(number: int) -> Sample:
    """The same with samples of what is so, as other answers would say it."""
    said = [f"Item {number} is {one}." for one in ATTRIBUTES[: supported(number)]]
    text = " ".join(["That item is on the list.", *said])
    return sample(number).model_copy(update={"metadata": {"samples": [text, f"Yes. {text}"]}})


def answer(number: int) -> str:
    """What is said of an item."""
    return " ".join(f"Item {number} is {attribute}." for attribute in ATTRIBUTES)


def supported(number: int) -> int:
    """How much of it is so."""
    return len(ATTRIBUTES) if number % 2 == 0 else number // 2 % len(ATTRIBUTES)


def truth(number: int, attribute: str) -> ClaimLabel:
    """The label of a claim."""
    holds = ATTRIBUTES.index(attribute) < supported(number)
    return ClaimLabel.ENTAILMENT if holds else ClaimLabel.CONTRADICTION


def expected(number: int) -> list[tuple[str, ClaimLabel]]:
    """The claims of an answer, and their labels."""
    return [(f"Item {number} is {one}", truth(number, one)) for one in ATTRIBUTES]


def grade(number: int, found: Evaluation) -> Grade:
    """How well an evaluation fits what is known of the answer."""
    labels = [claim.label for claim in found.claims]
    if found.undetermined and not labels:
        return "undetermined"
    told = [
        (claim.text.rstrip("."), claim.label or label)  # a sentence as it stands has its stop
        for claim, (_, label) in zip(found.claims, expected(number), strict=False)
    ]
    if told != expected(number):
        return "wrong"
    if found.undetermined:
        return "undetermined"
    share = supported(number) / len(ATTRIBUTES)
    low, high = found.details["score_bounds"]
    missing = None in labels
    if found.passed is not (share == 1) or not low <= share <= high:
        return "wrong"
    if found.score != (None if missing else share):
        return "wrong"
    return "partial" if missing else "right"


def question(number: int) -> str:
    """What is asked of a chain about an item."""
    return f"What is item {number} like?"


def judge(stage: str, messages: Sequence[BaseMessage]) -> str | AIMessage:
    """The script of a model that makes no mistake."""
    if stage == "extraction":
        facts = _FACT.findall(isolated("answer", messages))
        found = [f'("Item {number}", "is", "{what}")' for number, what in facts]
        return "\n".join(found) or "No claims"
    if stage == "joint":
        lines = isolated("claims", messages).splitlines()
        return "\n".join(f"{line.partition('.')[0]}. {_label(line)}" for line in lines)
    if stage in ("reference", "sample", "pairs"):
        return _reference(stage, isolated("question", messages))
    if stage == "construction":
        return _construction(messages)
    if stage == "access":
        return _access(messages)
    if stage in ("verdict", "support"):
        return _judged(stage, messages)
    if stage in ("relevance", "self_contradiction"):
        return _whole(stage, messages)
    if stage in ("examination", "testimony", "more", "conclusion"):
        return _examined(stage, messages)
    claim = isolated("claim", messages)
    # The claims on which the bias is measured are about other things: no label is likelier there.
    label = _label(claim) if _FACT.search(claim) else None
    tokens = {name.value: -0.1 if name is label else -5.0 for name in ClaimLabel}
    top = [{"token": token, "logprob": value} for token, value in tokens.items()]
    metadata = {"logprobs": {"content": [{**top[0], "top_logprobs": top}]}}
    return AIMessage(str(label or ClaimLabel.NEUTRAL), response_metadata=metadata)


def speak(stage: str, messages: Sequence[BaseMessage]) -> str:
    """The script of a chain's model, which is asked about an item."""
    found = re.search(r"[Ii]tem (\d+)", str(messages[-1].content))
    if found is None:
        raise ValueError("that is about no item")
    return answer(int(found[1]))


def serve(request: dict[str, Any], number: int) -> Answer:
    """Both of them, as the script of a server."""
    messages = convert_to_messages(request["messages"])
    stage = stage_of(messages)
    reply = (speak if stage == "chain" else judge)(stage, messages)
    return Answer(reply if isinstance(reply, str) else str(reply.text))


def _reference(stage: str, asked: str) -> str:
    """What a reference says of an item, and wrong and corrected answers that all are alike."""
    (number,) = re.findall(r"item (\d+)", asked)
    if stage != "pairs":
        return f"1. That of item {number} is known.\n2. Item {number} is on the list."
    pairs = (
        f"{at}. Wrong Answer: Item {number} has {at} legs.\n{at}. Non-Wrong Answer: None has {at}."
        for at in range(1, 4)
    )
    return "\n".join(pairs)


def _construction(messages: Sequence[BaseMessage]) -> str:
    """The entity of an answer, and a question or a list that holds all that is said of it."""
    said = _FACT.findall(isolated("passage", messages))
    number, attributes = said[0][0], [attribute for _, attribute in said]
    if str(messages[-1].content).endswith("list:"):
        features = [f"Listed under number {number}", "A thing of this list", *attributes]
        lines = [f"{at}. {feature}" for at, feature in enumerate(features, start=1)]
        return "\n".join([f"Entity: item {number}", *lines])
    features = " and ".join(attributes)
    return (
        f"Entity: item {number}\nQuestion: Which thing listed under number {number} is {features}?"
    )


def _access(messages: Sequence[BaseMessage]) -> str:
    """The item that a query is about, if all of it is so; a list is told how much of it is."""
    listed = str(messages[-1].content).startswith("Requirements")
    query = isolated("requirements" if listed else "question", messages)
    (number,) = re.findall(r"number (\d+)", query)
    held = supported(int(number))
    if listed:
        unmet = " and ".join(str(at + 3) for at in range(held, len(ATTRIBUTES))) or "none"
        share = 100 * held // len(ATTRIBUTES)
        return f"Entity: Item {number}\nPercentage: {share}%\nNot met: {unmet}"
    return f"Item {number}" if held == len(ATTRIBUTES) else "Something else"


def _judged(stage: str, messages: Sequence[BaseMessage]) -> str:
    """Whether a passage is so, or whether a context that holds all that is so holds a sentence."""
    if stage == "verdict":
        labels = {
            _label(f"Item {at} is {a}") for at, a in _FACT.findall(isolated("passage", messages))
        }
        return "Factual." if labels == {ClaimLabel.ENTAILMENT} else "Non-factual."
    sentence = isolated("sentence", messages)
    return "Yes" if sentence in isolated("context", messages) else "No"


def _whole(stage: str, messages: Sequence[BaseMessage]) -> str:
    """The good word where all that is said is so; else the other, with what is said quoted."""
    good, bad = {
        "relevance": ("Yes.", "No."),
        "self_contradiction": ("Consistent", "Contradictory"),
    }[stage]
    said = [f"Item {at} is {what}" for at, what in _FACT.findall(isolated("answer", messages))]
    if {*map(_label, said)} == {ClaimLabel.ENTAILMENT}:
        return good
    return "\n".join([bad, *(f"{at}. {text}" for at, text in enumerate(said, start=1))])


def _examined(stage: str, messages: Sequence[BaseMessage]) -> str:
    """An examiner who asks of one attribute at a time, and an examinee who knows of each."""
    if stage == "testimony":
        (asked,) = re.findall(r"Is item (\d+) (\w+)\?", isolated("inquiry", messages))
        holds = truth(int(asked[0]), asked[1]) is ClaimLabel.ENTAILMENT
        return f"1. Item {asked[0]} is {'' if holds else 'not '}{asked[1]}."
    heard = [str(message.content) for message in messages if "testimony" in str(message.content)]
    if stage == "more":
        return "Yes." if len(heard) < len(ATTRIBUTES) else "No."
    if stage == "conclusion":
        return "Incorrect." if any("is not" in said for said in heard) else "Correct."
    number = _FACT.findall(isolated("passage", messages))[0][0]
    return f"1. Is item {number} {ATTRIBUTES[len(heard)]}?"


def alike(pairs: Sequence[tuple[str, str]]) -> list[float]:
    """A similarity that knows how much of an answer is so."""
    return [_alike(premise, hypothesis) for premise, hypothesis in pairs]


def _alike(premise: str, hypothesis: str) -> float:
    found = _FACT.search(premise)
    if found is None:  # a reference, beside a corrected answer or a wrong one
        return 0.75 if hypothesis.startswith("None") else 0.25
    if set(re.findall(r"(?i)item (\d+)", hypothesis)) != {found[1]}:
        return 0.125  # what is said of something else
    return 0.25 + supported(int(found[1])) / (2 * len(ATTRIBUTES))


def fewl_score(number: int, penalty: bool) -> float:
    """What FEWL has to give with that similarity, and weights of mean one that are all alike."""
    lazy = math.tanh(0.125) / 2 if penalty else 0
    return math.tanh(0.25 + supported(number) / (2 * len(ATTRIBUTES))) / 2 - lazy


def _label(claim: str) -> ClaimLabel:
    found = _FACT.search(claim)
    return truth(int(found[1]), found[2]) if found else ClaimLabel.NEUTRAL
