"""Read what demur knows of each language: one file a language, with patterns and lists of words.

`README.md` beside the files says what each list means. The files are read once, at their first use.
No code knows a language by its name: to add one is to add a file.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from typing import Any

from demur._system import lock
from demur._text import UNSPACED, WORD_SIGNS, word_set

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_LISTS: Mapping[str, tuple[str, ...]] = {
    "nothing": (
        *("greetings", "thanks", "courtesies", "offers", "requests", "apologies"),
        *("refusals", "ignorance", "silence", "sources", "rest", "continued", "joined"),
    ),
    "answer": ("affirmation", "marker", "prefix", "announcement", "pointer"),
    "question": ("asks", "states", "open", "fact", "linked", "goes_on"),
    "contrast": ("always", "here", "joining"),
    "actions": ("did", "did_not", "undone", "again", "every"),
    "figures": (
        *("counts", "fractions", "periods", "months"),
        *("total", "difference", "mean", "each", "about"),
    ),
    "system": ("facts",),
    "words": ("verbs", "pronouns", "function", "numbers", "denial", "referring"),
}
"""The groups of a file, each with its lists."""
_VALUES = {"name": str, "letters": str, "spaced": bool, "never": str, "rewrites": list}
_OPTIONAL = ("never", "rewrites", "parts", "system")

NOTHING = (
    *(f"nothing.{one}" for one in _LISTS["nothing"] if one not in ("rest", "continued", "joined")),
    "answer.affirmation",
)
"""The lists of whole clauses that state nothing."""
CONTRAST = tuple(f"contrast.{name}" for name in _LISTS["contrast"])
"""The lists of words that end a clause."""

_REST = "<rest>"
_PART = re.compile(r"<([a-z_]+)>")
_SPACE = re.compile(" ")
_LITERAL = re.compile(r"(?<![\\<])\b[^\W\d_]{2,}")
_MARKUP = re.compile(r"[*_#>`~\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d]+")
_CONSONANTS = frozenset("bcdfghjklmnpqrstvwxz")
_compiling = lock()
"""A lock for the patterns, some of which take a second: threads that need one wait for it, and do
not each compile it."""
_APOSTROPHES = re.compile("['\u02bc\u2018]")


@dataclass(frozen=True, eq=False)
class Language:
    """Hold what is known of a language.

    Raises:
        ValueError: A list is missing, unknown, or something else than a list of strings.
    """

    code: str
    """The two letters of ISO 639-1, which name the file too."""
    data: Mapping[str, Any] = field(repr=False)
    """The content of the file."""
    _patterns: dict[tuple[object, ...], re.Pattern[str]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Refuse a file that is not complete."""
        problems = [*_problems(self.data)]
        if problems:
            raise ValueError(
                f"{self.code}.toml: {'; '.join(problems)}. README.md beside it has the lists."
            )

    @property
    def spaced(self) -> bool:
        """Return whether the language has spaces between its words."""
        return bool(self.data["spaced"])

    def may_be(self, text: str) -> bool:
        """Return whether a text has letters of this language, and none that it never has."""
        letters, never = self._letters
        return letters.search(text) is not None and not (never and never.search(text))

    def rewritten(self, text: str) -> str:
        """Return `plain` text without this language's contractions and variants of spelling."""
        for pattern, instead in self._rewrites:
            text = pattern.sub(instead, text)
        return text

    def pattern(
        self, *lists: str, whole_words: bool = False, begun: bool = False
    ) -> re.Pattern[str]:
        """Return the pattern that matches each alternative of some lists. It is compiled once.

        Args:
            *lists: The lists, such as "question.asks".
            whole_words: Whether no letter may stand beside a match, if this language has spaces
                between its words.
            begun: Whether only those are meant that a rest may follow.
        """
        key = (lists, whole_words, begun)
        if key not in self._patterns:
            with _compiling:
                self._patterns[key] = self._patterns.get(key) or self._compiled(*key)
        return self._patterns[key]

    def _compiled(self, lists: Sequence[str], whole_words: bool, begun: bool) -> re.Pattern[str]:
        found = [one for name in lists for one in self._list(name)]
        found = [one for one in found if not begun or one.endswith(_REST)]
        inner = self._expanded([one.removesuffix(_REST) for one in found], self._parts)
        if whole_words and self.spaced:
            inner = rf"(?<![{WORD_SIGNS}]){inner}(?![{WORD_SIGNS}])"
        return re.compile(inner)

    def places(self, name: str, text: str) -> Iterator[tuple[int, int, int]]:
        """Yield which entry of an ordered list stands where in a text: its number from 1 on."""
        for match in self._numbered(name).finditer(text):
            yield int((match.lastgroup or "_0")[1:]), match.start(), match.end()

    def entry(self, name: str, text: str, at: int) -> tuple[int, int] | None:
        """Return which entry of an ordered list stands at a place, and where it ends."""
        match = self._numbered(name).match(text, at)
        return match and (int((match.lastgroup or "_0")[1:]), match.end())

    def _numbered(self, name: str) -> re.Pattern[str]:
        """Return the pattern with a group for each entry; the last one is tried first."""
        key = ((name,), "numbered")
        if key not in self._patterns:
            entries = [f"(?P<_{n}>{_composed(one)})" for n, one in enumerate(self._list(name), 1)]
            inner = f"(?:{'|'.join(reversed(entries))})"
            if self.spaced:
                inner = rf"(?<![^\W\d]){inner}(?![{WORD_SIGNS}])"  # "45min"
            self._patterns[key] = re.compile(inner)
        return self._patterns[key]

    def says_nothing(self, clause: str, *lists: str) -> bool:
        """Return whether a clause is one of some lists as a whole, with the rest that it may have.

        Args:
            clause: The clause, rewritten.
            *lists: Some of `NOTHING`.
        """
        if self.pattern(*lists).fullmatch(clause):
            return True
        begun = self.pattern(*lists, begun=True)
        rest = self.pattern("nothing.rest")
        return begun.match(clause) is not None and any(
            rest.fullmatch(clause, end) and begun.fullmatch(clause, 0, begin)
            for begin, end in self._cuts(clause)
        )

    def _cuts(self, clause: str) -> Iterator[tuple[int, int]]:
        """Yield where a clause may be cut: the end of the first part, the beginning of the rest."""
        if self.spaced:
            return ((space.start(), space.end()) for space in _SPACE.finditer(clause))
        return ((at, at) for at in range(1, len(clause)))

    def words(self, name: str) -> frozenset[str]:
        """Return the words of a list, such as "words.verbs"."""
        return self._words[name]

    def _list(self, name: str) -> list[str]:
        group, _, own = name.partition(".")
        found: list[str] = self.data.get(group, {}).get(own, [])
        return found

    @cached_property
    def _words(self) -> Mapping[str, frozenset[str]]:
        names = [f"{group}.{name}" for group, lists in _LISTS.items() for name in lists]
        return {name: frozenset(word_set(plain("\n".join(self._list(name))))) for name in names}

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """Return the words that stand in the file, and so tell this language from others."""
        texts = [
            text
            for group in ("parts", *_LISTS)
            if group not in ("figures", "system")  # their words say nothing of what a sentence is
            for one in self.data.get(group, {}).values()
            for text in one
        ]
        literal = _LITERAL if self.spaced else UNSPACED
        found = literal.findall(_composed("\n".join(texts)))
        return self.words("words.function").union(found)

    @cached_property
    def _letters(self) -> tuple[re.Pattern[str], re.Pattern[str] | None]:
        never = self.data.get("never")
        return (
            re.compile(f"[{self.data['letters']}]", re.IGNORECASE),
            re.compile(f"[{never}]", re.IGNORECASE) if never else None,
        )

    @cached_property
    def _rewrites(self) -> list[tuple[re.Pattern[str], str]]:
        return [
            (re.compile(_composed(pattern)), _composed(instead))
            for pattern, instead in self.data.get("rewrites", ())
        ]

    @cached_property
    def _parts(self) -> Mapping[str, str]:
        parts: dict[str, str] = {}
        for name, alternatives in self.data.get("parts", {}).items():
            parts[name] = self._expanded(alternatives, parts)
        return parts

    def _expanded(self, alternatives: Sequence[str], parts: Mapping[str, str]) -> str:
        """Return a pattern of alternatives, with each <name> replaced by the part of this name."""

        def part(match: re.Match[str]) -> str:
            if match[1] not in parts:
                raise ValueError(f"{self.code}.toml: [parts] lacks {match[1]} above its use.")
            return parts[match[1]]

        # Nothing matches an empty list.
        pattern = f"(?:{'|'.join(alternatives)})" if alternatives else "(?!)"
        return _PART.sub(part, _composed(pattern))


@cache
def languages() -> tuple[Language, ...]:
    """Return all languages, in the order of their codes.

    Raises:
        ValueError: A file is not complete.
    """
    found = sorted(
        (one for one in files(__name__).iterdir() if one.name.endswith(".toml")),
        key=lambda one: one.name,
    )
    return tuple(
        Language(one.name.removesuffix(".toml"), tomllib.loads(one.read_text(encoding="utf-8")))
        for one in found
    )


def plain(text: str) -> str:
    """Return a text in lower case, without markup, with single spaces and "’" as apostrophe."""
    text = _APOSTROPHES.sub("\u2019", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(_MARKUP.sub(" ", text).split())


@lru_cache(maxsize=1024)
def possible(text: str) -> tuple[Language, ...]:
    """Return the languages with whose letters a text is written."""
    return tuple(language for language in languages() if language.may_be(text))


@lru_cache(maxsize=1024)
def likely(text: str) -> tuple[Language, ...]:
    """Return the languages of which a text has the most function words.

    They are several if they have equally many, as in a text of names.
    """
    # A single consonant is a word in few languages, and a unit of measurement in all.
    tokens = {word for word in word_set(text) if len(word) > 1 or word not in _CONSONANTS}
    return _most({one: len(tokens & one.words("words.function")) for one in possible(text)})


@lru_cache(maxsize=1024)
def nearest(clause: str) -> tuple[Language, ...]:
    """Return the languages that know the most words of a short text, of several all.

    Patterns of other languages would only cost time.
    """
    tokens = word_set(clause)
    return _most({one: len(tokens & one.vocabulary) for one in possible(clause)})


def _most(counts: Mapping[Language, int]) -> tuple[Language, ...]:
    most = max(counts.values(), default=0)
    return tuple(one for one, count in counts.items() if count == most)


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _problems(data: Mapping[str, Any]) -> list[str]:
    """Return what a file lacks or has too much, or what is of another type."""
    known = (*_VALUES, "parts", *_LISTS)
    found = [f"{name} is missing" for name in known if name not in data and name not in _OPTIONAL]
    found += [f"{name} is unknown" for name in data if name not in known]
    for name, kind in _VALUES.items():
        if not isinstance(data.get(name, kind()), kind):
            found.append(f"{name} is not of type {kind.__name__}")
    for group in ("parts", *_LISTS):
        lists = data.get(group, {})
        if group in _LISTS and group in data:
            found += [f"{group}.{name} is missing" for name in _LISTS[group] if name not in lists]
            found += [f"{group}.{name} is unknown" for name in lists if name not in _LISTS[group]]
        for name, one in lists.items():
            if not isinstance(one, list) or not all(isinstance(text, str) for text in one):
                found.append(f"{group}.{name} is not a list of strings")
    return found
