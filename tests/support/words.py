"""Provide judges that quote the answer and a key, and endpoints that quote their requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from demur import CallPolicy, Cascade, Evaluation, RefChecker, Sample
from support.openai_server import Answer, openai_server

QUOTED = "ЖЩЮ"
"""A text that is in each judged answer and nowhere else."""
KEY = "sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"
SAID = f"The tower is {QUOTED} metres tall."


def rejecting(sample: Sample) -> Evaluation:
    """Fail and quote the answer, as SelfCheck and Reverse Validation quote parts of it."""
    return Evaluation(name="judge", passed=False, explanation=f"Not so: {sample.answer} ({KEY})")


def undecided(sample: Sample) -> Evaluation:
    why = f"cannot be read: {sample.answer} ({KEY})"
    return Evaluation(name="judge", error=why, explanation=why)


def raising(sample: Sample) -> Evaluation:
    raise ValueError(f"what is this: {sample.answer} ({KEY})")


@contextmanager
def echoing() -> Iterator[RefChecker]:
    """Yield a RefChecker whose endpoint refuses requests and quotes them."""

    def refuse(request: dict[str, Any], number: int) -> Answer:
        said = f"Wrong key {KEY} for {request['messages']}"
        body = json.dumps({"error": {"message": said, "code": "invalid_api_key"}})
        return Answer(status=401, body=body.encode())

    with openai_server(refuse) as server:
        yield RefChecker(server.model(), call_policy=CallPolicy(attempts=1))


@contextmanager
def _plain(judge: Any) -> Iterator[Any]:
    yield judge


@contextmanager
def _cascade() -> Iterator[Any]:
    with echoing() as cheap:
        yield Cascade([cheap, cheap])


JUDGES: dict[str, Callable[[], Any]] = {
    "rejecting": lambda: _plain(rejecting),
    "undecided": lambda: _plain(undecided),
    "raising": lambda: _plain(raising),
    "echoing": echoing,
    "cascade": _cascade,
}
"""Functions that give context managers, whose values are the judges."""
CAUSES = {"raising": "ValueError", "echoing": "Error 401", "cascade": "Error 401"}
"""How the reported cause of each judge ends, where the judge has one."""


def quotes(told: object) -> bool:
    """Return whether something that a client received quotes a judge or an endpoint."""
    text = f"{told!r} {told}"
    return bool(set(QUOTED) & set(text)) or KEY in text or "\\u04" in text
