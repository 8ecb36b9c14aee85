"""A recording: every call of a model and what came of it, in one file that grows.

A recording is of JSON lines: the models that were asked, each under the name that the user gives
it; the calls, with prompt, options, reply and seconds; and the vectors of an embedding model. What
is in it is not asked again, so a table goes on where it was stopped, and is worked out without any
model from a recording that is whole. A file whose name ends in ".gz" is only read.

A line is in the file as soon as its reply is there. One process writes at a time. A last line that
a killed one left torn is cut off by the next one that writes, and passed over by one that reads.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, messages_from_dict, messages_to_dict
from langchain_core.outputs import ChatGeneration, ChatResult

from demur import DemurError
from demur._fingerprints import model_fingerprint
from demur._jsonl import as_json
from demur._text import replace_surrogates
from demur.runtime import CallPolicy
from demur_research.recording_file import (
    AnyLine,
    CallLine,
    ModelLine,
    VectorLine,
    cannot,
    locked,
    mend,
    read,
    torn,
    write,
)

T = TypeVar("T")

SECONDS = "recorded_seconds"
"""Where a reply's `response_metadata` says how long it took when it was recorded."""


class Recording:
    """The lines of a recording in memory, and its file. Made by `open_recording`."""

    def __init__(self, path: Path, writes: bool) -> None:
        self.path, self.writes = path, writes
        self.cut = 0
        """Bytes of a torn last line that were cut off, or passed over."""
        self.lacking: set[str] = set()
        """The keys of what was asked for, is not recorded, and could not be asked of a model."""
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
        """Write lines, and take them into memory.

        Raises:
            DemurError: They could not be written.
        """
        text = "".join(as_json(line.model_dump(mode="json")) + "\n" for line in lines)
        with self._lock:
            try:
                write(self.path, text.encode())
            except OSError as error:
                why = cannot("write", self.path, error)
                raise DemurError(f"{why}; what is there is kept, and the same goes on") from error
            for line in lines:
                self.note(line)

    def call(self, key: str, ask: Callable[[], CallLine]) -> CallLine:
        """Return the recorded call of a key, which is asked for and recorded if there is none.

        Equal calls at a time are asked once: the others wait for its end.
        """
        with self._lock:
            turn = self._turns.setdefault(key, threading.Lock())
        with turn:
            if key not in self.calls:
                self.append(ask())
            return self.calls[key]

    def model(self, name: str, made: Callable[[str], BaseChatModel] | None) -> RecordedChat:
        """The chat model of a name: the recorded replies, and where they end the model itself.

        Args:
            name: What the user calls it.
            made: Makes the model of a name. None: only recorded replies are given.

        Raises:
            ValueError: Another model is recorded under the name, or, without `made`, none.
        """
        known = self.models.get(name)
        if made is None or not self.writes:
            if known is None:
                names = ", ".join(self.models) or "none"
                raise ValueError(
                    f"{self.path} holds no replies of the model {name!r} (it holds: {names}): "
                    "--model names one of these, or record first, without --replay"
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

    def embedding(self, inner: Callable[[], Embeddings], name: str) -> RecordedEmbeddings:
        """An embedding model whose vectors are recorded.

        Args:
            inner: Makes the model; only called for a text whose vector is missing.
            name: What tells its vectors from others'.
        """
        return RecordedEmbeddings(self, inner, name)


class RecordedChat(BaseChatModel):
    """A chat model that gives the recorded reply to a prompt, and asks and records otherwise."""

    recording: Any
    told: ModelLine
    inner: Any = None

    @property
    def call_policy(self) -> CallPolicy:
        """The model's own; recorded replies take no time."""
        own = getattr(self.inner, "call_policy", None)
        return own if isinstance(own, CallPolicy) else CallPolicy()

    @property
    def _llm_type(self) -> str:
        return self.told.kind

    # The model's, since its replies are those of the model. It has no attribute `fingerprint`, by
    # which demur would take what an earlier process measured of the local model, and ask nothing:
    # the recording would lack those calls, and could be replayed on that machine only.
    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        return {"fingerprint": self.told.fingerprint}

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
        if self.inner is None:
            self.recording.lacking.add(key)
            raise DemurError(
                f"{self.recording.path} holds no reply of {self.told.name} to this prompt: record "
                "it, without --replay, with the data, the options and the version of demur that "
                "are meant"
            )
        started = time.monotonic()
        # A run of its own would be counted beside this one.
        reply = self.inner.invoke(messages, {"callbacks": []}, **options)
        return CallLine(
            key=key,
            model=self.told.name,
            prompt=tuple((message.type, message.content) for message in messages),
            options=options,
            reply=_plain(messages_to_dict([reply])[0]),
            seconds=time.monotonic() - started,
        )


class RecordedEmbeddings(Embeddings):
    """Vectors from a recording; of texts that it lacks, from the model, which are then recorded."""

    def __init__(self, recording: Recording, inner: Callable[[], Embeddings], name: str) -> None:
        self._recording, self._make, self._name = recording, inner, name
        self._inner: Embeddings | None = None
        self._lock = threading.Lock()

    @property
    def fingerprint(self) -> str:
        """What tells the vectors from others'."""
        return self._name

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector per text.

        Raises:
            DemurError: One is not recorded, and the recording is only read.
        """
        keys = [_hash(self._name, text) for text in texts]
        known = self._recording.vectors
        lacking = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if lacking:
            with self._lock:
                self._embed({key: text for key, text in lacking.items() if key not in known})
        return [known[key].numbers for key in keys]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a text, which is embedded as any other."""
        return self.embed_documents([text])[0]

    def _embed(self, lacking: Mapping[str, str]) -> None:
        if not lacking:  # others have done it in the meantime
            return
        if not self._recording.writes:
            self._recording.lacking.update(lacking)
            raise DemurError(
                f"{self._recording.path} lacks the vectors of {len(lacking)} texts: record them, "
                "without --replay"
            )
        if self._inner is None:
            self._inner = self._make()
        vectors = self._inner.embed_documents([*lacking.values()])
        self._recording.append(
            *(VectorLine.of(key, vector) for key, vector in zip(lacking, vectors, strict=True))
        )


@contextmanager
def open_recording(path: Path, replay: bool = False) -> Iterator[Recording]:
    """Open a recording, or begin one.

    Args:
        path: The file.
        replay: Whether it is only read.

    Raises:
        ValueError: It cannot be read or written, is no recording, or is being written by another
            process.
    """
    if path.suffix == ".gz" and not replay:
        raise ValueError(f"{path}: a compressed recording is only read: give --replay as well")
    if replay and not path.is_file():
        raise ValueError(f"there is no recording {path}: record first, without --replay")
    with nullcontext() if replay else locked(path):
        recording = Recording(path, writes=not replay)
        recording.cut = torn(path) if replay else mend(path)
        for line in read(path):
            recording.note(line)
        yield recording


def _key(model: str, messages: Sequence[BaseMessage], options: Mapping[str, Any]) -> str:
    """What a call is known by. Several samples of one prompt are told apart by their numbers.

    Raises:
        DemurError: An option cannot be written: what it is in another process would not be known.
    """
    prompt = [
        (message.type, message.content, message.response_metadata.get("sample"))
        for message in messages
    ]
    try:
        return _hash(model, json.dumps([prompt, options], sort_keys=True))
    except TypeError as error:
        raise DemurError(f"the options of a call cannot be recorded: {error}") from error


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _plain(value: T) -> T:
    """As the file has it."""
    plain: T = json.loads(replace_surrogates(json.dumps(value, default=repr, ensure_ascii=False)))
    return plain
