"""Represent quantities as values that can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Atom(NamedTuple):
    """Hold a number and its kind.

    Evidence states `value`. A claim accepts evidence from `low` to `high`.
    """

    kind: str
    value: float
    low: float
    high: float


class Quantity(NamedTuple):
    """Hold the quantity that a stretch of text states."""

    start: int
    end: int
    readings: Sequence[Sequence[Atom]]
    """The ways to read the quantity. It is found if all atoms of one reading are found. Without
    readings, it only serves as evidence."""
    evidence: Sequence[Atom]
    """The atoms that the quantity states as evidence."""


def stated(start: int, end: int, readings: Sequence[Sequence[Atom]], *more: Atom) -> Quantity:
    """Make a quantity that states as evidence all atoms of its readings, and `more`."""
    return Quantity(
        start, end, readings, [*more, *(atom for reading in readings for atom in reading)]
    )


def exact(kind: str, value: float) -> Atom:
    """Make an atom that accepts only the same value."""
    return Atom(kind, value, value, value)


def number(value: float, step: float = 1, *, kind: str = "", factor: float = 1) -> Atom:
    """Make an atom that accepts every value that rounds to this number.

    Args:
        value: The number, in units.
        step: The place value of the number's last digit, in units.
        kind: The dimension; empty for plain numbers.
        factor: What one unit counts.
    """
    # Less than 0.5, so that two and a half is neither two nor three.
    slack = step * 0.499
    return Atom(kind, value * factor, (value - slack) * factor, (value + slack) * factor)


def ratio(value: float, step: float = 0.01) -> Atom:
    """Make an atom of a share: 0.5 is 50 %, and a half."""
    return number(value, step, kind="ratio")


def span(kind: str, first: int, last: int) -> Atom:
    """Make an atom that accepts every year from `first` to `last`."""
    return Atom(kind, first, first, last)
