"""Quantities as values that can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Atom(NamedTuple):
    """A number of a kind. Evidence holds `value`; a claim asks for one from `low` to `high`."""

    kind: str
    value: float
    low: float
    high: float


class Quantity(NamedTuple):
    """What a stretch of a text says."""

    start: int
    end: int
    readings: Sequence[Sequence[Atom]]
    """It is found where all atoms of one reading are. Without readings it is evidence only."""
    evidence: Sequence[Atom]
    """What it says as evidence."""


def stated(start: int, end: int, readings: Sequence[Sequence[Atom]], *more: Atom) -> Quantity:
    """Make a quantity that says as evidence what it asks for as a claim, and `more`."""
    return Quantity(
        start, end, readings, [*more, *(atom for reading in readings for atom in reading)]
    )


def exact(kind: str, value: float) -> Atom:
    """Make an atom that only the same value answers."""
    return Atom(kind, value, value, value)


def number(value: float, step: float = 1, *, kind: str = "", factor: float = 1) -> Atom:
    """Make an atom that each value answers which would be rounded to it.

    Args:
        value: In units.
        step: What its last digit counts, in units.
        kind: The dimension; plain numbers have none.
        factor: What a unit counts.
    """
    # Less than a half: two and a half are neither two nor three.
    slack = step * 0.499
    return Atom(kind, value * factor, (value - slack) * factor, (value + slack) * factor)


def ratio(value: float, step: float = 0.01) -> Atom:
    """Make an atom of a share: 0.5 is 50 %, and a half."""
    return number(value, step, kind="ratio")


def span(kind: str, first: int, last: int) -> Atom:
    """Make an atom of years that each one from `first` to `last` answers."""
    return Atom(kind, first, first, last)
