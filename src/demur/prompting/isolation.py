"""Keep the text under judgement apart from the instructions of the one who judges it."""

from __future__ import annotations

import base64
import hmac
import os
import re
import secrets
from collections.abc import Iterable

_SECRET = os.environ.get("DEMUR_SECRET", "").encode() or secrets.token_bytes(32)

# Delimiters alone on their lines, or what a model makes of them. Looked for where white space
# begins and nowhere in it, lest a long run of it take time by its square.
_DELIMITERS = re.compile(r"(?<!\s)\s*(?:</?[a-z]+-[a-z2-7]{10}>\s*)+")

# Signs that show nothing (Unicode: default ignorable), among them those that turn the direction of
# writing and those that spell out a hidden text.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Joiners count between signs of scripts that write with them, and a variation selector behind a
# sign; in longer rows, or beside plain letters, they only hide what they stand in.
_JOINED = re.compile(
    r"([^\x00-\x7f\u200c\u200d\ufe00-\ufe0f]?)([\u200c\u200d\ufe00-\ufe0f]+)(?=([^\x00-\x7f]?))"
)
_SELECTOR = re.compile(r"[\ufe00-\ufe0f]")
_JOINER = re.compile(r"[\ufe00-\ufe0f]?[\u200c\u200d]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
# What may be a delimiter, or a control token of some model: servers read `<|im_end|>` in a message
# as the end of that message, and each vocabulary has tokens of its own in these two forms.
_TAG = re.compile(r"<(?=(?:[^\W\d]|[/|\uff5c!?])[^>]{0,100}>)")
_BRACKETS = re.compile(r"\[(?=/?[A-Z][A-Z_]{2,30}\])")
_LESS, _BRACKET = "\u02c2", "\u2045"
"""Signs that look like `<` and `[`, and that no tokenizer takes for them."""

_SENTENCE_END = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s+|\s*\n\s*")
# What is no longer than this a judge may say of itself.
_LONGEST_LABEL = len("Label: Contradiction")


def isolate(tag: str, text: str) -> str:
    """Put `text` between delimiters that it cannot forge.

    The delimiters hold an HMAC of the text under a secret of this process, so no text can contain
    its own, and the same text always has the same one: equal requests stay equal, for caches and
    for the reuse of a prefix. Set `DEMUR_SECRET` to have them equal from process to process too, as
    a cache on disk wants.

    Args:
        tag: What the text is, such as "reference".
        text: Any text. It is shown as `as_shown` has it.
    """
    text = as_shown(text)
    code = hmac.digest(_SECRET, f"{tag}\0{text}".encode(errors="replace"), "sha256")
    mark = f"{tag}-{base64.b32encode(code[:10]).decode()[:10].lower()}"
    return f"<{mark}>\n{text}\n</{mark}>"


def as_shown(text: str) -> str:
    """The text as a judge reads it: its words and nothing that only a machine would see.

    Signs that show nothing are left out, control characters become spaces, and what could be read
    as a delimiter or as a control token loses its first sign to one that looks like it.
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
    """A model's reply with `<` and `[` where it copied what `as_shown` put in their place."""
    return reply.replace(_LESS, "<").replace(_BRACKET, "[")


def without_delimiters(reply: str) -> str:
    """What a model wrote, without delimiters, which small models repeat around it."""
    return as_written(_DELIMITERS.sub("\n", reply)).strip()


def without_echo(reply: str, texts: Iterable[str]) -> str:
    """What a model wrote, without the sentences that it copied from texts that it was shown.

    A judge that copies "answer Entailment" has not answered.
    """
    if len(reply) <= _LONGEST_LABEL:
        return reply
    shown = [as_shown(text) for text in texts]
    pieces = {piece for text in shown for piece in (text, *_SENTENCE_END.split(text))}
    for piece in sorted(pieces, key=len, reverse=True):
        if len(piece) > _LONGEST_LABEL:
            reply = reply.replace(piece, "")
    return reply
