"""Find credentials in texts: known values, and text that has the form of a credential.

The rules look at the form and know no vendors: assignments, headers, URLs, standard tokens, and
words that only a machine writes. Each rule takes time in proportion to the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from demur._secrets.names import is_secret_name

SECRET = "[secret]"
"""The text that replaces a credential."""

# Patterns, by a part in small letters that each match contains: most texts contain none of them.
_FORMS = {
    # A private key in PEM; if its end is missing, all text up to the end matches.
    "-----begin": re.compile(
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z0-9 ]{0,20}-----.*?"
        r"(?:-----END [A-Z0-9 ]{0,60}-----|\Z)",
        re.DOTALL,
    ),
    # A JSON web token.
    "eyj": re.compile(r"(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)*", re.ASCII),
    # The user and password of a URL.
    "://": re.compile(r"""(?<=://)[^\s/?#"'<>]+(?=@)"""),
    # A bearer token; a short word, or a word without a digit, may be prose.
    "bearer ": re.compile(r"(?<=bearer )(?=[a-z.~+/_-]*\d)[\w.~+/-]{16,}=*", re.ASCII | re.I),
}
# A short prefix, then 20 letters of both cases with digits between: no person writes such a word.
_KEY = re.compile(
    r"(?<![\w-])(?=[a-z]{2,8}[-_])[\w-]*(?<![A-Za-z0-9])(?=[A-Z0-9]*[a-z])(?=[a-z0-9]*[A-Z])"
    r"(?=[A-Za-z]*\d+[A-Za-z]+\d)[A-Za-z0-9]{20,}[\w-]*",
    re.ASCII,
)

_NAMED = re.compile(
    r"""(?<![\w.-])(?P<name>[\w.-]+)
    (?:(?P<closed>\\{0,3}["'`])\s{0,3}(?:(?P<pair>,)|:|=>?)  # ('name', or 'name':
      |\s{0,3}(?:=>|:?=(?!=))                         # name=
      |(?P<colon>:)(?=[\s"'`]))                       # name: as in a header or YAML
    \s{0,3}""",
    re.ASCII | re.VERBOSE,
)
_SEPARATOR = re.compile("""[=:]|["'`],""")
_VALUE = re.compile(
    r"""[bru]?(?P<quote>["'`])(?P<quoted>(?:\\.|(?!(?P=quote))[^\\\n])+)
    |[bru]?(?P<escaped>\\+["'`])(?P<inner>.+?)(?:(?P=escaped)|$)  # in quotes inside quotes
    |(?P<bare>[^\s"'`,;&<>()\[\]{}\\](?:[^\s"'`,;&<>\\]|&(?![\w.-]+=))*)""",
    re.VERBOSE | re.MULTILINE,
)
_OF_LINE = re.compile(
    r"""(?:(?:bearer|basic|digest|negotiate|ntlm|hawk|aws4-hmac-sha256)\s{1,3}\S
    |[^\s=]{1,128}=|(?=\S{0,99}\d)\S{16})[^\n]*""",
    re.IGNORECASE | re.VERBOSE,
)
_WHOLE_LINES = ("authorization", "cookie")
_IN_QUERIES = re.compile("key|sig|.*signature")
_AFTER_VALUE = ".:!?)]}"


def without_secrets(text: str, known: Iterable[str] = (), *, is_id: bool = False) -> str:
    """Return the text with `SECRET` in place of each credential.

    Credentials are:

    - the values in `known`;
    - values assigned to a name that says that they are secret, such as "api_key=...", '"password":
      "..."', headers, and parameters of a URL (there also `key`, `sig` and `...signature`);
    - user and password in a URL;
    - JSON web tokens, private keys in PEM, and "Bearer ..." with a digit;
    - words that look like a key: "sk-" or another short prefix, then 20 or more mixed letters and
      digits.

    Args:
        text: Any text.
        known: Values that are secret wherever they stand.
        is_id: Whether the text is an id. An id may look like a key, and then stays.
    """
    for value in sorted(known, key=len, reverse=True):
        text = text.replace(value, SECRET)
    lower = text.lower()
    for mark, form in _FORMS.items():
        if mark in lower:
            text = form.sub(SECRET, text)
    if not is_id:
        text = _KEY.sub(SECRET, text)
    return _without_named(text) if _SEPARATOR.search(text) else text


def _without_named(text: str) -> str:
    pieces, at = [], 0
    for named in _NAMED.finditer(text):
        if named.start() >= at and (span := _value(text, named)) and text[slice(*span)] != SECRET:
            pieces += [text[at : span[0]], SECRET]
            at = span[1]
    return "".join((*pieces, text[at:]))


def _value(text: str, named: re.Match[str]) -> tuple[int, int] | None:
    """Return the span of a name's value, if the name says that the value is secret."""
    name, start = named["name"].lower(), named.end()
    before = text[named.start() - 1 : named.start()]
    queried = before in ("?", "&", ";")
    if not (is_secret_name(named["name"]) or (queried and _IN_QUERIES.fullmatch(name))):
        return None
    if name.endswith(_WHOLE_LINES) and not named["closed"]:
        line = _OF_LINE.match(text, start)
        quoted = text.find(before, start) if before in ("'", '"', "`") else -1
        return line and (start, min(line.end(), quoted) if quoted > start else line.end())
    if named["colon"] and not ("-" in name or "_" in name):  # "The password: ..." is prose
        return None
    if named["closed"] and before != named["closed"][-1]:
        return None
    within = text[max(0, named.start() - 4) : named.start()].rstrip("bru\\\"'`")
    if named["pair"] and not within.endswith(("(", "[")):
        return None
    value = _VALUE.match(text, start)
    if value is None or (named["closed"] and value["bare"]):
        return None
    group = next((one for one in ("quoted", "inner") if value[one]), "bare")
    start, end = value.span(group)
    return start, start + len(value[group].rstrip(_AFTER_VALUE)) if group == "bare" else end
