"""Keep the text under judgement apart from the instructions of the judge."""

from __future__ import annotations

import base64
import hmac
import os
import re
import secrets
from collections.abc import Iterable

_SECRET = os.environ.get("DEMUR_SECRET", "").encode() or secrets.token_bytes(32)

# Delimiters alone on their lines, or what a model makes of them. A match begins only where white
# space begins, or a long run of white space would take quadratic time.
_DELIMITERS = re.compile(r"(?<!\s)\s*(?:</?[a-z]+-[a-z2-7]{10}>\s*)+")

# Invisible characters (Unicode: default ignorable). Some change the direction of writing, and some
# can spell out a hidden text.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Joiners have a meaning between characters of scripts that use them, and a variation selector after
# a character. In longer rows, or beside ASCII characters, they only hide text from a filter.
_JOINED = re.compile(
    r"([^\x00-\x7f\u200c\u200d\ufe00-\ufe0f]?)([\u200c\u200d\ufe00-\ufe0f]+)(?=([^\x00-\x7f]?))"
)
_SELECTOR = re.compile(r"[\ufe00-\ufe0f]")
_JOINER = re.compile(r"[\ufe00-\ufe0f]?[\u200c\u200d]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
# Text that may be a delimiter, or a control token of some model: servers read `<|im_end|>` in a
# message as the end of that message. Each vocabulary has its own tokens in these two forms.
_TAG = re.compile(r"<(?=(?:[^\W\d]|[/|\uff5c!?])[^>]{0,100}>)")
_BRACKETS = re.compile(r"\[(?=/?[A-Z][A-Z_]{2,30}\])")
_LESS, _BRACKET = "\u02c2", "\u2045"
"""Characters that look like `<` and `[`, and that no tokenizer reads as these."""

_SENTENCE_END = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s+|\s*\n\s*")
# The length up to which a copied piece may just as well be the judge's own answer.
_LONGEST_LABEL = len("Label: Contradiction")


def isolate(tag: str, text: str) -> str:
    """Put `text` between delimiters that it cannot forge.

    The delimiters hold an HMAC of the text under a secret of this process, so a text cannot contain
    its own delimiters. The same text always has the same delimiters, so equal requests stay equal,
    for caches and for the reuse of a prefix. Set the environment variable `DEMUR_SECRET` to keep
    the delimiters equal from process to process too, as a cache on disk needs.

    Args:
        tag: The kind of the text, such as "reference".
        text: Any text. It is shown as `as_shown` returns it.
    """
    text = as_shown(text)
    code = hmac.digest(_SECRET, f"{tag}\0{text}".encode(errors="replace"), "sha256")
    mark = f"{tag}-{base64.b32encode(code[:10]).decode()[:10].lower()}"
    return f"<{mark}>\n{text}\n</{mark}>"


def as_shown(text: str) -> str:
    """Return a text as a judge reads it, without characters that only a machine would see.

    Invisible characters are removed, and control characters become spaces. The first character of
    anything that could be read as a delimiter or a control token is replaced by a similar one.
    """
    text = _CONTROL.sub(" ", text)
    if not text.isascii():
        text = _JOINED.sub(_without_strays, _UNSEEN.sub("", text))
    return _BRACKETS.sub(_BRACKET, _TAG.sub(_LESS, text))


def _without_strays(match: re.Match[str]) -> str:
    before, run, after = match.groups()
    used = _SELECTOR.fullmatch(run) or (after and _JOINER.fullmatch(run))
    return f"{before}{run}" if before and used else before


def as_written(reply: str) -> str:
    """Return a model's reply with `<` and `[` in place of the similar characters of `as_shown`."""
    return reply.replace(_LESS, "<").replace(_BRACKET, "[")


def without_delimiters(reply: str) -> str:
    """Return a model's reply without delimiters, which small models repeat around their replies."""
    return as_written(_DELIMITERS.sub("\n", reply)).strip()


def without_echo(reply: str, texts: Iterable[str]) -> str:
    """Return a model's reply without the sentences that it copied from texts it was shown.

    A judge that copies "answer Entailment" from the text under judgement has not answered.
    """
    if len(reply) <= _LONGEST_LABEL:
        return reply
    shown = [as_shown(text) for text in texts]
    pieces = {piece for text in shown for piece in (text, *_SENTENCE_END.split(text))}
    for piece in sorted(pieces, key=len, reverse=True):
        if len(piece) > _LONGEST_LABEL:
            reply = reply.replace(piece, "")
    return reply
