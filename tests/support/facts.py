"""Provide answers with known verdicts, and a scripted judge that finds the verdicts from the text.

An answer says that item `n` is red and heavy. For even `n` both are true. For odd `n` neither is
true, or only the first, in turns. The judge's reply follows from the text of the request: a reply
that reached another request would make a wrong claim, label or score.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages

from demur import ClaimLabel, Evaluation, Sample
from support.fakes import deciding, isolated, stage_of
from support.openai_server import Answer

ATTRIBUTES = ("red", "heavy")
Grade = Literal["right", "partial", "undetermined", "wrong"]
"""How well an evaluation fits the truth.

"partial" means that the decision and all given labels are right. The evaluation says that the other
labels are missing, and its bounds of the score hold. "wrong" means that it has made something up.
"""
_FACT = re.compile(rf"Item (\d+) is ({'|'.join(ATTRIBUTES)})")


def sample(number: int) -> Sample:
    """Return the sample with the answer about the item."""
    return Sample(question=question(number), answer=answer(number), contexts=["A list of items"])


def with_samples(number: int) -> Sample:
    """Return the same sample with other answers that state only what is true of the item."""
    said = [f"Item {number} is {one}." for one in ATTRIBUTES[: supported(number)]]
    text = " ".join(["That item is on the list.", *said])
    return sample(number).model_copy(update={"metadata": {"samples": [text, f"Yes. {text}"]}})


def described(number: int) -> Sample:
    """Return the same sample with a text that tells what is true, for a judge that reads it."""
    return sample(number).model_copy(update={"contexts": (description(number),)})


def description(number: int) -> Document:
    """Return a text that tells of an item what is true."""
    others = {"red": "blue", "heavy": "light as a feather"}
    held = ATTRIBUTES[: supported(number)]
    said = (one if one in held else others[one] for one in ATTRIBUTES)
    return Document(" ".join(f"Item {number} is {one}." for one in said))


def answer(number: int) -> str:
    """Return the answer about an item."""
    return " ".join(f"Item {number} is {attribute}." for attribute in ATTRIBUTES)


def supported(number: int) -> int:
    """Return how many of the attributes are true of the item."""
    return len(ATTRIBUTES) if number % 2 == 0 else number // 2 % len(ATTRIBUTES)


def truth(number: int, attribute: str) -> ClaimLabel:
    """Return the right label of the claim that the item has the attribute."""
    holds = ATTRIBUTES.index(attribute) < supported(number)
    return ClaimLabel.ENTAILMENT if holds else ClaimLabel.CONTRADICTION


def expected(number: int) -> list[tuple[str, ClaimLabel]]:
    """Return the claims of an answer with their right labels."""
    return [(f"Item {number} is {one}", truth(number, one)) for one in ATTRIBUTES]


def grade(number: int, found: Evaluation) -> Grade:
    """Return how well an evaluation fits the truth about the answer."""
    labels = [claim.label for claim in found.claims]
    if found.undetermined and not labels:
        return "undetermined"
    told = [
        (claim.text.rstrip("."), claim.label or label)  # sentences keep their full stop
        for claim, (_, label) in zip(found.claims, expected(number), strict=False)
    ]
    if told != expected(number):
        return "wrong"
    if found.undetermined:
        return "undetermined"
    share = supported(number) / len(ATTRIBUTES)
    missing = None in labels
    supports = [claim.support for claim in found.claims if claim.label and claim.support]
    least = min(supports, default=share)
    low, high = found.details["score_bounds"]
    if found.passed is not (share == 1) or not any(low <= one <= high for one in (share, least)):
        return "wrong"
    if found.score is None or missing:
        return "partial" if missing and found.score is None else "wrong"
    by_support = found.score == least and (least > 0.5) is (share == 1)
    return "right" if found.score == share or by_support else "wrong"


def question(number: int) -> str:
    """Return the question about an item."""
    return f"What is item {number} like?"


def judge(stage: str, messages: Sequence[BaseMessage]) -> str | AIMessage:
    """Reply as a judging model that makes no mistake."""
    if stage == "extraction":
        facts = _FACT.findall(isolated("answer", messages))
        found = [f'("Item {number}", "is", "{what}")' for number, what in facts]
        return "\n".join(found) or "No claims"
    if stage == "joint":
        lines = isolated("claims", messages).splitlines()
        return "\n".join(f"{line.partition('.')[0]}. {label_of(line)}" for line in lines)
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
    _, shown, claim = str(messages[-1].content).rpartition("\nClaim: ")
    if shown:  # as a yes-or-no judge is asked
        return "Yes" if label_of(claim) is ClaimLabel.ENTAILMENT else "No"
    return deciding(label_of(isolated("claim", messages)))


def speak(stage: str, messages: Sequence[BaseMessage]) -> str:
    """Reply as the chain's model, with the answer about the item that the question names."""
    found = re.search(r"[Ii]tem (\d+)", str(messages[-1].content))
    if found is None:
        raise ValueError("that is about no item")
    return answer(int(found[1]))


def serve(request: dict[str, Any], number: int) -> Answer:
    """Reply as a server of both the judging model and the chain's model."""
    messages = convert_to_messages(request["messages"])
    stage = stage_of(messages)
    reply = (speak if stage == "chain" else judge)(stage, messages)
    return Answer(reply if isinstance(reply, str) else str(reply.text))


def _reference(stage: str, asked: str) -> str:
    """Reply as a reference model: answers about an item, or wrong answers with corrections."""
    (number,) = re.findall(r"item (\d+)", asked)
    if stage != "pairs":
        return f"1. That of item {number} is known.\n2. Item {number} is on the list."
    pairs = (
        f"{at}. Wrong Answer: Item {number} has {at} legs.\n{at}. Non-Wrong Answer: None has {at}."
        for at in range(1, 4)
    )
    return "\n".join(pairs)


def _construction(messages: Sequence[BaseMessage]) -> str:
    """Reply with the answer's entity, and a question or a list with all that is said of it."""
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
    """Reply with the query's item if all of the query is true of it; give lists a percentage."""
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
    """Reply whether a passage is factual, or whether a context supports a sentence."""
    if stage == "verdict":
        labels = {
            label_of(f"Item {at} is {a}") for at, a in _FACT.findall(isolated("passage", messages))
        }
        return "Factual." if labels == {ClaimLabel.ENTAILMENT} else "Non-factual."
    sentence = isolated("sentence", messages)
    return "Yes" if sentence in isolated("context", messages) else "No"


def _whole(stage: str, messages: Sequence[BaseMessage]) -> str:
    """Reply with the passing word if all claims are true, else with the failing word and quotes."""
    good, bad = {
        "relevance": ("Yes.", "No."),
        "self_contradiction": ("Consistent", "Contradictory"),
    }[stage]
    said = [f"Item {at} is {what}" for at, what in _FACT.findall(isolated("answer", messages))]
    if {*map(label_of, said)} == {ClaimLabel.ENTAILMENT}:
        return good
    return "\n".join([bad, *(f"{at}. {text}" for at, text in enumerate(said, start=1))])


def _examined(stage: str, messages: Sequence[BaseMessage]) -> str:
    """Reply as an examiner, who asks about each attribute, or as the examinee, who knows all."""
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
    """Give each pair a similarity that grows with the number of true attributes."""
    return [_alike(premise, hypothesis) for premise, hypothesis in pairs]


def _alike(premise: str, hypothesis: str) -> float:
    found = _FACT.search(premise)
    if found is None:  # A reference is compared with a corrected or a wrong answer.
        return 0.75 if hypothesis.startswith("None") else 0.25
    if set(re.findall(r"(?i)item (\d+)", hypothesis)) != {found[1]}:
        return 0.125  # The hypothesis is about another item.
    return 0.25 + supported(int(found[1])) / (2 * len(ATTRIBUTES))


def fewl_score(number: int, penalty: bool) -> float:
    """Return the score that FEWL must give with `alike` and uniform weights of mean 1."""
    lazy = math.tanh(0.125) / 2 if penalty else 0
    return math.tanh(0.25 + supported(number) / (2 * len(ATTRIBUTES))) / 2 - lazy


def label_of(claim: str) -> ClaimLabel:
    """Return the right label of a claim, which is Neutral if it is about no item."""
    found = _FACT.search(claim)
    return truth(int(found[1]), found[2]) if found else ClaimLabel.NEUTRAL
