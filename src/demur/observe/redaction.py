"""Remove credentials from records, and redact their texts as the user asks."""

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

from demur._secrets import SECRET, is_secret_name, known_secrets, secrets_in, without_secrets
from demur._text import replace_surrogates
from demur.errors import DemurError
from demur.observe.records import Record
from demur.schema import Evaluation

_log = logging.getLogger("demur.observe")

Redact = Literal["remove", "hash"] | Callable[[str], str] | None
"""What to do with texts: keep them (None), remove them, hash them, or call a function on each."""

HASH_KEY = "DEMUR_HASH_KEY"
"""The name of the environment variable that holds the key of the hashes."""


def redactor(redact: Redact = None) -> Callable[[Record], Record]:
    """Make the function that redacts every record before it leaves.

    The function removes credentials, whatever `redact` is. In metadata and details, it leaves out
    entries whose names say that they are secret. In every text, it writes "[secret]" in place of:

    - values that are known to be secret: those of the entries above, the keys of models that demur
      was given, and variables of the environment (`demur._secrets`);
    - text in a place where credentials stand (`demur._secrets`).

    With a `redact`, it then changes all other texts. It also changes tags and keys of mappings,
    unless they look like a name without spaces. A list says which fields stay: ids, times, numbers,
    names, labels, verdicts and fingerprints. A field that is not on the list is redacted, so new
    fields are redacted too. Offsets still refer to the original texts. Empty texts stay empty.

    Args:
        redact: None keeps the texts. "remove" replaces each text by a note with its length. "hash"
            replaces it by "sha256:" and 64 hexadecimal digits, which are the same for the same
            text. The key of the hashes is the value of `DEMUR_HASH_KEY` in the environment when
            `redactor` is called. Without a key, short texts can be guessed from their hashes. A
            function gets each text and returns the text to keep. If it raises an error or does not
            return a string, the text is removed, which is logged once.

    Returns:
        A function from record to record, safe in threads. With a `redact`, the returned record has
        `redacted` set. The function raises DemurError if no valid record can be made; the message
        does not quote the record.

    Raises:
        ValueError: `redact` is none of these values.
    """
    change = _changing(redact)

    def redacted(record: Record) -> Record:
        try:
            plain = json.loads(record.as_json())
            kept = _Walk(plain, change).kept(plain, _RECORD)
            if change is None and kept == plain:
                return record
            return Record.model_validate({**kept, "redacted": change is not None})
        except Exception as error:  # its message may quote the record
            raise DemurError(
                f"run {record.id} could not be redacted, and is not recorded: {_why(error)}"
            ) from None

    return redacted


def _why(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return f"it cannot be written as JSON ({type(error).__name__})"
    where = {".".join(map(str, one["loc"])) for one in error.errors(include_input=False)}
    return f"its fields {', '.join(sorted(where))} did not stay valid"


def redacted_evaluation(evaluation: Evaluation) -> dict[str, Any]:
    """Return an evaluation without credentials, as JSON values; texts stay (see `redactor`)."""
    plain = evaluation.model_dump(mode="json")
    kept: dict[str, Any] = _Walk(plain, None).kept(plain, _EVALUATION)
    return kept


# --- How a text is changed ----------------------------------------------------------------------


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
        f'redact must be None, "remove", "hash" or a function from text to text, got {redact!r}'
    )


def _digest(key: bytes, text: bytes) -> str:
    if key:
        return hmac.new(key, text, hashlib.sha256).hexdigest()
    return hashlib.sha256(text).hexdigest()


def _guarded(redact: Callable[[str], str]) -> Callable[[str], str]:
    """Wrap a user's function, so that a text is removed when the function fails."""
    warned = False

    def change(text: str) -> str:
        nonlocal warned
        try:
            changed: object = redact(text)
            if isinstance(changed, str):
                return replace_surrogates(changed)
            wrong = f"returned {type(changed).__name__}, not a string"
        except Exception as error:  # the text must not leave, whatever failed
            # The error's message may quote the text.
            wrong = f"raised {type(error).__name__}"
        if not warned:
            warned = True
            _log.warning(
                "the function given as redact= %s; texts are removed where it fails (logged once)",
                wrong,
            )
        return f"[removed: redact failed, {len(text)} characters]"

    return change


# --- Which fields stay --------------------------------------------------------------------------

_FIXED = "fixed"
"""A field that is made by machine or comes from a closed list. It stays unchanged."""
_ID = "id"
"""A field with an id, which may look like a key. It stays, without other credentials."""
_NAME = "name"
"""A field with a name, or a mapping of names to names. It stays, without credentials."""
_TAG = "tag"
"""A field with a name or a text. A value that looks like a name stays, without credentials."""
_Fields = Mapping[str, "str | _Fields"]


def _listed(
    fixed: str = "", id: str = "", name: str = "", tag: str = "", **within: _Fields
) -> _Fields:
    said = {_FIXED: fixed, _ID: id, _NAME: name, _TAG: tag}
    return within | {field: how for how, fields in said.items() for field in fields.split()}


_DOCUMENT = _listed(fixed="type", id="id")
_EVALUATION = _listed(
    fixed="failure usage",
    # Fingerprints identify models, prompts and options. They are compared character by character.
    name="name label cause fingerprints",
    claims=_listed(
        fixed="span label probabilities support action",
        evidence=_listed(fixed="span label"),
        calculations=_listed(fixed="follows", operands=_listed(fixed="span label")),
    ),
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
    traces=_listed(id="trace_id span_id address", name="system project"),
    attempts=_ATTEMPT,
)
_NAMELIKE = re.compile(r"[^\W\d][\w.:/-]{0,63}")


class _Walk:
    """Remove the secrets of one record, and change its texts."""

    def __init__(self, plain: Any, change: _Change) -> None:
        self._known = known_secrets() | secrets_in(plain)
        self._change = change

    def kept(self, value: Any, listed: str | _Fields | None) -> Any:
        """Return what stays of a field, or of a list of such fields, by its entry in the list."""
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
        """Return any value with its strings changed and its secret entries left out."""
        if isinstance(value, str):
            text = without_secrets(value, self._known)
            return change(text) if change and text else text
        if isinstance(value, list):
            # Headers are often written as pairs of a name and a value.
            secret = len(value) == 2 and isinstance(value[0], str) and is_secret_name(value[0])
            return (
                [self._free(value[0], change), SECRET]
                if secret
                else [self._free(entry, change) for entry in value]
            )
        if not isinstance(value, dict):
            return value
        kept: dict[str, Any] = {}
        # Archives of requests write headers as {"name": "Authorization", "value": ...}.
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
