"""Credentials in texts: known values, and what stands where a credential stands by rule.

The rules are those of form, and know no vendor: assignments, headers, URLs, standard tokens, and
words that only a machine writes. Each takes time in proportion to the text, whatever that is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from demur._secret_names import is_secret_name

SECRET = "[secret]"
"""What stands in a text in the place of a credential."""

# Each with what it cannot do without, in small letters: most texts have none of it.
_FORMS = {
    # A private key in PEM; one that was cut off goes to the end.
    "-----begin": re.compile(
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z0-9 ]{0,20}-----.*?"
        r"(?:-----END [A-Z0-9 ]{0,60}-----|\Z)",
        re.DOTALL,
    ),
    # A JSON web token.
    "eyj": re.compile(r"(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)*", re.ASCII),
    # The user's part of a URL.
    "://": re.compile(r"""(?<=://)[^\s/?#"'<>]+(?=@)"""),
    # A bearer's token; what is short or has no digit may be prose.
    "bearer ": re.compile(r"(?<=bearer )(?=[a-z.~+/_-]*\d)[\w.~+/-]{16,}=*", re.ASCII | re.I),
}
# Behind a short prefix 20 letters of both cases with digits in between: nobody writes so by hand.
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
    """The text with `SECRET` in the place of each credential in it.

    These are: `known`; what is assigned to a name that says secret ("api_key=...", '"password":
    "..."', headers, parameters of a URL, of which `key`, `sig` and `...signature` say so too); the
    user's part of a URL; JSON web tokens, private keys in PEM, "Bearer ..." with a digit; and words
    that look like a key: "sk-" or another short prefix, and 20 letters and digits in a muddle.

    Args:
        text: Any text.
        known: Values that are secret wherever they stand.
        is_id: Whether it is an id. Those may look like a key, and stay if they do.
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
    """Where the value of a name stands, if that name says secret."""
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
