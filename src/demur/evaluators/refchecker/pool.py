"""Tell which figures of the references go together in a calculation, and which a claim names."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from demur.evaluators.refchecker.operands import Operand

# Of more figures than this, no three are added that are not all of a column.
_MOST_IN_THREES = 14
_BOTH_ENDS = 2


@dataclass(frozen=True)
class Pool:
    """Hold the figures of the references that are near a claim."""

    operands: Sequence[Operand]
    words: frozenset[str]
    """The words of the claim and of the question, without those of the figure that is sought."""

    @cached_property
    def kinds(self) -> Mapping[str, list[Operand]]:
        """Return the operands of each kind."""
        kinds: dict[str, list[Operand]] = defaultdict(list)
        for one in self.operands:
            kinds[one.figure.kind].append(one)
        return kinds

    def named(self, one: Operand) -> frozenset[str]:
        """Return the claim's words that belong to an operand, and not to most of its kind."""
        return self._names[id(one)]

    @cached_property
    def _names(self) -> Mapping[int, frozenset[str]]:
        names: dict[int, frozenset[str]] = {}
        for same in self.kinds.values():
            counts = Counter(word for one in same for word in self.words & one.own)
            rare = {word for word, count in counts.items() if 2 * count <= len(same)}
            names |= {id(one): self.words & one.own & rare for one in same}
        return names

    def near(self, first: Operand, *others: Operand) -> bool:
        """Return whether operands stand in one column, one row or neighbouring sentences.

        Elsewhere, each has to stand beside words of the claim.
        """
        return all(self._beside(first, other) for other in others)

    def _beside(self, a: Operand, b: Operand) -> bool:
        if a.column and b.column and a.column[0] == b.column[0]:
            return a.column == b.column or a.line == b.line
        return abs(a.line - b.line) <= 1 or bool(self.words & a.around and self.words & b.around)

    def pairs(self, of: Sequence[Operand]) -> Iterator[tuple[Operand, Operand]]:
        """Yield the pairs of operands that are near each other."""
        return (pair for pair in combinations(of, 2) if self.near(*pair))

    def sets(self, of: Sequence[Operand], most: int) -> list[tuple[Operand, ...]]:
        """Return the sets of operands with one unit that may be added.

        They are whole columns and sentences, parts of columns, what the claim names, all, and
        neighbours up to `most` of them.
        """
        named = tuple(one for one in of if self.named(one))
        found = [*self.wholes(of), named, tuple(of)]
        for size in range(2, most + 1):
            if size == 2 or len(of) <= _MOST_IN_THREES:
                found += [some for some in combinations(of, size) if self.near(*some)]
        # Of many number words, as in a transcript, few are amounts.
        in_words = any(one.figure.in_words for one in of)
        return [
            some
            for some in dict.fromkeys(found)
            if len(some) > 1
            and len({one.figure.scale for one in some}) == 1
            and (not in_words or len({one.line for one in some}) == 1)
        ]

    def wholes(self, of: Sequence[Operand]) -> list[tuple[Operand, ...]]:
        """Return columns, rows and sentences, and what of a column the claim names."""
        named = (
            tuple(one for one in column if self.named(one))
            for column in columns(of)
            if column[0].column is not None
        )
        return [*columns(of), *rows(of), *self.ranges(of), *(some for some in named if some[1:])]

    def ranges(self, of: Sequence[Operand]) -> list[tuple[Operand, ...]]:
        """Return the parts of columns whose ends the claim names: "from Monday to Friday"."""
        found = []
        for column in columns(of):
            ends = [at for at, one in enumerate(column) if self.named(one)]
            if len(ends) == _BOTH_ENDS and ends[1] - ends[0] > 1:
                found.append(column[ends[0] : ends[1] + 1])
        return found

    @cached_property
    def every_range(self) -> frozenset[tuple[Operand, ...]]:
        """Return the ranges of all kinds."""
        return frozenset(one for of in self.kinds.values() for one in self.ranges(of))


def columns(of: Sequence[Operand]) -> list[tuple[Operand, ...]]:
    """Return the operands of each column, and of each sentence, that has several."""
    return _grouped(of, lambda one: one.column or one.line)


def rows(of: Sequence[Operand]) -> list[tuple[Operand, ...]]:
    """Return the operands of each row, item and sentence that has several."""
    return _grouped(of, lambda one: one.line)


def _grouped(of: Sequence[Operand], key: Callable[[Operand], object]) -> list[tuple[Operand, ...]]:
    found: dict[object, list[Operand]] = defaultdict(list)
    for one in of:
        found[key(one)].append(one)
    return [tuple(group) for group in found.values() if len(group) > 1]
