"""What leaves of a record: never a credential, and texts only as far as the caller lets them."""

from __future__ import annotations

import hashlib
import hmac
import logging
import math
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

from langchain_core.documents import Document
from pydantic import ValidationError

from demur._secret_names import EnvironmentSecrets, is_secret_name
from demur._text import replace_surrogates
from demur.errors import DemurError
from demur.guard import Attempt
from demur.observe.credentials import SECRET, without_secrets
from demur.observe.records import Record
from demur.schema import Evaluation

_log = logging.getLogger("demur.observe")

Redact = Literal["remove", "hash"] | Callable[[str], str] | None
"""What becomes of texts: they stay, are removed, are hashed, or what a function makes of them."""

HASH_KEY = "DEMUR_HASH_KEY"
"""The variable of the environment with the key of the hashes."""


def redaction(redact: Redact = None) -> Callable[[Record], Record]:
    """Make the function that every record goes through before it leaves.

    Whatever `redact` is, credentials go. In metadata and details an entry whose name says that it
    is secret (keys, tokens that are no counts, passwords, cookies, headers) is left out. In every
    text, what looks like a credential, and the values of variables of the environment whose names
    say so, become "[secret]"; see `demur.observe.credentials.without_secrets`.

    Then texts are redacted: questions, answers, documents with their metadata, claims, evidence,
    explanations, errors, reasons, feedback, the run's metadata, strings in details; and tags and
    keys of mappings that are more than a name without spaces. What stays is listed: ids, times,
    numbers, names, labels, verdicts, evaluators' fingerprints. A field that is not listed is
    redacted, so new ones are too. Offsets stay those in the original texts; empty texts stay empty.

    Args:
        redact: None leaves texts as they are. "remove" puts a note with their length in their
            place. "hash" puts "sha256:" and 64 hexadecimal digits there, the same for the same
            text, so that records can be joined. The key of the hashes is in the environment,
            `DEMUR_HASH_KEY`, when this is called; without one they are plain, and short texts
            can be guessed from them. A function gets each text and returns what is kept; what it
            raises, or a result that is no string, removes the text, and is logged once.

    Returns:
        A function from record to record, safe in threads. With a `redact`, what it returns has
        `redacted` set. It raises DemurError, which does not quote the record, if no valid record
        can be made.

    Raises:
        ValueError: `redact` is none of these.
    """
    environment = EnvironmentSecrets()
    change = _changing(redact)

    def redacted(record: Record) -> Record:
        walk = _Walk(environment(), change)
        plain = _plain(record)
        kept = walk.fields(plain, _RECORD)
        if change is None and kept == plain:
            return record
        try:
            return Record.model_validate({**kept, "redacted": change is not None})
        except ValidationError as error:
            # Its own words quote the record.
            where = {
                ".".join(map(str, detail["loc"])) for detail in error.errors(include_input=False)
            }
            raise DemurError(
                f"run {record.id} could not be redacted, and is not kept: its fields "
                f"{', '.join(sorted(where))} did not stay valid"
            ) from None

    return redacted


def evaluation_redaction() -> Callable[[Evaluation], dict[str, Any]]:
    """As `redaction()`, of single evaluations: what leaves of one, in values of JSON."""
    environment = EnvironmentSecrets()

    def redacted(evaluation: Evaluation) -> dict[str, Any]:
        walk = _Walk(environment(), None)
        kept: dict[str, Any] = walk.fields(evaluation.model_dump(mode="json"), _EVALUATION)
        return kept

    return redacted


# --- What becomes of a text ---------------------------------------------------------------------


def _changing(redact: Redact) -> Callable[[str], str] | None:
    if redact is None:
        return None
    if redact == "remove":
        return lambda text: f"[removed: {len(text)} characters]"
    if redact == "hash":
        key = os.environ.get(HASH_KEY, "").encode()
        return lambda text: f"sha256:{_digest(key, text.encode())}"
    if callable(redact):
        return _guarded(redact)
    raise ValueError(
        f'redact is None, "remove", "hash" or a function from text to text, got {redact!r}'
    )


def _digest(key: bytes, text: bytes) -> str:
    if key:
        return hmac.new(key, text, hashlib.sha256).hexdigest()
    return hashlib.sha256(text).hexdigest()


def _guarded(redact: Callable[[str], str]) -> Callable[[str], str]:
    """A user's function, so that no text gets past it when it fails."""
    warned = False

    def change(text: str) -> str:
        nonlocal warned
        try:
            changed: object = redact(text)
            if isinstance(changed, str):
                return replace_surrogates(changed)
            wrong = f"returned {type(changed).__name__}, not a string"
        except Exception as error:  # whatever it is, the text must not leave
            # The error's words may quote the text.
            wrong = f"raised {type(error).__name__}"
        if not warned:
            warned = True
            _log.warning(
                "the function given as redact= %s; texts are removed where it fails (said once)",
                wrong,
            )
        return f"[removed: redact failed, {len(text)} characters]"

    return change


# --- What stays ---------------------------------------------------------------------------------

_FIXED = "fixed"
"""Made by machine or from a closed list: stays to the letter."""
_NAME = "name"
"""A name: stays, without credentials."""
_NAMES = "names"
"""Names by their names: all of them stay, without credentials."""
_TAGS = "tags"
"""Names that may be texts: those stay that look like names."""
_Fields = Mapping[str, "str | _Fields"]

_DOCUMENT: _Fields = {"id": _NAME, "type": _FIXED}
_CLAIM: _Fields = {
    "span": _FIXED,
    "label": _FIXED,
    "probabilities": _FIXED,
    "evidence": {"span": _FIXED, "label": _FIXED},
}
_EVALUATION: _Fields = {
    "name": _NAME,
    "label": _NAME,
    "failure": _FIXED,
    "cause": _NAME,
    "claims": _CLAIM,
    "usage": _FIXED,
    # Of models, prompts and options, and compared to the letter: see `Evaluator.fingerprints`.
    "fingerprints": _NAMES,
}
_FEEDBACK: _Fields = {"evaluations": _EVALUATION, "documents": _DOCUMENT}
_ATTEMPT: _Fields = {
    "origin": _FIXED,
    "recovery": _NAME,
    "feedback": _FEEDBACK,
    "contexts": _DOCUMENT,
    "evaluations": _EVALUATION,
    "verdict": _FIXED,
    "usage": _FIXED,
}
_RECORD: _Fields = {
    "id": _FIXED,
    "root": _FIXED,
    "time": _FIXED,
    "name": _NAME,
    "tags": _TAGS,
    "model": _NAME,
    "response": _NAME,
    "trace_id": _FIXED,
    "span_id": _FIXED,
    "attempts": _ATTEMPT,
    "outcome": _FIXED,
    "limit": _FIXED,
    "usage": _FIXED,
}
_NAMELIKE = re.compile(r"[^\W\d][\w.:/-]{0,63}")


class _Walk:
    """One record on its way: secrets out, texts changed."""

    def __init__(self, known: frozenset[str], change: Callable[[str], str] | None) -> None:
        self._known = known
        self._change = change

    def fields(self, value: Any, fields: _Fields) -> Any:
        """A model's values, or a list of them, as what is listed of them says."""
        if isinstance(value, list):
            return [self.fields(entry, fields) for entry in value]
        if not isinstance(value, dict):
            return self._free(value)
        return {name: self._field(entry, fields.get(name)) for name, entry in value.items()}

    def _field(self, value: Any, kept: str | _Fields | None) -> Any:
        if value is None or kept == _FIXED:
            return value
        if isinstance(kept, Mapping):
            return self.fields(value, kept)
        if kept == _NAME and isinstance(value, str):
            return self._clean(value)
        if kept == _NAMES and isinstance(value, dict):
            named = {key: entry for key, entry in value.items() if not is_secret_name(key)}
            return {self._clean(key): self._clean(entry) for key, entry in named.items()}
        if kept == _TAGS and isinstance(value, list):
            return [self._namelike(tag) for tag in value]
        return self._free(value)

    def _free(self, value: Any) -> Any:
        """Whatever is not listed: strings are changed, entries that are secret left out."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return self._mapping(value)
        if isinstance(value, list):
            if _are_pairs(value):
                value = [
                    [entry[0], SECRET] if is_secret_name(entry[0]) else entry for entry in value
                ]
            return [self._free(entry) for entry in value]
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)  # JSON has no such number
        return value

    def _mapping(self, entries: dict[str, Any]) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        # {"name": "Authorization", "value": ...}, as archives of requests have it.
        name_entry = entries.get("name", entries.get("key"))
        named = isinstance(name_entry, str) and "value" in entries and is_secret_name(name_entry)
        for key, value in entries.items():
            if is_secret_name(key) or (named and key == "value"):
                continue
            name = shown = self._namelike(key)
            number = 1
            while shown in kept:
                number += 1
                shown = f"{name} ({number})"
            kept[shown] = self._free(value)
        return kept

    def _namelike(self, name: str) -> str:
        return self._clean(name) if _NAMELIKE.fullmatch(name) else self._text(name)

    def _text(self, text: str) -> str:
        text = self._clean(text)
        return text if self._change is None or not text else self._change(text)

    def _clean(self, text: str) -> str:
        return without_secrets(replace_surrogates(text), self._known)


def _are_pairs(values: list[Any]) -> bool:
    """Whether this is a list of names with values, as headers often are."""
    return all(
        isinstance(value, list) and len(value) == 2 and isinstance(value[0], str)
        for value in values
    )


# --- A record in plain values -------------------------------------------------------------------

_DEEPEST = 32


def _plain(record: Record) -> dict[str, Any]:
    """A record in values of JSON; what JSON cannot hold as a string."""
    try:
        # A warning would quote the value.
        return record.model_dump(mode="json", fallback=str, warnings=False)
    except Exception:  # documents may hold anything: bytes that are no text, values in themselves
        attempts = tuple(map(_with_plain_documents, record.attempts))
        changed = record.model_copy(update={"attempts": attempts})
        return changed.model_dump(mode="json", warnings=False)


def _with_plain_documents(attempt: Attempt) -> Attempt:
    feedback = attempt.feedback
    if feedback:
        documents = tuple(map(_plain_document, feedback.documents))
        feedback = feedback.model_copy(update={"documents": documents})
    contexts = tuple(map(_plain_document, attempt.contexts))
    return attempt.model_copy(update={"contexts": contexts, "feedback": feedback})


def _plain_document(document: Document) -> Document:
    return document.model_copy(update={"metadata": _plain_value(document.metadata, 0)})


def _plain_value(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if depth < _DEEPEST:
        if isinstance(value, Mapping):
            return {_as_text(key): _plain_value(entry, depth + 1) for key, entry in value.items()}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [_plain_value(entry, depth + 1) for entry in value]
    return _as_text(value)


def _as_text(value: object) -> str:
    try:
        return str(value)
    except Exception:  # a value that cannot say what it is
        return f"<{type(value).__name__}>"
