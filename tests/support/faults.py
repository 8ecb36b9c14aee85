"""Name the faults that can happen between a client and a server, and provide a server with them."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from functools import partial
from random import Random
from typing import Any

from langchain_core.messages import convert_to_messages

from support.fakes import stage_of
from support.openai_server import Answer, Script
from support.waiting import NEVER

Fault = Callable[[Answer], Answer]
"""A function from the right answer to the answer that is given instead."""

_PAGE = b"<!doctype html><title>Bad gateway</title><p>The upstream server is away.</p>"
_HTML = {"Content-Type": "text/html"}
_NO_CHOICES = b"""{"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "test",
"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 0, "total_tokens": 9}}"""


def _until(answer: Answer) -> Answer:
    # The header is precise to the second, so that two seconds from now mean at least one.
    then = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=2), usegmt=True)
    return replace(answer, status=429, headers={"Retry-After": then})


def _truncate(answer: Answer) -> Answer:
    text = answer.text or ""
    return replace(answer, text=text[: len(text) // 2], finish_reason="length")


BROKEN: Mapping[str, Fault] = {
    "429": partial(replace, status=429),
    "429 Retry-After": partial(replace, status=429, headers={"Retry-After": "1"}),
    "429 Retry-After date": _until,
    "500": partial(replace, status=500),
    "503 HTML": partial(replace, status=503, body=_PAGE, headers=_HTML),
    "200 HTML": partial(replace, body=_PAGE, headers=_HTML),
    "hang": partial(replace, held=NEVER),  # The request hangs until the server closes.
    "cut": partial(replace, cut=True),
    "cut body": partial(replace, sent=0.5),
    "malformed JSON": partial(replace, body=b'{"id": "chatcmpl-1", "choices": [{"index"'),
    "empty choices": partial(replace, body=_NO_CHOICES),
    "error in 200": partial(replace, body=b'{"error": {"message": "overloaded", "code": 529}}'),
}
"""The faults with which no message comes: the call fails and is retried."""

UNUSABLE: Mapping[str, Fault] = {
    "null content": partial(replace, text=None),
    "off format": partial(replace, text="I am sorry, but I cannot help with that request."),
    "truncated": _truncate,
}
"""The faults with which an unusable message comes, which the evaluator has to notice."""

FAULTS: Mapping[str, Fault] = {**BROKEN, **UNUSABLE}


class Faulty:
    """Spoil some of the right answers, as the script of a server.

    The choice depends on the seed, on the text of a request, and on how often that text was sent
    before. A retry can therefore meet another fault, and a run can be repeated, in whatever order
    the requests come.
    """

    def __init__(
        self,
        script: Script,
        faults: Sequence[str],
        *,
        share: float = 1.0,
        times: int | None = None,
        stage: str | None = None,
        seed: int = 0,
    ) -> None:
        """Choose the faults and the requests that they happen to.

        Args:
            script: A function that gives the right answers.
            faults: Names of `FAULTS`, all of them equally likely.
            share: The share of the requests that are spoiled, in [0, 1].
            times: The largest number of requests that are spoiled; None: any number.
            stage: The stage (`stage_of`) whose requests are spoiled; None: every stage.
            seed: Another seed spoils other requests.
        """
        self.met: Counter[str] = Counter()
        """The number of times that each fault happened."""
        self._script = script
        self._faults = faults
        self._share = share
        self._times = times
        self._stage = stage
        self._seed = seed
        self._seen: Counter[str] = Counter()
        self._lock = threading.Lock()

    @property
    def repeated(self) -> int:
        """Return the number of retries: requests whose text had been sent before."""
        return self._seen.total() - len(self._seen)

    def __call__(self, request: dict[str, Any], number: int) -> Answer:
        right = self._script(request, number)
        assert isinstance(right, Answer)
        if self._stage and stage_of(convert_to_messages(request["messages"])) != self._stage:
            return right
        said = _said(request)
        with self._lock:
            seen = self._seen[said]
            self._seen[said] += 1
            fate = Random(f"{self._seed} {seen} {said}")
            if fate.random() >= self._share or self.met.total() == self._times:
                return right
            name = fate.choice(self._faults)
            self.met[name] += 1
        return FAULTS[name](right)


def _said(request: dict[str, Any]) -> str:
    """Return the text of a request without the random marks in its delimiters."""
    return re.sub(r"<(/?\w+)-\w+>", r"<\1>", str(request["messages"]))
