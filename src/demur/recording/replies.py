"""Record every model call and its reply in one file that grows.

A recording has JSON lines: the models, each under the name that the user gives it; the calls, with
prompt, options, reply and seconds; and the vectors of an embedding model. A recorded call is not
made again. So a table goes on where it was stopped, and a complete recording gives the table
without any model. A file whose name ends in ".gz" can only be read.

A line is in the file as soon as its reply arrives. One process writes at a time. If a process is
killed, the last line may be torn: the next process that writes cuts it off, and one that only reads
ignores it.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import takewhile
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, messages_from_dict, messages_to_dict
from langchain_core.outputs import ChatGeneration, ChatResult

from demur._secrets import known_secrets
from demur._system import as_json, locked
from demur._text import one_line, replace_surrogates
from demur.errors import DemurError
from demur.recording.file import (
    AnyLine,
    CallLine,
    ModelLine,
    VectorLine,
    cannot,
    read,
    torn,
    write,
)
from demur.runtime import CallPolicy
from demur.schema.fingerprints import model_fingerprint

_HOW = "without --replay"
_MOST_NEAREST = 100
"""The number of lacking calls for which the nearest recorded one is looked for."""
_AROUND, _LONGEST = 30, 200
"""How many characters are shown around a difference, and at most of each text."""

SECONDS = "recorded_seconds"
"""The key in a reply's `response_metadata` of the seconds that the recorded call took."""


class Recording:
    """Hold the lines of a recording in memory, and write new ones to its file.

    Use `open_recording` to make one.
    """

    def __init__(self, path: Path, writes: bool, how: str = _HOW) -> None:
        self.path, self.writes = path, writes
        self.how = how
        """What to do to record, for messages."""
        self.cut = 0
        """The bytes of a torn last line that were cut off or ignored."""
        self.lacking: set[str] = set()
        """The keys of calls and vectors that were asked for, are not recorded, and had no model to
        ask."""
        self.models: dict[str, ModelLine] = {}
        self.calls: dict[str, CallLine] = {}
        self.vectors: dict[str, VectorLine] = {}
        self._lock = threading.Lock()
        self._turns: dict[str, threading.Lock] = {}

    def note(self, line: AnyLine) -> None:
        """Take a line into memory."""
        if isinstance(line, ModelLine):
            self.models[line.name] = line
        elif isinstance(line, CallLine):
            self.calls[line.key] = line
        else:
            self.vectors[line.key] = line

    def append(self, *lines: AnyLine) -> None:
        """Write lines to the file, and take them into memory.

        Values that are known to be secret are not written (`demur._secrets`).

        Raises:
            DemurError: The lines could not be written.
        """
        written = _written(*lines).encode()
        with self._lock:
            try:
                write(self.path, written)
            except OSError as error:
                why = cannot("write", self.path, error)
                raise DemurError(
                    f"{why}. Earlier replies are kept. Solve this, and run the same command again: "
                    "it goes on from there"
                ) from error
            for line in lines:
                self.note(line)

    def call(self, key: str, ask: Callable[[], CallLine]) -> CallLine:
        """Return the recorded call of a key; if there is none, make the call and record it.

        Equal calls at the same time are made once: the others wait for its end.

        Args:
            key: The key of the call.
            ask: Makes the call.
        """
        with self._lock:
            turn = self._turns.setdefault(key, threading.Lock())
        with turn:
            if key not in self.calls:
                self.append(ask())
            return self.calls[key]

    def model(self, name: str, made: Callable[[str], BaseChatModel] | None) -> RecordedChat:
        """Return the chat model of a name, which replies from the recording as far as it goes.

        Args:
            name: The user's name for the model.
            made: Makes the model of a name, which is asked where no reply is recorded. None: only
                recorded replies are given.

        Raises:
            ValueError: Another model is recorded under the name, or no model is, without `made`.
        """
        known = self.models.get(name)
        if made is None or not self.writes:
            if known is None:
                names = ", ".join(self.models) or "none"
                raise ValueError(
                    f"{self.path} holds no replies of the model {name!r} (it holds: {names}): "
                    f"name one of these, or record first, {self.how}"
                )
            return RecordedChat(recording=self, told=known)
        inner = made(name)
        told = ModelLine(name=name, fingerprint=model_fingerprint(inner), kind=inner._llm_type)
        if known is not None and known != told:
            raise ValueError(
                f"{self.path} holds replies of {known.fingerprint} under the name {name!r}, which "
                f"is {told.fingerprint} now: name another file, or give the model another name"
            )
        if known is None:
            self.append(told)
        return RecordedChat(recording=self, told=told, inner=inner)

    def lacks(self, asked: CallLine) -> DemurError:
        """Note that a call is not recorded, and return the error that says what is."""
        self.lacking.add(asked.key)
        asked = CallLine.model_validate_json(_written(asked))  # the message quotes it
        # If most of many calls are lacking, the recording is of something else, which soon shows.
        nearest = f"{self._nearest(asked)} " if len(self.lacking) <= _MOST_NEAREST else ""
        return DemurError(
            f"{self.path} holds no reply of {asked.model} to this prompt. {nearest}Record it, "
            f"{self.how}; or replay with the data, the options and the version of demur of the "
            "recording"
        )

    def _nearest(self, asked: CallLine) -> str:
        """Say how the most similar recorded call, by its words, differs from a call."""
        with self._lock:
            calls = [*self.calls.values()]
        if not calls:
            return "No call is recorded."
        words = Counter(_text_of(asked).split())
        nearest = max(calls, key=lambda call: (words & Counter(_text_of(call).split())).total())
        differing = [f"is of {nearest.model}"] if nearest.model != asked.model else []
        if nearest.prompt != asked.prompt:
            recorded, said = _where_they_differ(_text_of(nearest), _text_of(asked))
            differing.append(f"has {recorded} where this one has {said}")
        if nearest.options != asked.options:
            differing.append(f"has the options {nearest.options}, this one {asked.options}")
        return f"The nearest recorded one {', and '.join(differing) or 'is another sample'}."

    def embedding(self, inner: Callable[[], Embeddings], name: str) -> RecordedEmbeddings:
        """Return an embedding model whose vectors are recorded.

        Args:
            inner: Makes the model. It is called only for a text whose vector is missing.
            name: Identifies the vectors: other vectors need another name.
        """
        return RecordedEmbeddings(self, inner, name)


class RecordedChat(BaseChatModel):
    """Give the recorded reply to a prompt; if there is none, ask the model and record its reply."""

    recording: Any
    told: ModelLine
    inner: Any = None

    @property
    def call_policy(self) -> CallPolicy:
        """Return the model's own call policy, or the default one if there is no model."""
        own = getattr(self.inner, "call_policy", None)
        return own if isinstance(own, CallPolicy) else CallPolicy()

    @property
    def _llm_type(self) -> str:
        return self.told.kind

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        return {"fingerprint": self.told.fingerprint}  # the replies are the model's

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        options = {**kwargs, **({"stop": stop} if stop else {})}
        key = _key(self.told.fingerprint, messages, options)
        kept = self.recording.call(key, lambda: self._asked(key, messages, options))
        (reply,) = messages_from_dict([kept.reply])
        reply.response_metadata[SECONDS] = kept.seconds
        return ChatResult(generations=[ChatGeneration(message=reply)])

    def _asked(self, key: str, messages: list[BaseMessage], options: dict[str, Any]) -> CallLine:
        asked = CallLine(
            key=key,
            model=self.told.name,
            prompt=tuple((message.type, message.content) for message in messages),
            options=options,
            reply={},
            seconds=0,
        )
        if self.inner is None:
            raise self.recording.lacks(asked)
        started = time.monotonic()
        # Callbacks of the inner call would count it a second time.
        reply = self.inner.invoke(messages, {"callbacks": []}, **options)
        return answered(asked, reply, time.monotonic() - started)


class RecordedEmbeddings(Embeddings):
    """Give the recorded vectors of texts; compute and record those that are missing."""

    def __init__(self, recording: Recording, inner: Callable[[], Embeddings], name: str) -> None:
        self._recording, self._make = recording, inner
        self.fingerprint = name
        """The name that identifies the vectors."""
        self._inner: Embeddings | None = None
        self._lock = threading.Lock()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector per text, in the order of the texts.

        Raises:
            DemurError: A vector is not recorded, and the recording is only read.
        """
        keys = [key_of(self.fingerprint, text) for text in texts]
        known = self._recording.vectors
        with self._lock:
            lacking = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
            if lacking and not self._recording.writes:
                self._recording.lacking.update(lacking)
                raise DemurError(
                    f"{self._recording.path} lacks the vectors of {len(lacking)} texts: record "
                    f"them, {self._recording.how}"
                )
            if lacking:
                self._inner = self._inner or self._make()
                vectors = zip(
                    lacking, self._inner.embed_documents([*lacking.values()]), strict=True
                )
                self._recording.append(*(VectorLine.of(key, vector) for key, vector in vectors))
        return [known[key].numbers for key in keys]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query, which is embedded like any other text."""
        return self.embed_documents([text])[0]


@contextmanager
def open_recording(path: Path, replay: bool = False, how: str = _HOW) -> Iterator[Recording]:
    """Open a recording, or begin a new one.

    Args:
        path: The file.
        replay: Whether the file is only read.
        how: What to do to record, for messages.

    Raises:
        ValueError: The file cannot be read or written, is no recording, or is being written by
            another process.
    """
    if path.suffix == ".gz" and not replay:
        raise ValueError(f"{path}: a compressed recording is only read, with --replay")
    if replay and not path.is_file():
        raise ValueError(f"there is no recording {path}: record first, {how}")
    with nullcontext() if replay else locked(path, "recording", "pytest"):
        recording = Recording(path, not replay, how)
        recording.cut = torn(path, cut=not replay)
        for line in read(path):
            recording.note(line)
        yield recording


def _key(model: str, messages: Sequence[BaseMessage], options: Mapping[str, Any]) -> str:
    """Return the key of a call. Several samples of one prompt have keys of their own.

    Raises:
        DemurError: An option cannot be written as JSON, so that another process could not find the
            call.
    """
    prompt = [
        (message.type, message.content, message.response_metadata.get("sample"))
        for message in messages
    ]
    try:
        return key_of(model, json.dumps([prompt, options], sort_keys=True))
    except TypeError as error:
        raise DemurError(f"the options of a call cannot be recorded: {error}") from error


def answered(asked: CallLine, reply: BaseMessage, seconds: float) -> CallLine:
    """Return a call with the reply to it, as the file holds it."""
    told = json.dumps(messages_to_dict([reply])[0], default=repr, ensure_ascii=False)
    kept = json.loads(replace_surrogates(told))
    return asked.model_copy(update={"reply": kept, "seconds": seconds})


def _written(*lines: AnyLine) -> str:
    """Return lines as the file has them, without the values that are known to be secret."""
    text = "".join(as_json(line.model_dump(mode="json")) + "\n" for line in lines)
    for secret in sorted(known_secrets(), key=len, reverse=True):
        text = text.replace(as_json(secret)[1:-1], "[secret]")
    return text


def _text_of(call: CallLine) -> str:
    return "\n".join(f"{role}: {said}" for role, said in call.prompt)


def _where_they_differ(first: str, second: str) -> Iterator[str]:
    """Yield the part of each text that differs, in quotes, with some characters around it."""
    begin = _alike(first, second)
    end = _alike(first[begin:][::-1], second[begin:][::-1])
    for text in (first, second):
        part = text[max(0, begin - _AROUND) : len(text) - end + _AROUND]
        yield f'"{one_line(part)[:_LONGEST]}"'


def _alike(*texts: str) -> int:
    """Return how many characters the beginnings of texts share."""
    return len([*takewhile(lambda signs: len({*signs}) == 1, zip(*texts, strict=False))])


def key_of(*parts: str) -> str:
    """Return a key for texts, as hexadecimal digits."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
