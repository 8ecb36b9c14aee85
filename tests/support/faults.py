"""What can go wrong between a client and its server, by name, and a server to which it happens."""

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

Fault = Callable[[Answer], Answer]
"""From the right answer to what is given in its place."""

_PAGE = b"<!doctype html><title>Bad gateway</title><p>The upstream server is away.</p>"
_HTML = {"Content-Type": "text/html"}
_NO_CHOICES = b"""{"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "test",
"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 0, "total_tokens": 9}}"""


def _until(answer: Answer) -> Answer:
    # To the second, as the header has it: two from now are one at least.
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
    "hang": partial(replace, delay=3600),  # until the server closes
    "cut": partial(replace, cut=True),
    "cut body": partial(replace, sent=0.5),
    "malformed JSON": partial(replace, body=b'{"id": "chatcmpl-1", "choices": [{"index"'),
    "empty choices": partial(replace, body=_NO_CHOICES),
    "error in 200": partial(replace, body=b'{"error": {"message": "overloaded", "code": 529}}'),
}
"""No message comes: the call itself fails, and is tried again."""

UNUSABLE: Mapping[str, Fault] = {
    "null content": partial(replace, text=None),
    "off format": partial(replace, text="I am sorry, but I cannot help with that request."),
    "truncated": _truncate,
}
"""A message comes, but not one that can be used: that is for the evaluator to notice."""

FAULTS: Mapping[str, Fault] = {**BROKEN, **UNUSABLE}


class Faulty:
    """A server's script that spoils some of the right answers.

    Which ones depends on the seed, on what a request says, and on how often that was said before:
    a retry meets another fate, and a run can be repeated, in whatever order the requests come.
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
        """See the class.

        Args:
            script: Gives the right answers.
            faults: Names of `FAULTS`, each as likely as the other.
            share: How many of the requests are spoiled, in [0, 1].
            times: How many requests are spoiled at most; None: any number.
            stage: Spoil only requests of this stage (`stage_of`).
            seed: Another seed spoils others.
        """
        self.met: Counter[str] = Counter()
        """How often each fault happened."""
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
        """How many requests were made before: retries."""
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
    """What a request says, without the marks in its delimiters, which differ between processes."""
    return re.sub(r"<(/?\w+)-\w+>", r"<\1>", str(request["messages"]))
