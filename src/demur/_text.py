"""Find the sentences, words and windows of plain text, always as offsets into the original string.

The module also makes texts harmless before they are shown.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

_SURROGATE = re.compile(r"[\ud800-\udfff]")
# In a line full of quotes, the time that sentencex takes grows with the square of its length.
_STRETCH = 4000
_GLUED = re.compile(r"\.[A-Za-z_]")
# A name such as collections.Counter. Two sentences without a space between them may look like one
# too. They are read as one sentence then, all of which has to be supported.
_DOTTED = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", re.ASCII)
_SPACE = re.compile(r"\s")
_LINE = re.compile(r"[^\r\n\u2028\u2029]+")
_INDENT = re.compile(r"[^\S\r\n\u2028\u2029]*")
# A line shorter than this was not broken because of a maximal width.
_SHORTEST_WRAPPED = 40
_ITEM = re.compile(r"\s*(?:[-*•–#|>`=]|\d{1,3}[.)]\s|[a-zA-Z][.)]\s)")
WORD_SIGNS = (
    r"\w\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    r"\u0900-\u0963\u0966-\u096f\u0971-\u0dff"
)
"""The signs of words, for a class of a pattern: letters, digits, and the marks that Hebrew, Arabic
and the scripts of India put on letters. These marks are no letters for a pattern."""
_WORD = re.compile(rf"[{WORD_SIGNS}]+")
# A piece is a word, a run of digits or a mark, much as byte-pair tokenizers first cut a text.
_PIECE = re.compile(r"[^\W\d_]+|\d+|_+|[^\w\s]|\s{2,}")
_LONGEST_TOKEN = 6
# The same for ASCII text, in which each match is one token.
_ASCII_TOKEN = re.compile(
    rf"[a-zA-Z]{{1,{_LONGEST_TOKEN}}}|\d\d?|_{{1,{_LONGEST_TOKEN}}}|[^\w\s]|\s{{2,}}"
)
UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff]"
)
"""The pattern of a sign that counts as a word.

These scripts have no spaces between words, or, like Korean, write particles together with the
words.
"""
# These direction marks reorder the text around them: a passage could look like its own opposite.
_REORDERING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_VISIBLE: dict[int, int | str] = {
    **{code: 0x2400 + code for code in range(32)},  # ESC becomes the picture of ESC, and so on
    **dict.fromkeys((*range(0x80, 0xA0), *range(0xD800, 0xE000), *map(ord, _REORDERING)), 0xFFFD),
    **{ord(sign): "\n" for sign in "\r\n\v\f\x85\u2028\u2029"},
    ord("\t"): " ",
    0x7F: 0x2421,
}


def replace_surrogates(text: str) -> str:
    """Replace each lone surrogate, which no encoding can carry, by one U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def harmless(text: str) -> str:
    """Return `text` with every control character made visible, and with plain line breaks.

    Nothing is removed, so no text can hide another text.
    """
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\r\n", "\n").translate(_VISIBLE)


def one_line(text: str) -> str:
    """Return `text` made harmless, with each run of white space as a single space."""
    return " ".join(harmless(text).split())


def sentences(text: str, start: int = 0, line: int = 0) -> list[tuple[int, int]]:
    """Return the spans of the sentences in `text`, without the white space around them.

    A line break ends a sentence, unless it only wraps a paragraph to a width.

    Args:
        text: Any text.
        start: The offset at which the first sentence to find begins.
        line: The offset at which the line that contains `start` begins.
    """
    spans = []
    for begin, stop in _blocks(text, start, line):
        block = text[begin:stop]
        for first, end in _block_sentences(block):
            stripped = block[first:end].strip()
            if stripped:
                first += begin + block[first:end].index(stripped)
                spans.append((first, first + len(stripped)))
    return spans


def _blocks(text: str, start: int, line: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of lines that belong together: paragraphs, items of a list, headings."""
    lines = [match.span() for match in _LINE.finditer(text, start)]
    begin = 0
    for at, (first, end) in enumerate(lines):
        following = lines[at + 1] if at + 1 < len(lines) else None
        whole = line if first == start else first
        if following is None or not _wraps(text, (whole, end), following):
            yield lines[begin][0], end
            begin = at + 1


def _wraps(text: str, line: tuple[int, int], following: tuple[int, int]) -> bool:
    """Return whether the break between two lines only wraps a paragraph to a width."""
    return (
        text[line[1] : following[0]] in ("\n", "\r\n")
        and line[1] - line[0] >= _SHORTEST_WRAPPED
        and not _ITEM.match(text, *following)
        and _indent(text, line) == _indent(text, following)
    )


def _indent(text: str, line: tuple[int, int]) -> str:
    match = _INDENT.match(text, *line)
    return match.group() if match else ""


def _block_sentences(block: str) -> Iterator[tuple[int, int]]:
    from sentencex import get_sentence_boundaries

    # A break that wraps is no end. Behind an initial, sentencex panics at a space of two bytes.
    line = _SPACE.sub(" ", replace_surrogates(block))
    at = 0
    while at < len(line):
        stretch = line[at : at + _STRETCH]
        ends = [found["end_index"] for found in get_sentence_boundaries("en", stretch)]
        if any(_GLUED.match(stretch, end - 1) for end in ends):
            names = [name.span() for name in _DOTTED.finditer(stretch)]
            ends = [end for end in ends if not any(first < end < last for first, last in names)]
        if at + _STRETCH < len(line):
            # The last sentence may continue after the stretch, so it begins the next stretch. A
            # sentence that fills the whole stretch is cut, between words if possible.
            ends = ends[:-1] or [stretch.rfind(" ") + 1 or len(stretch)]
        start = at
        for end in ends or [len(stretch)]:
            yield start, at + end
            start = at + end
        at = start


def words(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the words of `text`, case-folded, each with its span."""
    spaced = not UNSPACED.search(text)
    for match in _WORD.finditer(text):
        if spaced or not UNSPACED.search(match.group()):
            yield match.group().casefold(), match.start(), match.end()
        else:
            for at, sign in enumerate(match.group(), match.start()):
                yield sign.casefold(), at, at + 1


def word_set(text: str) -> frozenset[str]:
    """Return the distinct words of `text`, case-folded."""
    if UNSPACED.search(text):
        return frozenset(word for word, _, _ in words(text))
    return frozenset(map(str.casefold, _WORD.findall(text)))


@lru_cache(maxsize=4096)
def script_of(letter: str) -> str:
    """Return the script of a letter, as Unicode's names begin: "LATIN", "CJK"."""
    return unicodedata.name(letter, "LATIN").split()[0].split("-")[0]


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
