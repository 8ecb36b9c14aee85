"""Play the judge: find the text under judgement in a product's prompt, and reply in the same form.

The judge knows one thing of each product: how the prompt marks the text, the evidence, and the form
of the reply. The verdict follows only from these (`facts.supported`). So it shows if a product cut,
lost or mixed up a text or evidence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.serving import text_of

from . import facts

Messages = Sequence[dict[str, Any]]


@dataclass(frozen=True)
class Reading:
    """Hold what a judge's prompt shows, and how to reply to it."""

    text: str
    """The text under judgement."""
    evidence: str | None
    """The evidence; None if the prompt has none."""
    reply: Callable[[bool], str]
    """A function from a verdict to a reply in the form that the prompt asks for."""


class UnknownPromptError(Exception):
    """Say that the judge does not know a prompt: an adapter or a product has changed."""


def read(messages: Messages) -> Reading:
    """Find the text under judgement in a prompt.

    Raises:
        UnknownPromptError: No product that the judge knows writes such a prompt.
    """
    whole = "\n".join(text_of(message) for message in messages)
    for knows in (_demur, _faithfulness, _refined, _guideline, _flagged, _labelled):
        found = knows(messages, whole)
        if found is not None:
            return found
    raise UnknownPromptError(whole[:500])


def _demur(messages: Messages, whole: str) -> Reading | None:
    """Read a prompt of RefChecker: for triplets, or for labels of numbered claims."""
    system = text_of(messages[0])
    if system.startswith("List the facts"):
        text = _isolated("answer", text_of(messages[-1]))
        triplets = [f'("{s}", "{p}", "{o}")' for s, p, o in facts.triplets(text)]
        said = "\n".join(triplets) or "No claims"
        return Reading(text, None, lambda _: said)
    if not system.startswith("Compare each numbered claim"):
        return None
    # The last message asks again about a claim that got no label.
    claims = next(
        found for message in reversed(messages) if (found := _isolated("claims", text_of(message)))
    )
    evidence = _isolated("reference", whole)
    # A claim may have several lines.
    numbered = re.findall(r"^(\d+)\. (.*?)(?=^\d+\. |\Z)", claims, re.DOTALL | re.MULTILINE)
    labels = {True: "Entailment", False: "Neutral"}
    said = "\n".join(f"{n}. {labels[facts.supported(claim, evidence)]}" for n, claim in numbered)
    return Reading(claims, evidence, lambda _: said)


def _isolated(tag: str, text: str) -> str:
    found = re.findall(rf"<({tag}-[a-z2-7]{{10}})>\n(.*?)\n</\1>", text, re.DOTALL)
    return str(found[-1][1]) if found else ""


def _faithfulness(messages: Messages, whole: str) -> Reading | None:
    """Read a prompt of LlamaIndex's FaithfulnessEvaluator, whose examples come first."""
    if "You need to answer with either YES or NO." not in whole:
        return None
    _, _, last = whole.rpartition("\nAnswer: NO\n")
    information, _, rest = last.partition("\nContext: ")
    return Reading(information, rest.rpartition("\nAnswer:")[0], _yes_or_no)


def _refined(messages: Messages, whole: str) -> Reading | None:
    """Read a further request of the same evaluator, made if the contexts do not fit into one."""
    form = (
        r"present in the context information: (.*?)\nWe have provided an existing YES/NO answer: "
        r"(\w*).*?-{12}\n(.*)\n-{12}"
    )
    found = re.search(form, whole, re.DOTALL)
    if found is None:
        return None
    text, existing, evidence = found.groups()
    return Reading(text, evidence, lambda good: _yes_or_no(good or existing == "YES"))


def _guideline(messages: Messages, whole: str) -> Reading | None:
    """Read a prompt of LlamaIndex's GuidelineEvaluator."""
    found = re.search(
        r"based on the guidelines below:\nResponse: (.*?)\nGuidelines: ", whole, re.DOTALL
    )
    if found is None:
        return None
    return Reading(
        found[1], None, lambda good: json.dumps({"passing": good, "feedback": "It was looked up."})
    )


def _flagged(messages: Messages, whole: str) -> Reading | None:
    """Read a check of openai-guardrails by a model, which replies in JSON."""
    if "Respond with a json object containing" not in whole:
        return None
    said = text_of(messages[-1])
    said = said[max(said.find("{"), 0) :] if '"latest_input"' in said else said
    evidence = None
    try:
        payload = json.loads(said)
        said = str(payload["latest_input"])
        evidence = json.dumps([m for m in payload["conversation"] if m.get("role") == "user"])
    except (ValueError, TypeError, KeyError):
        pass
    return Reading(
        said,
        evidence,
        lambda good: json.dumps({"flagged": not good, "confidence": 0.0 if good else 1.0}),
    )


_FORMS = {
    "SUPPORTED or UNSUPPORTED": ("SUPPORTED", "UNSUPPORTED"),
    "yes if it follows": ("yes", "no"),
    "yes if it must be blocked": ("no", "yes"),
}
"""The prompts that adapters write where a product leaves the prompt to its user: what each asks
for, and the words for supported and not supported."""


def _labelled(messages: Messages, whole: str) -> Reading | None:
    form = next((form for form in _FORMS if form in whole), None)
    if form is None:
        return None
    good, bad = _FORMS[form]
    before, _, text = whole.rpartition("\nAnswer: ")
    _, told, evidence = before.partition("\nEvidence: ")
    text = text.rpartition("\nVerdict:")[0]
    return Reading(text, evidence if told else None, lambda fine: good if fine else bad)


def _yes_or_no(good: bool) -> str:
    return "YES" if good else "NO"
