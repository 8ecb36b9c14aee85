"""Answer the requests of all LangChain models in this process from a recording.

LangChain asks its cache before it asks a model, so a recording in the place of the cache needs no
change of the chain. A chat model that was made with `cache=False` or with a cache of its own is not
recorded, and neither are embedding models and streams of a text model.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from langchain_core.caches import RETURN_VAL_TYPE, BaseCache
from langchain_core.globals import get_llm_cache, set_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, messages_from_dict
from langchain_core.outputs import ChatGeneration, Generation

from demur.errors import DemurError
from demur.recording.file import CallLine
from demur.recording.replies import Recording, answered, key_of
from demur.schema.fingerprints import request_fingerprint

_PARTS = ("tool_calls", "tool_call_id", "name", "role")
"""The fields of a message that are part of a request, beside its type and its content."""
_SWITCH = threading.Lock()


class _Replies(BaseCache):
    """Look up replies in a recording; where it lacks one, record the model's or refuse."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.users = 0
        """How many `recorded` blocks are entered."""
        self.undo = ExitStack()
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
            if asked.prompt == _of_text(prompt):
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
        """Refuse, since what was recorded is kept."""
        raise DemurError(f"the recording {self.recording.path} cannot be cleared: delete the file")


@contextmanager
def recorded(recording: Recording) -> Iterator[None]:
    """Have all LangChain models of this process reply from a recording.

    A recording that can be written asks models where it lacks a reply. One that is only read
    refuses: the model raises a `DemurError`, which names the nearest recorded request. A streamed
    reply comes in one chunk, since LangChain has no cache for streams. Several threads may enter it
    at the same time.
    """
    with _SWITCH:
        replies = get_llm_cache()
        if not (isinstance(replies, _Replies) and replies.recording is recording):
            before, replies = replies, _Replies(recording)
            replies.undo.callback(set_llm_cache, before)
            whole = patch.object(BaseChatModel, "_should_stream", lambda *_, **__: False)
            replies.undo.enter_context(whole)
            set_llm_cache(replies)
        replies.users += 1
    try:
        yield
    finally:
        with _SWITCH:
            replies.users -= 1
            if not replies.users:
                replies.undo.close()


def _request(prompt: str, llm_string: str) -> CallLine:
    """Return the call that LangChain's keys stand for, without a reply."""
    model = request_fingerprint(llm_string)
    try:
        said = tuple(_said(message["kwargs"]) for message in json.loads(prompt)) or _of_text(prompt)
    except (ValueError, LookupError, TypeError):  # the prompt is no list of messages
        said = _of_text(prompt)
    key = key_of(model, json.dumps(said, sort_keys=True))
    return CallLine(key=key, model=model, prompt=said, options={}, reply={}, seconds=0)


def _of_text(prompt: str) -> tuple[tuple[str, Any]]:
    return (("text", prompt),)


def _said(fields: dict[str, Any]) -> tuple[str, Any]:
    """Return the role and the content of a message, with other parts of a request."""
    parts = {name: fields[name] for name in _PARTS if fields.get(name)}
    # Several samples of one prompt have keys of their own.
    sample = (fields.get("response_metadata") or {}).get("sample")
    parts |= {} if sample is None else {"sample": sample}
    return fields["type"], {"content": fields["content"], **parts} if parts else fields["content"]
