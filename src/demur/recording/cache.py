"""Answer the requests of all LangChain models in this process from a recording.

LangChain asks its cache before it asks a model, so a recording in the place of the cache needs no
change of the chain. A chat model that was made with `cache=False` or with a cache of its own is not
recorded, and neither is an embedding model.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from langchain_core.caches import RETURN_VAL_TYPE, BaseCache
from langchain_core.globals import get_llm_cache, set_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, messages_from_dict
from langchain_core.outputs import ChatGeneration, Generation

from demur._fingerprints import request_fingerprint
from demur.errors import DemurError
from demur.recording.file import CallLine
from demur.recording.replies import Recording, answered, key_of

_PARTS = ("tool_calls", "tool_call_id", "name")
"""The fields of a message that are part of a request, beside its role and its content."""


class _Replies(BaseCache):
    """Look up replies in a recording; where it lacks one, record the model's or refuse."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._began: dict[str, float] = {}

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """Return the recorded reply; None to have the model asked, which `update` records.

        Raises:
            DemurError: The reply is not recorded, and the recording is only read.
        """
        asked = _request(prompt, llm_string)
        kept = self.recording.calls.get(asked.key)
        if kept is not None:
            (message,) = messages_from_dict([kept.reply])
            if _messages(prompt) is None:
                return [Generation(text=str(message.text))]
            return [ChatGeneration(message=message)]
        if not self.recording.writes:
            raise self.recording.lacks(asked)
        self._began[asked.key] = time.monotonic()
        return None

    def update(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """Record a model's reply.

        Raises:
            DemurError: There are several replies, or the file cannot be written.
        """
        if len(return_val) != 1:
            raise DemurError(
                f"a model gave {len(return_val)} replies to one request, and a recording holds one "
                "for each: ask for one reply (n=1)"
            )
        (reply,) = return_val
        message = reply.message if isinstance(reply, ChatGeneration) else AIMessage(reply.text)
        asked, ended = _request(prompt, llm_string), time.monotonic()
        seconds = ended - self._began.pop(asked.key, ended)
        self.recording.call(asked.key, lambda: answered(asked, message, seconds))

    def clear(self, **kwargs: Any) -> None:
        """Refuse, since what was recorded is kept.

        Raises:
            DemurError: Always.
        """
        raise DemurError(f"the recording {self.recording.path} cannot be cleared: delete the file")


@contextmanager
def recorded(recording: Recording) -> Iterator[None]:
    """Have all LangChain models of this process reply from a recording.

    A recording that can be written asks models where it lacks a reply. One that is only read
    refuses: the model raises a `DemurError`, which names the nearest recorded request. A streamed
    reply comes in one chunk, since LangChain has no cache for streams. It may be entered twice.
    """
    before = get_llm_cache()
    if isinstance(before, _Replies) and before.recording is recording:
        yield
        return
    set_llm_cache(_Replies(recording))
    try:
        with patch.object(BaseChatModel, "_should_stream", lambda *_, **__: False):
            yield
    finally:
        set_llm_cache(before)


def _request(prompt: str, llm_string: str) -> CallLine:
    """Return the call that LangChain's keys stand for, without a reply."""
    model, said = request_fingerprint(llm_string), list[tuple[str, Any]]()
    messages = _messages(prompt)
    if messages is None:
        said.append(("text", prompt))
    for fields in messages or ():
        parts = {name: fields[name] for name in _PARTS if fields.get(name)}
        # Several samples of one prompt have keys of their own.
        sample = (fields.get("response_metadata") or {}).get("sample")
        parts |= {} if sample is None else {"sample": sample}
        content = {"content": fields["content"], **parts} if parts else fields["content"]
        said.append((fields["type"], content))
    key = key_of(model, json.dumps(said, sort_keys=True))
    return CallLine(key=key, model=model, prompt=tuple(said), options={}, reply={}, seconds=0)


def _messages(prompt: str) -> list[dict[str, Any]] | None:
    """Return the fields of the messages in a chat model's prompt, or None for a text."""
    try:
        return [message["kwargs"] for message in json.loads(prompt) if message["lc"]] or None
    except (ValueError, LookupError, TypeError):
        return None
