"""What leaves of a record: never a credential, and texts only as far as the caller lets them."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

from pydantic import ValidationError

from demur._known_secrets import known_secrets, secrets_in
from demur._secret_names import is_secret_name
from demur._text import replace_surrogates
from demur.errors import DemurError
from demur.observe.credentials import SECRET, without_secrets
from demur.observe.records import Record
from demur.observe.writing import as_json
from demur.schema import Evaluation

_log = logging.getLogger("demur.observe")

Redact = Literal["remove", "hash"] | Callable[[str], str] | None
"""What becomes of texts: they stay, are removed, are hashed, or what a function makes of them."""

HASH_KEY = "DEMUR_HASH_KEY"
"""The variable of the environment with the key of the hashes."""


def redaction(redact: Redact = None) -> Callable[[Record], Record]:
    """Make the function that every record goes through before it leaves.

    Whatever `redact` is, credentials go. In metadata and details an entry whose name says that it
    is secret is left out. In every text "[secret]" stands in the place of what is known to be
    secret, which is the values of such entries, keys of models that demur was given, and variables
    of the environment (`demur._known_secrets`), and of what stands where a credential does
    (`demur.observe.credentials`).

    Then texts are redacted, with tags and keys of mappings that are more than a name without
    spaces. What stays is listed: ids, times, numbers, names, labels, verdicts, fingerprints. A
    field that is not listed is redacted, so new ones are too. Offsets stay those in the original
    texts; empty texts stay empty.

    Args:
        redact: None leaves texts as they are. "remove" puts a note with their length in their
            place. "hash" puts "sha256:" and 64 hexadecimal digits there, the same for the same
            text. The key of the hashes is in the environment, `DEMUR_HASH_KEY`, when this is
            called; without one they are plain, and short texts can be guessed from them. A
            function gets each text and returns what is kept; if it raises, or returns no string,
            the text is removed, and that is logged once.

    Returns:
        A function from record to record, safe in threads. With a `redact`, what it returns has
        `redacted` set. It raises DemurError, which does not quote the record, if no valid record
        can be made.

    Raises:
        ValueError: `redact` is none of these.
    """
    change = _changing(redact)

    def redacted(record: Record) -> Record:
        try:
            plain = json.loads(as_json(record))
            kept = _Walk(plain, change).kept(plain, _RECORD)
            if change is None and kept == plain:
                return record
            return Record.model_validate({**kept, "redacted": change is not None})
        except Exception as error:  # whose words may quote the record
            raise DemurError(
                f"run {record.id} could not be redacted, and is not kept: {_why(error)}"
            ) from None

    return redacted


def _why(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return f"it cannot be written as JSON ({type(error).__name__})"
    where = {".".join(map(str, one["loc"])) for one in error.errors(include_input=False)}
    return f"its fields {', '.join(sorted(where))} did not stay valid"


def redacted_evaluation(evaluation: Evaluation) -> dict[str, Any]:
    """As `redaction()`, of a single evaluation: what leaves of it, in values of JSON."""
    plain = evaluation.model_dump(mode="json")
    kept: dict[str, Any] = _Walk(plain, None).kept(plain, _EVALUATION)
    return kept


# --- What becomes of a text ---------------------------------------------------------------------


_Change = Callable[[str], str] | None


def _changing(redact: Redact) -> _Change:
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
_ID = "id"
"""An id, which may look like a key: stays, without other credentials."""
_NAME = "name"
"""A name, or names by their names: stays, without credentials."""
_TAG = "tag"
"""A name that may be a text: stays if it looks like a name, without credentials."""
_Fields = Mapping[str, "str | _Fields"]


def _listed(
    fixed: str = "", id: str = "", name: str = "", tag: str = "", **within: _Fields
) -> _Fields:
    said = {_FIXED: fixed, _ID: id, _NAME: name, _TAG: tag}
    return within | {field: how for how, fields in said.items() for field in fields.split()}


_DOCUMENT = _listed(fixed="type", id="id")
_EVALUATION = _listed(
    fixed="failure usage",
    # Fingerprints are of models, prompts and options, and compared to the letter.
    name="name label cause fingerprints",
    claims=_listed(fixed="span label probabilities", evidence=_listed(fixed="span label")),
)
_ATTEMPT = _listed(
    fixed="origin verdict usage",
    name="recovery",
    feedback=_listed(evaluations=_EVALUATION, documents=_DOCUMENT),
    contexts=_DOCUMENT,
    evaluations=_EVALUATION,
)
_RECORD = _listed(
    fixed="time outcome limit usage",
    id="id root response trace_id span_id",
    name="name model",
    tag="tags",
    attempts=_ATTEMPT,
)
_NAMELIKE = re.compile(r"[^\W\d][\w.:/-]{0,63}")


class _Walk:
    """One record on its way: secrets out, texts changed."""

    def __init__(self, plain: Any, change: _Change) -> None:
        self._known = known_secrets() | secrets_in(plain)
        self._change = change

    def kept(self, value: Any, listed: str | _Fields | None) -> Any:
        """What is left of a field, or of a list of such, by what is listed of it."""
        if value is None or listed == _FIXED:
            return value
        if isinstance(value, list) and listed is not None:
            return [self.kept(entry, listed) for entry in value]
        if isinstance(value, dict) and isinstance(listed, Mapping):
            return {name: self.kept(entry, listed.get(name)) for name, entry in value.items()}
        if listed == _ID:
            return without_secrets(value, self._known, is_id=True)
        if listed == _TAG:
            return self._namelike(value, self._change)
        return self._free(value, None if listed == _NAME else self._change)

    def _free(self, value: Any, change: _Change) -> Any:
        """Any value: its strings are changed, and entries that are secret left out."""
        if isinstance(value, str):
            text = without_secrets(value, self._known)
            return change(text) if change and text else text
        if isinstance(value, list):
            # A pair of a name and a value is how headers are often written.
            secret = len(value) == 2 and isinstance(value[0], str) and is_secret_name(value[0])
            return (
                [self._free(value[0], change), SECRET]
                if secret
                else [self._free(entry, change) for entry in value]
            )
        if not isinstance(value, dict):
            return value
        kept: dict[str, Any] = {}
        # {"name": "Authorization", "value": ...}, as archives of requests have it.
        named = is_secret_name(str(value.get("name", value.get("key"))))
        for key, entry in value.items():
            if is_secret_name(key) or (named and key == "value"):
                continue
            name, number = self._namelike(key, change), 1
            shown = name
            while shown in kept:
                number += 1
                shown = f"{name} ({number})"
            kept[shown] = self._free(entry, change)
        return kept

    def _namelike(self, name: str, change: _Change) -> Any:
        return self._free(name, None if _NAMELIKE.fullmatch(name) else change)
