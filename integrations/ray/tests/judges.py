"""Make evaluators, and list workers; the workers import this module by its name."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any

import psutil
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_openai import ChatOpenAI

from demur import FEWL, Cascade, Evaluation, NeighborStore, RefChecker, Sample
from demur.similarity import resolve_similarity

KEY = "sk-proj-Zq8mW2vN7xT4kR9bY3cL6hJ1"


def workers() -> list[int]:
    """Return the ids of the scoring processes in the clusters that this process started."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # The process has ended in the meantime.
            if process.cmdline()[:1] and process.cmdline()[0].startswith("ray::Worker"):
                found.append(process.pid)
    return sorted(found)


def wait(holds: Callable[[], bool]) -> None:
    """Wait until it holds; a test's limit ends it, because processes of Ray start slowly."""
    while not holds():
        time.sleep(0.01)


# --- Functions ------------------------------------------------------------------------------------


def length(sample: Sample) -> float:
    """Score the length in hundreds of characters."""
    return len(sample.answer) / 100


def rouge(sample: Sample) -> float:
    """Score the similarity of the answer to its reference."""
    (score,) = resolve_similarity("rouge").scores([(sample.answer, str(sample.reference))])
    return score


# --- Behind a server ------------------------------------------------------------------------------


def city(request: Mapping[str, Any]) -> str:
    """Return the city that a request is about."""
    found: list[str] = re.findall(r"City\d+", json.dumps(request["messages"]))
    return found[-1]


def reply(request: Mapping[str, Any]) -> str:
    """Return claims if a request asks for them, else labels; every third city is elsewhere."""
    text, at = json.dumps(request["messages"]), city(request)
    if "Non-Wrong" in text:
        return "\n".join(
            f"{n}. Wrong Answer: {at} has {n} people.\n"
            f"{n}. Non-Wrong Answer: {at} is larger than a village of {n}."
            for n in range(1, 5)
        )
    if "Entailment" in text:
        label = "Contradiction" if int(at.removeprefix("City")) % 3 == 0 else "Entailment"
        return f"1. {label}\n2. Entailment"
    if "Where is" in text and "<answer" not in text:
        return f"1. {at} is in the north.\n2. People say that {at} is large."
    return f'("{at}", "is in", "France")\n("{at}", "has", "a mill")'


def rows(count: int) -> list[dict[str, Any]]:
    """Return answers about cities, each with its contexts and its reference."""
    return [
        {
            "id": f"row {at}",
            "question": f"Where is City{at}?",
            "answer": f"City{at} is in France. City{at} has a mill.",
            "contexts": [f"City{at} is in France.", f"There is a mill in City{at}."],
            "reference": f"City{at} is in France, and has a mill.",
        }
        for at in range(count)
    ]


def checker(**options: Any) -> RefChecker:
    """Return an evaluator that makes two requests for each answer."""
    return RefChecker("openai:x", checker="joint", **options)


@functools.cache
def _checker() -> RefChecker:
    return checker()


def deadly(sample: Sample) -> Evaluation:
    """Check an answer, or kill the process if the answer says so."""
    if sample.answer == "deadly":
        os.kill(os.getpid(), signal.SIGKILL)
    return _checker().invoke(sample)


def fewl(url: str, collection: str) -> FEWL:
    """Return a FEWL with neighbours on a Chroma server."""
    embedding = DeterministicFakeEmbedding(size=16)
    store = NeighborStore(url, collection=collection, embedding=embedding)
    return FEWL(
        "openai:x", similarity="rouge", penalty=True, n_answers=2, n_wrong=4, neighbors=store
    )


def cascade() -> Cascade:
    """Return a cascade of two models at one endpoint."""
    first = RefChecker("openai:x", checker="joint", claims="sentences")
    return Cascade([first, RefChecker("openai:y", checker="joint")], min_confidence=0.99)


def open_models(url: str) -> dict[str, Any]:
    """Return evaluators that cannot be sent to workers, because their key is in no variable."""
    model = ChatOpenAI(model="x", base_url=url, api_key=KEY, max_retries=0)
    return {"refchecker": RefChecker(model, checker="joint")}


def single() -> RefChecker:
    """Return an evaluator that asks a third model about each claim, side by side."""
    return RefChecker("openai:z", checker="per_claim")
