"""Describe the kinds of things in invented worlds, and how people write their values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from demur_research.recipe.changes import NUMBER_WORDS

Value = int | str
"""What an entity has of an attribute. Numbers are whole: cents are not told."""


@dataclass(frozen=True)
class Compared:
    """Hold the words by which entities are compared in a number."""

    less: str
    """Words between two entities, such as "is cheaper than"."""
    more: str
    least: str
    """Words behind the entity that has the least of all, such as "is the cheapest"."""
    most: str
    further: str | None = None
    """Words between two entities with the difference in place of {}, such as "costs {} more than";
    None where nobody would say it, as of years."""
    together: str | None = None
    """Words behind several entities with their sum in place of {}, such as "cost {} together"; None
    where a sum makes no sense."""


@dataclass(frozen=True)
class Attribute:
    """Describe something that each entity of a kind has."""

    name: str
    """The name in lists and tables, such as "Price"."""
    values: range | tuple[str, ...]
    """What the values are drawn from."""
    written: Callable[[Value], tuple[str, ...]]
    """A function from a value to all forms in which people write it, such as 90 minutes and an hour
    and a half."""
    says: tuple[str, ...]
    """Verbs with the value in place of {}, such as "costs {}"."""
    asks: str
    """A question with the entity in place of {}."""
    compared: Compared | None = None


@dataclass(frozen=True)
class Kind:
    """Describe a kind of entities."""

    name: str
    entities: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    asides: tuple[str, ...]
    """Verb phrases that say something else of an entity."""


# -- how values are written ------------------------------------------------------------------------


def _as_is(value: Value) -> tuple[str, ...]:
    return (str(value),)


def _count(one: str, several: str) -> Callable[[Value], tuple[str, ...]]:
    def written(value: Value) -> tuple[str, ...]:
        noun = one if value == 1 else several
        forms = [f"{value:,} {noun}"]
        if isinstance(value, int) and 0 < value < len(NUMBER_WORDS):
            forms.append(f"{NUMBER_WORDS[value]} {noun}")
        return tuple(forms)

    return written


def _euros(value: Value) -> tuple[str, ...]:
    return f"€{value}", f"{value} euros", f"EUR {value}"


def _in_thousands(unit: str, larger: str) -> Callable[[Value], tuple[str, ...]]:
    """Return how to write numbers of a unit of which a thousand make a larger one."""

    def written(value: Value) -> tuple[str, ...]:
        number = int(value)
        plain = f"{number:,} {unit}"
        return (plain, f"{number / 1000:g} {larger}") if number >= 1000 else (plain,)

    return written


def _minutes(value: Value) -> tuple[str, ...]:
    hours, minutes = divmod(int(value), 60)
    forms = [f"{value} minutes"]
    if hours:
        forms.append(f"{hours} h {minutes} min" if minutes else f"{hours} h")
    named = {30: "half an hour", 60: "an hour", 90: "an hour and a half"}
    return (*forms, *([named[int(value)]] if int(value) in named else []))


def _clock(value: Value) -> tuple[str, ...]:
    hours, minutes = divmod(int(value), 60)
    half = "a.m." if hours < 12 else "p.m."
    return f"{hours:02d}:{minutes:02d}", f"{hours % 12 or 12}:{minutes:02d} {half}"


# -- the kinds -------------------------------------------------------------------------------------

_TOWNS = (
    *("Arlen", "Brevik", "Corvo", "Dunmere", "Eskby", "Falden", "Isenau", "Kelda", "Lomar"),
    *("Merrow", "Norwick", "Pellin", "Rennau", "Tolva", "Ulmen", "Wendel"),
)
_PEOPLE = tuple(
    f"{first} {last}"
    for first in ("Anna", "Boris", "Chloe", "Elif", "Farid", "Ines", "Keiko", "Omar", "Rosa")
    for last in ("Abbott", "Castro", "Gupta", "Jansen", "Kowalski", "Okafor", "Sato", "Weber")
)

KINDS = (
    Kind(
        "plan",
        tuple(f"the {name} plan" for name in ("Basic", "Light", "Team", "Plus", "Pro", "Solo")),
        (
            Attribute(
                "Price per month",
                range(3, 120),
                _euros,
                ("costs {} a month", "is priced at {} a month"),
                "How much is {} a month?",
                Compared(
                    "is cheaper than",
                    "costs more than",
                    "is the cheapest",
                    "is the most expensive",
                    "costs {} a month more than",
                    "cost {} a month together",
                ),
            ),
            Attribute(
                "Storage",
                range(100, 5000, 100),
                _in_thousands("GB", "TB"),
                ("includes {} of storage", "comes with {} of storage"),
                "How much storage does {} include?",
                Compared(
                    "has less storage than",
                    "has more storage than",
                    "has the least storage",
                    "has the most storage",
                    "has {} more storage than",
                    "have {} of storage together",
                ),
            ),
            Attribute(
                "Users",
                range(1, 60),
                _count("user", "users"),
                ("is for {}", "has room for {}"),
                "How many users is {} for?",
                Compared(
                    "is for fewer users than",
                    "is for more users than",
                    "is for the fewest users",
                    "is for the most users",
                    None,
                    "are for {} together",
                ),
            ),
        ),
        ("can be paid by invoice", "includes phone support", "has no setup fee"),
    ),
    Kind(
        "town",
        _TOWNS,
        (
            Attribute(
                "Inhabitants",
                range(8_000, 900_000, 1_000),
                _count("inhabitant", "inhabitants"),
                ("has {}", "is home to {}"),
                "How many inhabitants does {} have?",
                Compared(
                    "has fewer inhabitants than",
                    "has more inhabitants than",
                    "has the fewest inhabitants",
                    "has the most inhabitants",
                    None,
                    "have {} together",
                ),
            ),
            Attribute(
                "Elevation",
                range(50, 1900, 25),
                _in_thousands("m", "km"),
                ("lies {} above sea level", "is at an altitude of {}"),
                "How high above sea level is {}?",
                Compared(
                    "lies lower than",
                    "lies higher than",
                    "lies lowest",
                    "lies highest",
                    "lies {} higher than",
                ),
            ),
            Attribute(
                "River",
                ("Alm", "Bree", "Corr", "Elz", "Fenn", "Holt", "Jade", "Lahn", "Orb"),
                lambda value: (f"the {value}",),
                ("lies on {}", "stands on the banks of {}"),
                "On which river does {} lie?",
            ),
        ),
        ("has a university", "is known for its cheese market", "hosts a jazz festival"),
    ),
    Kind(
        "train",
        tuple(f"train {number}" for number in range(101, 999, 37)),
        (
            Attribute(
                "Departure",
                range(300, 1380, 5),
                _clock,
                ("leaves at {}", "departs at {}"),
                "When does {} leave?",
                Compared("leaves before", "leaves after", "leaves first", "leaves last"),
            ),
            Attribute(
                "Duration",
                range(25, 320, 5),
                _minutes,
                ("takes {}", "has a journey time of {}"),
                "How long does {} take?",
                Compared(
                    "is faster than",
                    "takes longer than",
                    "is the fastest",
                    "is the slowest",
                    "takes {} longer than",
                ),
            ),
            Attribute(
                "Platform",
                range(1, 15),
                _as_is,
                ("leaves from platform {}", "stands at platform {}"),
                "From which platform does {} leave?",
            ),
        ),
        ("has a dining car", "carries bicycles", "runs only on weekdays"),
    ),
    Kind(
        "person",
        _PEOPLE,
        (
            Attribute(
                "City",
                _TOWNS,
                _as_is,
                ("lives in {}", "works from {}"),
                "Where does {} live?",
            ),
            Attribute(
                "Joined",
                range(1998, 2025),
                _as_is,
                ("joined in {}", "was hired in {}"),
                "When did {} join?",
                Compared("joined before", "joined after", "joined first", "joined last"),
            ),
            Attribute(
                "Team",
                range(2, 40),
                _count("person", "people"),
                ("leads a team of {}", "manages {}"),
                "How many people does {} lead?",
                Compared(
                    "leads a smaller team than",
                    "leads a larger team than",
                    "leads the smallest team",
                    "leads the largest team",
                    None,
                    "lead {} together",
                ),
            ),
        ),
        ("speaks four languages", "works part-time", "reports to the board"),
    ),
)
"""All kinds."""
