"""A value in a short text that tells it from others and holds no credential."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any
from urllib.parse import urlsplit

from demur._secret_names import is_secret_name


def digits(text: str) -> str:
    """Twelve hexadecimal digits."""
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:12]


def marked_digits(text: str) -> str:
    """The digits, marked as standing for a value that is not shown."""
    return f"#{digits(text)}"


# --- Values ---------------------------------------------------------------------------------------

_PLAIN = re.compile(r"[^\W_][\w.:/+-]{0,63}", re.ASCII)
_OF_OTHER_TYPES = re.compile(r"[+-]?[\d.]+(e[+-]?\d+)?|true|false|none|nan|inf", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z0-9]+")
_LONG_WORD = 16
_WHOLE = 2**53


def shown(value: object) -> str:
    """A value as it stands behind its name."""
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
    """Whether a text can be shown: a short name, such as a key is not."""
    if not _PLAIN.fullmatch(text) or _OF_OTHER_TYPES.fullmatch(text):
        return False
    return not any(map(_looks_made_up, _WORD.findall(text)))


def _looks_made_up(word: str) -> bool:
    mixed = any(map(str.isdigit, word)) and any(map(str.isalpha, word))
    return len(word) >= _LONG_WORD and mixed


_NAME = re.compile(r"[\w-]{1,40}", re.ASCII)
_FLATTENED = 3
"""Mappings within each other up to this depth are told value by value, ..."""
_MOST = 16
"""... if they have no more entries than this."""


def named(values: Mapping[Any, Any], within: str = "", depth: int = 1) -> Iterator[str]:
    """The values of a mapping, each as "name=value", and mappings in it as "outer.inner=value".

    Left out is what is None, and what goes by a name that says that it is secret.
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


def _key(key: object) -> str:
    return as_text({key: None})


# --- Any value, as JSON -----------------------------------------------------------------------

_DEEPEST = 8


def as_text(params: object) -> str:
    """A value as JSON, equal for equal ones."""
    try:
        return json.dumps(params, sort_keys=True, default=stand_in)
    except (TypeError, ValueError, RecursionError):  # odd keys, or a value within itself
        return json.dumps(_plain(params), sort_keys=True)


def _plain(value: object, depth: int = 0) -> object:
    """As JSON. Without a `repr` of objects: an address in it would be another one each time."""
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
    """What stands for a value that JSON has not: a set's members, or the name of its class."""
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
    """Host, port and path of an address: "api.openai.com/v1".

    The scheme and its own port, the user's part and the query are left out. A path that may hold a
    key, and an address that cannot be read, are told by their digits.
    """
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:  # brackets that are no address, or a port that is none
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
    """The text, with digits in the place of each URL that may hold a password or a key."""
    return _URL.sub(_url_without_credentials, text)


def _url_without_credentials(match: re.Match[str]) -> str:
    url = match[0]
    try:
        parts = urlsplit(url)
        plain = "@" not in parts.netloc and not parts.query
    except ValueError:  # brackets that are no address
        plain = False
    return url if plain else marked_digits(url)
