"""Credentials in texts: where one stands.

Everything here takes time in proportion to the text, whatever that is: fixed words are found first,
and what stands at them is read with patterns that cannot run on.
"""

from __future__ import annotations

import base64
import binascii
import re
import string
from collections.abc import Iterable, Iterator

from demur._secret_names import QUALIFIERS, is_secret_name

SECRET = "[secret]"
"""What stands in a text in the place of a credential."""

Span = tuple[int, int]

_LEAST = 8
"""Characters of the shortest text in which a credential is looked for."""
_SHORTEST_KEY = 15
"""Characters of the shortest key that is known by its prefix."""
_ASCII_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_LETTERS = frozenset(string.ascii_letters + string.digits)
_IDENTIFIER = string.ascii_letters + string.digits + "_.-"


def without_secrets(text: str, known: Iterable[str] = ()) -> str:
    """The text with `SECRET` in the place of each credential in it.

    Found are: keys with the prefixes of common vendors, JSON web tokens, private keys in PEM,
    "Bearer ..." and "Basic ...", what stands after a name that says secret ("api_key=...",
    '"password": "..."', headers, parameters of a URL), the user's part of a URL, and `known`. What
    looks like a word of prose after such a name is left.

    Args:
        text: Any text.
        known: Values that are secret wherever they stand.
    """
    if len(text) < _LEAST:
        return text
    spans = sorted(_spans(text, known))
    if not spans:
        return text
    pieces, at = [], 0
    for start, end in spans:
        if end > at:
            if start >= at:
                pieces += [text[at:start], SECRET]
            at = end
    return "".join((*pieces, text[at:]))


def _spans(text: str, known: Iterable[str]) -> Iterator[Span]:
    for value in known:
        yield from ((at, at + len(value)) for at in _places(text, value))
    if max(map(len, text.split()), default=0) >= _SHORTEST_KEY:  # most texts have no such word
        yield from _vendors(text)
        yield from _web_tokens(text)
    lower = text.lower()
    if len(lower) != len(text):  # some letters become two
        lower = text.translate(_ASCII_LOWER)
    yield from _private_keys(text)
    yield from _schemes(text, lower)
    yield from _in_urls(text)
    yield from _named(text, lower)
    yield from _header_lines(text, lower)


def _places(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + len(part))


def _made_up(value: str, least: int = _LEAST) -> bool:
    """Whether nobody would write this in prose: letters with digits, or capitals in between."""
    if len(value) < least or "://" in value or len(value.split()) > 1:
        return False
    letters = any(map(str.isalpha, value))
    return letters and (any(map(str.isdigit, value)) or len(_HUMP.findall(value)) > 1)


_HUMP = re.compile("[a-z][A-Z]")
# Of ASCII alone: some scripts put no space between a word and a key.
_ALNUM, _URL_SAFE, _ANY = (
    re.compile(f"[{signs}]+", re.ASCII) for signs in ("A-Za-z0-9", r"\w-", r"\w.*+/=-")
)
# Prefix; how the rest is written; how much of it there has to be.
_VENDORS = (
    *((prefix, _ANY, 12) for prefix in ("sk-", "csk-", "sk_live_", "sk_test_", "rk_live_")),
    *((prefix, _ANY, 12) for prefix in ("rk_test_", "whsec_", "xai-", "pplx-", "nvapi-")),
    *((prefix, _ANY, 12) for prefix in ("tvly-", "pcsk_", "lsv2_", "ls__", "glpat-", "jina_")),
    *((prefix, _ANY, 12) for prefix in ("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xapp-")),
    *((prefix, _ANY, 12) for prefix in ("github_pat_", "dop_v1_", "tgp_v1_", "pypi-AgE", "hvs.")),
    *((prefix, _URL_SAFE, 30) for prefix in ("AIza", "pa-", "ATATT3")),
    *((prefix, _ANY, 20) for prefix in ("ya29.", "SG.", "AGE-SECRET-KEY-1", "sntrys_", "shpat_")),
    *((prefix, _ALNUM, 20) for prefix in ("hf_", "gsk_", "r8_", "fw_", "npm_", "figd_")),
    *((prefix, _ALNUM, 20) for prefix in ("ghp_", "gho_", "ghu_", "ghs_", "ghr_")),
    *((prefix, _ALNUM, 16) for prefix in ("AKIA", "ASIA")),
    ("dapi", _ALNUM, 32),
    ("https://hooks.slack.com/services/", _ANY, 12),
)


def _vendors(text: str) -> Iterator[Span]:
    for prefix, rest, least in _VENDORS:
        at = text.find(prefix)
        while at >= 0:
            end = at + len(prefix)
            if not _in_word(text, at) and (match := rest.match(text, end)):
                # The run is judged as a whole, so its inner prefixes are not looked at again.
                key, end = match.group().rstrip("."), match.end()
                if _made_up(key, least):
                    yield at, match.start() + len(key)
            at = text.find(prefix, end)


def _in_word(text: str, at: int) -> bool:
    return text[at - 1 : at] in _LETTERS if at else False


_PEM = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z0-9 ]{0,20}-----")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,60}-----")


def _private_keys(text: str) -> Iterator[Span]:
    end = 0
    for at in _places(text, "-----BEGIN "):
        if at >= end and (begun := _PEM.match(text, at)):
            # One that was cut off goes to the end.
            ended = _PEM_END.search(text, begun.end())
            end = ended.end() if ended else len(text)
            yield at, end


_WEB_TOKEN = re.compile(r"[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)*", re.ASCII)


def _web_tokens(text: str) -> Iterator[Span]:
    end = 0
    for at in _places(text, "eyJ"):
        inside = _in_word(text, at) or text[at - 1 : at] in ("_", "-")
        if at >= end and not inside and (match := _WEB_TOKEN.match(text, at)):
            end = match.end()
            yield at, end


# As RFC 6750 writes them: padding stands at the end alone.
_BEARER = re.compile(r"\s{1,3}([\w.~+/-]{8,}=*)", re.ASCII)


def _schemes(text: str, lower: str) -> Iterator[Span]:
    for scheme, fits in (("bearer", _made_up), ("basic", _is_basic)):
        for at in _places(lower, scheme):
            match = _BEARER.match(text, at + len(scheme))
            if match and not text[match.end() : match.end() + 1].isalnum():
                value = match[1].rstrip(".")
                if fits(value):
                    yield match.start(1), match.start(1) + len(value)


def _is_basic(value: str) -> bool:
    """Whether this is a user's name and a password in base 64, as RFC 7617 has them."""
    if not (_made_up(value) or value.endswith("=")):
        return False
    try:
        plain = base64.b64decode(value, validate=True).decode()
    except (binascii.Error, ValueError):
        return False
    return ":" in plain and plain.isprintable()


_USER = re.compile(r"""[^\s/?#@"'<>]{1,400}@""")


def _in_urls(text: str) -> Iterator[Span]:
    for at in _places(text, "://"):
        if match := _USER.match(text, at + 3):
            user = match.group()[:-1]
            if ":" in user or _made_up(user, 16):
                yield match.start(), match.end() - 1


_CORES = ("key", "token", "secret", "pass", "pwd", "auth", "cred", "cookie", "jwt", "otp", "sig")
_IN_QUERIES = frozenset(("key", "sig", "signature", "x-amz-signature", "x-goog-signature"))
_NO_VALUES = frozenset(("none", "null", "true", "false", "required", "optional", "string"))
_LONGEST_PREFIX = 64
_ASSIGNED = re.compile(
    r"""(?P<rest>[\w.-]{0,40})(?P<close>\\{0,3}["'`])?"""
    r"""(?P<sign>\s{0,3}(?:=>|:=|[:=,])\s{0,3})(?P<open>[bru]?\\{0,3}["'`])?"""
)
_SAID = re.compile(
    r"""s?(?: {1,2}[a-zA-Z]{2,12}\b){0,3}(?: ?[:=]\s{0,2}| {1,2})["'`]?"""
    r"""([\w+=*-][\w.~+/=*-]{15,511})""",
    re.ASCII,
)
_BARE = re.compile(r"""[^\s"'`,;&<>()\[\]{}\\][^\s"'`,;<>\\]{5,511}""")
_MORE = re.compile(r"""[^\s"'`,;&<>()\[\]{}\\]*""")
_NEXT_PARAMETER = re.compile(r"&[\w.-]{1,64}=")
_ASSIGNMENT = re.compile(r"[A-Za-z_][\w.-]*=[^=]")
_EXPRESSION = re.compile(r"([A-Za-z_][\w.]*)(?:([(\[])|[)\]}]|$)")
_QUOTED = {quote: re.compile(rf"(?:[^\\{quote}\n]|\\.){{1,4096}}") for quote in "\"'`"}
_QUOTED_TWICE = {quote: re.compile(rf"[^\\{quote}\n]{{1,4096}}") for quote in "\"'`"}


def _named(text: str, lower: str) -> Iterator[Span]:
    """What is assigned to a name that says secret."""
    for core in _CORES:
        end = 0
        for at in _places(lower, core):
            if at < end:  # in a value
                continue
            span = None
            assigned = _ASSIGNED.match(text, at)
            before = text[max(0, at - _LONGEST_PREFIX) : at]
            free = before.rstrip(_IDENTIFIER)
            name = before[len(free) :] + (assigned["rest"] if assigned else core)
            if free == before and (word := _qualifier(before)):
                name = f"{word} {name}"
            queried = free.endswith(("?", "&", ";")) and name.lower() in _IN_QUERIES
            if not (queried or is_secret_name(name)):
                continue
            if assigned:
                span = _assigned(text, assigned, name)
            if span is None and core in ("key", "token"):
                match = _SAID.match(text, at + len(core))
                if match and _made_up(match[1], 16):
                    span = match.start(1), _end(text, match.start(1), match[1])
            if span:
                yield span
                end = span[1]


def _qualifier(before: str) -> str | None:
    """The word before, where that makes "key" one that opens something: as in "API key"."""
    if not before.endswith(" "):
        return None
    word = "".join(before.split()[-1:]).strip("\"'`(")
    return word if word.lower() in QUALIFIERS else None


def _assigned(text: str, assigned: re.Match[str], name: str) -> Span | None:
    """Where the value stands, if it is one and not code or prose."""
    sign, opened, start = assigned["sign"], assigned["open"], assigned.end()
    if "," in sign and not (opened and assigned["close"]):
        return None
    if opened:
        # In quotes inside quotes, a backslash ends the value.
        patterns = _QUOTED_TWICE if "\\" in opened else _QUOTED
        match = patterns[opened[-1]].match(text, start)
        sure = "=" in sign or (assigned["close"] and ":" in sign)
        value = match.group() if match else ""
    else:
        match = _BARE.match(text, start)
        value = _NEXT_PARAMETER.split(match.group(), maxsplit=1)[0] if match else ""
        sure = sign == "=" and not _is_code(value, name)
        if not sure and _ASSIGNMENT.match(value):  # another name decides
            return None
    if not value or value.lower() in _NO_VALUES or not (sure or _made_up(value)):
        return None
    if not opened:
        return start, _end(text, start, value)
    while match:  # what is longer than a pattern reads
        end = match.end()
        match = patterns[opened[-1]].match(text, end)
    return start, end


def _is_code(value: str, name: str) -> bool:
    """Whether a value without quotes is an expression: a call, or a name like that before it."""
    expression = _EXPRESSION.match(value)
    if expression is None:
        return False
    last = expression[1].rpartition(".")[2]
    if expression[2]:
        return True
    if any(map(str.isdigit, last)):
        return False
    word, named = (re.sub("[^a-z]", "", text.lower()) for text in (last, name))
    return word in named or ("." in value and is_secret_name(last)) or word == f"your{named}"


def _end(text: str, start: int, value: str) -> int:
    """The end of a value without quotes, which may have been read up to a length only."""
    if len(value) >= 512 and (more := _MORE.match(text, start + len(value))):
        return more.end()
    return start + len(value.rstrip(".:!?)]}"))


_COOKIES = re.compile(
    r"""cookie\\{0,3}(?:["'`]?\s{0,2}[:=]|["'`],)\s{0,2}[bru]?\\{0,3}["'`]?"""
    r"""([\w!#$%&*+.^|~-]{1,128}=[^\n"'`]+)""",
    re.IGNORECASE,
)
_AUTHORIZATION = re.compile(
    r"""authorization\\{0,3}(?:["'`]?\s{0,2}[:=]|["'`],)\s{0,2}[bru]?\\{0,3}["'`]?(?:"""
    r"""(?:bearer|negotiate|ntlm|apikey)\s{1,3}([^\s"'`,;<>\\]{6,})"""
    r"""|(?:digest|hawk|aws4-hmac-sha256)\s{1,3}([^\s=]{1,64}=[^\n]+))""",
    re.IGNORECASE,
)


def _header_lines(text: str, lower: str) -> Iterator[Span]:
    for word, pattern in (("cookie", _COOKIES), ("authorization", _AUTHORIZATION)):
        end = 0
        for at in _places(lower, word):
            if at >= end and (match := pattern.match(text, at)):
                start, end = match.span(match.lastindex or 0)
                yield start, end
