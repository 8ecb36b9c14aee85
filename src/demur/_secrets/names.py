"""Recognise names of secrets: names of a mapping's entries, of variables and of headers."""

from __future__ import annotations

import re
from functools import lru_cache

_LONGEST = 200
"""The number of characters that are read: they are remembered, and a long name would fill that."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# These are looked for in a name's words, run together: "apikey" is "api_key", "x-accesstoken".
_SAYS_SECRET = re.compile(
    "password|passwd|passphrase|passcode|secret|credential|authorization|authentication|bearer|"
    "cookie|csrf|xsrf|(?:api|access|private)key|(?:access|auth|refresh|session)token"
)


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_SECRET_WORDS = _words("auth oauth creds pwd jwt otp")
# A name that ends with one of these words describes a secret, or says where it is.
_ABOUT = _words(
    "file files path paths dir folder name type kind url uri endpoint count length limit expiry "
    "expires ttl policy method mode provider required enabled version user username host port ids "
    "region scheme scope scopes audience issuer domain realm tenant"
)
# Beside one of these words, a "token" is a piece of text.
_COUNTED = _words(
    "max min num n count total input output prompt completion cached reasoning limit usage used "
    "per first last next eos bos pad unk sep cls mask stop start end ids idx index position prob "
    "logprob time rate cost price special"
)
# Beside one of these words, a "key" is a place in a table.
_LOOKED_UP = _words(
    "primary foreign sort partition cache public group document doc metadata index row unique "
    "input output message memory question answer context id source record run state parent lookup "
    "join value content text chunk vector config feature error"
)
_OF_HTTP = _words("http https request response default extra custom proxy client")


def is_secret_name(name: str) -> bool:
    """Return whether a value of this name is a credential: "api_key", "X-Auth-Token", "dbPassword".

    Counts ("max_tokens"), keys of tables ("primary_key") and places ("token_path") are not secret.
    The headers of a request ("headers") are; the headers of a page ("Header 1") are not.
    """
    return _says_secret(name[-_LONGEST:])


@lru_cache(maxsize=4096)
def _says_secret(name: str) -> bool:
    words = [word.lower() for word in _WORD.findall(name)]
    numbered = bool(words) and words[-1].isdigit()
    while words and words[-1].isdigit():
        words.pop()
    if not words or words[-1] in _ABOUT:
        return False
    last, others = words[-1], set(words[:-1])
    if _SAYS_SECRET.search("".join(words)):
        return "secretary" not in words
    if not _SECRET_WORDS.isdisjoint(words):
        return True
    if last in ("header", "headers"):
        return not numbered and (not others or bool(_OF_HTTP & others))
    if "token" in words:
        return _COUNTED.isdisjoint(words)
    if last == "pass":
        return bool(others)
    return last == "key" and bool(others) and _LOOKED_UP.isdisjoint(others)
