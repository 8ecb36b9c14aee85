"""Make rows from invented worlds, in which a claim needs the right value at the right entity.

A world is a few entities with values. It is told as text, list, table or JSON, and claims are made
from the world itself: a value (perhaps written in another unit), a comparison, a difference, a sum.
So each label is right by construction.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from demur_research.recipe.kinds import KINDS, Attribute, Compared, Kind, Value
from demur_research.recipe.rows import Label, TrainingRow

Form = Literal["text", "list", "table", "json"]
FORMS: tuple[Form, ...] = ("text", "list", "table", "json")
Says = Literal["value", "more", "less", "most", "least", "further", "together", "unsaid"]


@dataclass(frozen=True)
class World:
    """Hold entities of a kind and what is told of them."""

    kind: Kind
    entities: tuple[str, ...]
    """Two to four entities."""
    told: tuple[Attribute, ...]
    """The attributes that are told; at least one of the kind is not."""
    values: Mapping[tuple[str, str], Value]
    """The value of each entity and name of an attribute. No two entities have the same value of an
    attribute."""


@dataclass(frozen=True)
class Claim:
    """Hold a claim about a world, and what it says in a form that a program can check."""

    text: str
    label: Label
    says: Says
    entities: tuple[str, ...]
    attribute: str | None = None
    value: Value | None = None
    """The value, difference or sum that the claim states; None if it compares without one."""
    question: str | None = None


def from_worlds(number: int, rng: random.Random, weight: float = 0.6) -> list[TrainingRow]:
    """Return rows about this number of worlds, some ten of each.

    Args:
        number: The number of worlds.
        rng: The generator of all choices.
        weight: The weight of each row.
    """
    found: dict[TrainingRow, None] = {}
    for _ in range(number):
        world = drawn(rng)
        passages = told(world, rng.choice(FORMS), rng)
        for claim in claims(world, rng):
            row = TrainingRow(passages, claim.text, claim.label, "worlds", claim.question, weight)
            found[row] = None
    return list(found)


def drawn(rng: random.Random) -> World:
    """Return a world by chance."""
    kind = rng.choice(KINDS)
    entities = tuple(rng.sample(kind.entities, rng.randint(2, 4)))
    attributes = rng.sample(kind.attributes, rng.randint(1, len(kind.attributes) - 1))
    values: dict[tuple[str, str], Value] = {}
    for attribute in attributes:
        found: list[Value] = rng.sample([*attribute.values], len(entities))
        for entity, value in zip(entities, found, strict=True):
            values[entity, attribute.name] = value
    return World(kind, entities, tuple(attributes), values)


def told(world: World, form: Form, rng: random.Random) -> str:
    """Return passages that tell everything about a world."""
    if form == "text":
        said = []
        for entity in world.entities:
            verbs = [_verb(one, world.values[entity, one.name], rng) for one in world.told]
            said.append(_sentence(f"{entity} {' and '.join(verbs)}"))
        return " ".join(said)
    # A table has one form for each column.
    turn = rng.randrange(6)
    cells = [
        [_form(one.written(world.values[entity, one.name]), turn) for one in world.told]
        for entity in world.entities
    ]
    heads = [one.name for one in world.told]
    if form == "list":
        rows = zip(world.entities, cells, strict=True)
        return "\n".join(
            f"- {entity}: {', '.join(map(_named, heads, row))}" for entity, row in rows
        )
    if form == "table":
        lines = [[world.kind.name.capitalize(), *heads], ["---"] * (len(heads) + 1)]
        lines += [[entity, *row] for entity, row in zip(world.entities, cells, strict=True)]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)
    objects = [
        {world.kind.name: entity, **dict(zip(heads, row, strict=True))}
        for entity, row in zip(world.entities, cells, strict=True)
    ]
    return json.dumps(objects, ensure_ascii=False)


def claims(world: World, rng: random.Random) -> list[Claim]:
    """Return right, wrong and unsaid claims about a world."""
    found = [*_unsaid(world, rng)]
    for attribute in world.told:
        found += _values(world, attribute, rng)
        if attribute.compared is not None:
            found += _comparisons(world, attribute, attribute.compared, rng)
    return found


# -- claims ----------------------------------------------------------------------------------------


def _values(world: World, attribute: Attribute, rng: random.Random) -> Iterator[Claim]:
    entity, other = rng.sample(world.entities, 2)
    right, others = (world.values[one, attribute.name] for one in (entity, other))
    # A value that looks like one of the world's, but is nobody's.
    taken = {world.values[one, attribute.name] for one in world.entities}
    nobodys = rng.choice([value for value in attribute.values if value not in taken])
    labels: tuple[tuple[Value, Label], ...] = (
        (right, "support"),
        (others, "contradict"),
        (nobodys, "contradict"),
    )
    question = attribute.asks.format(entity)
    as_answer = rng.random() < 0.3
    for value, label in labels:
        if as_answer:
            text, asked = _sentence(rng.choice(attribute.written(value))), question
        else:
            text, asked = _sentence(f"{entity} {_verb(attribute, value, rng)}"), None
        yield Claim(text, label, "value", (entity,), attribute.name, value, asked)


def _comparisons(
    world: World, attribute: Attribute, words: Compared, rng: random.Random
) -> Iterator[Claim]:
    def value(entity: str) -> int:
        return int(world.values[entity, attribute.name])

    less, more = sorted(rng.sample(world.entities, 2), key=value)
    name = attribute.name
    yield Claim(_sentence(f"{more} {words.more} {less}"), "support", "more", (more, less), name)
    yield Claim(_sentence(f"{less} {words.less} {more}"), "support", "less", (less, more), name)
    yield Claim(_sentence(f"{less} {words.more} {more}"), "contradict", "more", (less, more), name)
    if len(world.entities) > 2:
        ranked = tuple(sorted(world.entities, key=value))
        yield Claim(_sentence(f"{ranked[0]} {words.least}"), "support", "least", ranked[:1], name)
        last = rng.choice(ranked[:-1])
        yield Claim(_sentence(f"{last} {words.most}"), "contradict", "most", (last,), name)
    if words.further is not None:
        for number, label in _numbers(value(more) - value(less), attribute, rng):
            said = words.further.format(rng.choice(attribute.written(number)))
            text = _sentence(f"{more} {said} {less}")
            yield Claim(text, label, "further", (more, less), name, number)
    if words.together is not None:
        for number, label in _numbers(value(more) + value(less), attribute, rng):
            said = words.together.format(rng.choice(attribute.written(number)))
            text = _sentence(f"{more} and {less} {said}")
            yield Claim(text, label, "together", (more, less), name, number)


def _numbers(
    right: int, attribute: Attribute, rng: random.Random
) -> tuple[tuple[int, Label], tuple[int, Label]]:
    """Return the right number and a wrong one that is near, with their labels."""
    assert isinstance(attribute.values, range)
    step = attribute.values.step
    wrong = right + step * rng.choice((1, 2, 5))
    return (right, "support"), (wrong, "contradict")


def _unsaid(world: World, rng: random.Random) -> Iterator[Claim]:
    entity = rng.choice(world.entities)
    hidden = rng.choice([one for one in world.kind.attributes if one not in world.told])
    value: Value = rng.choice([*hidden.values])
    text = _sentence(f"{entity} {_verb(hidden, value, rng)}")
    yield Claim(text, "neutral", "unsaid", (entity,), hidden.name, value)
    aside = rng.choice(world.kind.asides)
    yield Claim(_sentence(f"{entity} {aside}"), "neutral", "unsaid", (entity,))
    stranger = rng.choice([one for one in world.kind.entities if one not in world.entities])
    known = rng.choice(world.told)
    value = world.values[entity, known.name]
    text = _sentence(f"{stranger} {_verb(known, value, rng)}")
    yield Claim(text, "neutral", "unsaid", (stranger,), known.name, value)


# -- words -----------------------------------------------------------------------------------------


def _verb(attribute: Attribute, value: Value, rng: random.Random) -> str:
    return rng.choice(attribute.says).format(rng.choice(attribute.written(value)))


def _form(forms: Sequence[str], turn: int) -> str:
    return forms[turn % len(forms)]


def _named(head: str, cell: str) -> str:
    return f"{head.lower()} {cell}"


def _sentence(text: str) -> str:
    ended = text if text.endswith(".") else f"{text}."
    return f"{ended[0].upper()}{ended[1:]}"
