"""Names that say that something is secret: of a mapping's keys, of variables, in texts."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from functools import lru_cache

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_LONGEST_NAME = 200


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_SECRET_WORDS = _words(
    "password passwords passwd passphrase passcode pwd secret secrets credential credentials creds "
    "authorization authentication auth oauth bearer cookie cookies jwt otp csrf xsrf"
)
# As they are run together: "apikey", "x-accesstoken".
_SECRET_PARTS = (
    *("apikey", "accesskey", "secretkey", "privatekey", "accesstoken", "authtoken"),
    *("refreshtoken", "sessiontoken", "password", "passphrase", "credential", "clientsecret"),
)
# A name that ends so says something about a secret, or where it is.
_ABOUT = _words(
    "file files path paths dir directory folder name type kind url uri endpoint count length limit "
    "expiry expires ttl policy method mode provider required enabled version sock socket "
    "ids user username host port region scheme scope scopes audience issuer domain realm tenant"
)
QUALIFIERS = _words(
    "api access secret private subscription auth refresh session security service account bearer "
    "id ssh signing encryption client app csrf device deploy personal admin user"
)
"""What stands before "key" or "token" where that opens something."""
# With these, tokens are pieces of text.
_COUNTED = _words(
    "max min num n number count counts total input output prompt completion cached cache reasoning "
    "thinking audio limit limits usage used budget per type types text length size window chunk "
    "overlap first last next previous special eos bos pad unk sep cls mask stop start end ids idx "
    "index position probability prob logprob logprobs time rate cost price estimated remaining "
    "generated counter"
)
# With these, a key is a place in a table.
_LOOKED_UP = _words(
    "primary foreign sort partition cache public group dict metadata document documents doc docs "
    "index idempotency object row routing unique natural input output message messages memory "
    "question answer context contexts id source record run item state prompt parent child range "
    "lookup join business composite dedup translation locale hot value content text page chunk "
    "vector name config feature shift reference label "
    "default exception error escaped"
)
_HEADERS = frozenset(("header", "headers"))
_OF_HTTP = _words(
    "http https request response default extra custom proxy client server raw additional common"
)
_OF_PASS = _words("user db database smtp mail ftp mysql pg postgres redis root admin")


def is_secret_name(name: str) -> bool:
    """Whether what goes by this name is a credential: "api_key", "X-Auth-Token", "dbPassword".

    Counts ("max_tokens"), keys of tables ("primary_key") and places ("token_path") are none.
    Headers of a request are ("headers"), those of a page are not ("Header 1").
    """
    # Longer ones are not remembered, since whoever writes them would decide how much is.
    return _says_secret(name) if len(name) <= _LONGEST_NAME else _says_secret.__wrapped__(name)


@lru_cache(maxsize=4096)
def _says_secret(name: str) -> bool:
    words = [word.lower() for word in _WORD.findall(name)]
    numbered = bool(words) and words[-1].isdigit()
    while words and words[-1].isdigit():
        words.pop()
    if not words or words[-1] in _ABOUT:
        return False
    others = set(words[:-1])
    if not _SECRET_WORDS.isdisjoint(words) or any(p in "".join(words) for p in _SECRET_PARTS):
        return True
    if not _HEADERS.isdisjoint(words):
        return not numbered and (not others or bool(_OF_HTTP & others))
    if "token" in words or "tokens" in words:
        if not _COUNTED.isdisjoint(words):
            return False
        return "token" in words or not QUALIFIERS.isdisjoint(words)
    if words[-1] == "key":
        return bool(others) and not _LOOKED_UP & others
    if words[-1] == "keys":
        return bool(QUALIFIERS & others)
    return words[-1] == "pass" and bool(_OF_PASS & others)


# --- Values of the environment -----------------------------------------------------------------

_SHORTEST_VALUE = 8
_PLAIN_WORD = 16
_EVERY = 1.0


def secrets_of(environment: Mapping[str, str]) -> frozenset[str]:
    """The values of variables whose names say that they are secret, of 8 characters or more.

    Left out are paths, and words of letters alone that are shorter than 16: a password "postgres"
    cannot be told from the word.
    """
    values = (value.strip() for name, value in environment.items() if is_secret_name(name))
    return frozenset(value for value in values if _tells(value))


def _tells(value: str) -> bool:
    plain = value.isalpha() and (value.islower() or value.isupper() or value.istitle())
    return (
        len(value) >= _SHORTEST_VALUE
        and not (plain and len(value) < _PLAIN_WORD)
        and not os.path.isabs(value)
        and not value.startswith(("~", "./"))
    )


class EnvironmentSecrets:
    """The secrets in this process's environment; one that was there once stays one.

    Safe in threads. Looked for again after a second, so keys that are set later are known too.
    """

    def __init__(self) -> None:
        self._known = secrets_of(os.environ)
        self._at = time.monotonic()

    def __call__(self) -> frozenset[str]:
        """The values."""
        if time.monotonic() - self._at > _EVERY:
            self._known |= secrets_of(dict(os.environ))
            self._at = time.monotonic()
        return self._known
