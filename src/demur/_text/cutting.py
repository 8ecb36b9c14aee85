"""Count the tokens of plain text, and cut it into windows of so many, as offsets."""

from __future__ import annotations

import re
from collections.abc import Iterator

from demur._text.splitting import sentences

# A piece is a word, a run of digits or a mark, much as byte-pair tokenizers first cut a text.
_PIECE = re.compile(r"[^\W\d_]+|\d+|_+|[^\w\s]|\s{2,}")
_LONGEST_TOKEN = 6
# The same for ASCII text, in which each match is one token.
_ASCII_TOKEN = re.compile(
    rf"[a-zA-Z]{{1,{_LONGEST_TOKEN}}}|\d\d?|_{{1,{_LONGEST_TOKEN}}}|[^\w\s]|\s{{2,}}"
)


def count_tokens(text: str) -> int:
    """Estimate how many tokens `text` has for a language model, in one pass and offline.

    tiktoken would fetch its tables at run time, and knows only some models. Windows need a number
    that is the same on every machine and rarely too low. A word costs one token for every six
    letters in the Latin script. In other scripts it costs one token for every sign.
    """
    if text.isascii():
        return len(_ASCII_TOKEN.findall(text))
    return sum(map(_piece_tokens, _PIECE.findall(text)))


def least_tokens(text: str) -> int:
    """Return a lower bound of `count_tokens`, in a fraction of its time."""
    return sum(map(len, text.split())) // _LONGEST_TOKEN


def _piece_tokens(piece: str) -> int:
    if piece.isspace():
        return 1
    if piece.isdigit():
        return -(-len(piece) // 2)
    if piece.isascii():
        return -(-len(piece) // _LONGEST_TOKEN)
    return len(piece)


def windows(text: str, size: int, overlap: int) -> list[tuple[int, int]]:
    """Cut `text` into spans of at most `size` tokens, at the ends of sentences if possible.

    Neighbouring windows share up to `overlap` tokens, so that a fact at a border is complete in one
    of them. A sentence longer than `size` is cut between words, and a longer word between
    characters. A text that fits and is not blank gives one span that covers all of it.

    Raises:
        ValueError: `size` is not positive, or `overlap` is not in [0, size).
    """
    return [(start, end) for start, end, _ in measured_windows(text, size, overlap)]


def measured_windows(text: str, size: int, overlap: int) -> list[tuple[int, int, int]]:
    """Return the same as `windows`, each span with the number of its tokens.

    White space between sentences does not count.
    """
    if size < 1 or not 0 <= overlap < size:
        raise ValueError(f"expected 0 <= overlap < size, got size={size} and overlap={overlap}")
    if not text.strip():
        return []
    if least_tokens(text) <= size and (tokens := count_tokens(text)) <= size:
        return [(0, len(text), tokens)]
    cuts = (cut for sentence in sentences(text) for cut in _cut(text, *sentence, size))
    units = [cut for cut in cuts if not text[cut[0] : cut[1]].isspace()]
    spans: list[tuple[int, int, int]] = []
    first = 0
    while True:
        last, total = first, 0
        while last < len(units) and (last == first or total + units[last][2] <= size):
            total += units[last][2]
            last += 1
        spans.append((units[first][0], units[last - 1][1], total))
        if last == len(units):
            return spans
        # Step back over whole units for the overlap, as long as the next unit still fits.
        following, shared = last, 0
        while following - 1 > first:
            shared += units[following - 1][2]
            if shared > overlap or shared + units[last][2] > size:
                break
            following -= 1
        first = following


def _cut(text: str, start: int, end: int, size: int) -> Iterator[tuple[int, int, int]]:
    """Cut one sentence into spans of at most `size` tokens, each with the number of its tokens."""
    whole = count_tokens(text[start:end])
    if whole <= size:  # this holds for nearly every sentence, and cutting by pieces is slower
        yield start, end, whole
        return
    at, total = start, 0
    for piece in _PIECE.finditer(text, start, end):
        tokens = _piece_tokens(piece.group())
        if tokens > size:
            if at < piece.start():
                yield at, piece.start(), total
            for cut in range(piece.start(), piece.end(), size):
                part = text[cut : min(cut + size, piece.end())]
                # In a word with other letters, an ASCII letter counts as one token too.
                plain = piece.group().isascii() or piece.group().isdigit()
                yield cut, cut + len(part), _piece_tokens(part) if plain else len(part)
            at, total = piece.end(), 0
        elif total + tokens > size:
            yield at, piece.start(), total
            at, total = piece.start(), tokens
        else:
            total += tokens
    if at < end:
        yield at, end, total
