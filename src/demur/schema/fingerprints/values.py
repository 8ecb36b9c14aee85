"""Write a value as a short text that identifies it and holds no credential."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any
from urllib.parse import urlsplit

from langchain_core.runnables import RunnableSerializable
from pydantic_core import to_jsonable_python

from demur._secrets import is_secret_name


def digits(text: str) -> str:
    """Return twelve hexadecimal digits of a hash of the text."""
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:12]


def marked_digits(text: str) -> str:
    """Return the digits with a mark, which says that they replace a value that is not shown."""
    return f"#{digits(text)}"


# --- Values ---------------------------------------------------------------------------------------

_PLAIN = re.compile(r"[^\W_][\w.:/+-]{0,63}", re.ASCII)
_OF_OTHER_TYPES = re.compile(r"[+-]?[\d.]+(e[+-]?\d+)?|true|false|none|nan|inf", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z0-9]+")
_LONG_WORD = 16
_WHOLE = 2**53


def shown(value: object) -> str:
    """Return a value in the form in which it stands behind its name."""
    match value:
        case bool():
            return str(value)
        case int() | float():
            whole = isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE
            return str(int(value) if whole else value)  # 0 and 0.0 are the same temperature
        case Enum():
            return str(stand_in(value))
        case str() if "://" in value:
            return host_of(value)
        case str():
            return value if _is_plain(value) else marked_digits(value)
        case Mapping() | list() | tuple() | set() | frozenset():
            return marked_digits(as_text(value))
    return str(stand_in(value))


def _is_plain(text: str) -> bool:
    """Return whether a text can be shown: a short name can, a key cannot."""
    if not _PLAIN.fullmatch(text) or _OF_OTHER_TYPES.fullmatch(text):
        return False
    return not any(map(_looks_made_up, _WORD.findall(text)))


def _looks_made_up(word: str) -> bool:
    mixed = any(map(str.isdigit, word)) and any(map(str.isalpha, word))
    return len(word) >= _LONG_WORD and mixed


_NAME = re.compile(r"[\w-]{1,40}", re.ASCII)
_FLATTENED = 3
"""The depth of nested mappings down to which each value is written on its own."""
_MOST = 16
"""The number of entries up to which a nested mapping is written value by value."""


def named(values: Mapping[Any, Any], within: str = "", depth: int = 1) -> Iterator[str]:
    """Yield the values of a mapping as "name=value", those of inner ones as "outer.name=value".

    Values that are None are left out, and so are values whose name says that they are secret.
    """
    told = [
        (key if isinstance(key, str) and _NAME.fullmatch(key) else marked_digits(_key(key)), value)
        for key, value in values.items()
        if value is not None and not (isinstance(key, str) and is_secret_name(key))
    ]
    for name, value in sorted(told, key=lambda item: item[0]):
        if isinstance(value, Mapping) and depth < _FLATTENED and len(value) <= _MOST:
            yield from named(value, f"{within}{name}.", depth + 1)
        else:
            yield f"{within}{name}={shown(value)}"


def fields_in(runnable: RunnableSerializable[Any, Any]) -> dict[str, Any]:
    """Return the fields of a Runnable, without its name and what is secret by the field's name."""
    given = runnable.model_dump(exclude={"name"}, exclude_none=True, warnings=False)
    fields: dict[str, Any] = {}
    for name, value in given.items():
        if not is_secret_name(name):
            # Paths and addresses are texts in JSON. A set has no order there.
            plain = to_jsonable_python(value, fallback=stand_in, bytes_mode="base64")
            plain = shown(value) if isinstance(plain, (list, dict)) else plain
            fields[name] = without_credentials(plain) if isinstance(plain, str) else plain
    return fields


def _key(key: object) -> str:
    return as_text({key: None})


# --- Any value, as JSON -----------------------------------------------------------------------

_DEEPEST = 8


def as_text(params: object) -> str:
    """Return a value as JSON; equal values give equal texts."""
    try:
        return json.dumps(params, sort_keys=True, default=stand_in)
    except (TypeError, ValueError, RecursionError):  # odd keys, or a value that contains itself
        return json.dumps(_plain(params), sort_keys=True)


def _plain(value: object, depth: int = 0) -> object:
    """Return a value in a form that JSON has.

    The `repr` of an object is not used, because it may hold an address, which differs each time.
    """
    if isinstance(value, Mapping) and depth < _DEEPEST:
        return {
            repr(key) if isinstance(key, (str, int, float)) else str(stand_in(key)): _plain(
                one, depth + 1
            )
            for key, one in value.items()
        }
    if isinstance(value, (list, tuple)) and depth < _DEEPEST:
        return [_plain(one, depth + 1) for one in value]
    return value if value is None or isinstance(value, (str, int, float)) else stand_in(value)


def stand_in(value: object) -> object:
    """Return what replaces a value that JSON cannot hold: a set's members, or the class's name."""
    if isinstance(value, (set, frozenset)):
        return sorted(map(as_text, value))
    if isinstance(value, Enum):
        return f"{_type_name(value)}.{value.name}"
    return _type_name(value)


def _type_name(value: object) -> str:
    return type(value).__qualname__


# --- Addresses ------------------------------------------------------------------------------------

_HOST = re.compile(r"[\w.:-]+", re.ASCII)
_PATH = re.compile(r"[\w./-]{1,100}", re.ASCII)
_PORTS = {"http": 80, "https": 443}
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>]+")


def host_of(address: str) -> str:
    """Return the host, port and path of an address: "api.openai.com/v1".

    The scheme, the scheme's default port, the user's part and the query are left out. Digits
    replace a path that may hold a key, and an address that cannot be read.
    """
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:  # brackets without a valid address, or an invalid port
        return marked_digits(address)
    if not host or not _HOST.fullmatch(host):
        return marked_digits(address)
    where = f"[{host}]" if ":" in host else host
    if port is not None and port != _PORTS.get(parts.scheme):
        where += f":{port}"
    path = parts.path.strip("/")
    if not path:
        return where
    shows = _PATH.fullmatch(path) and not any(map(_looks_made_up, _WORD.findall(path)))
    return f"{where}/{path if shows else marked_digits(path)}"


def without_credentials(text: str) -> str:
    """Return the text with digits in place of each URL that may hold a password or a key."""
    return _URL.sub(_url_without_credentials, text)


def _url_without_credentials(match: re.Match[str]) -> str:
    url = match[0]
    try:
        parts = urlsplit(url)
        plain = "@" not in parts.netloc and not parts.query
    except ValueError:  # brackets without a valid address
        plain = False
    return url if plain else marked_digits(url)
