"""Make bland texts about things that do not exist: any number of them, and always the same."""

from __future__ import annotations

import random

from langchain_core.documents import Document

from demur import Sample

_NAMES = (
    *("Alder", "Brack", "Corran", "Dunmar", "Eskel", "Farrow", "Garvin", "Hollen", "Istra"),
    *("Jorund", "Kestrin", "Lomar", "Mirren", "Norrick", "Ostel", "Parran", "Quillon", "Rusk"),
    *("Selby", "Torven", "Ulmar", "Varden", "Wexley", "Yarrow"),
)
_KINDS = ("mill", "bridge", "museum", "library", "harbour", "theatre", "garden", "brewery")
_PEOPLE = ("Anna Berg", "Tomas Wehl", "Ines Calder", "Piet Moran", "Lucia Fenn", "Oskar Lund")
_STUFF = ("grey stone", "red brick", "oak and lime", "local slate", "cast iron")
_TOWNS = ("Hartmouth", "Lindau", "Oxley", "Severin", "Tarnby", "Wick")

_ASIDES = (
    "Visitors reach it by the path along the river, which is lit until ten in the evening.",
    "The roof was renewed twice, and the older beams were kept in a shed behind the yard.",
    "Local schools come in spring, when the guides have more time and the light is better.",
    "A small fund pays for repairs, and a committee of neighbours decides how it is spent.",
    "Photographs of the early years hang in the entrance, most of them given by families.",
    "In winter the upper floor is closed, since it cannot be heated without great expense.",
    "Several plans to widen the road in front of it were discussed and then given up.",
    "The oldest drawing of the site shows a well and two sheds that are no longer there.",
    "A bench under the lime tree by the gate is the place where most of the tours begin.",
)


def samples(count: int) -> list[Sample]:
    """Return `count` different answers of five facts, each with a question and three passages."""
    return [_sample(number) for number in range(count)]


def _sample(number: int) -> Sample:
    chance = random.Random(number)
    kind = _KINDS[number % len(_KINDS)]
    name = f"The {_NAMES[number % len(_NAMES)]} {kind}"
    built, renewed = chance.randrange(1780, 1900), chance.randrange(1930, 2010)
    founder, town, stuff = (chance.choice(of) for of in (_PEOPLE, _TOWNS, _STUFF))
    rooms, visitors = chance.randrange(6, 60), chance.randrange(3, 90) * 1000
    asides = chance.sample(_ASIDES, 9)
    passages = (
        f"{name} stands near the old market of {town}. {founder} founded it in {built} with money "
        "lent by two cousins, and it opened in the autumn of the following year.",
        f"The outer walls are of {stuff}. Inside there are {rooms} rooms on three floors, of which "
        "the lowest were meant for storage and are dry in most years.",
        f"After a fire in the east wing, {name[0].lower()}{name[1:]} was rebuilt in {renewed}. It "
        f"now counts {visitors:,} visitors a year, more than any other house of its kind in town.",
    )
    return Sample(
        question=f"What is known about the {name[4:]} in {town}?",
        answer=(
            f"{name} was founded by {founder} in {built}. It stands near the market of {town}. "
            f"Its walls are made of {stuff}, and it has {rooms} rooms. It was rebuilt in {renewed} "
            f"after a fire in the east wing."
        ),
        contexts=tuple(
            Document(page_content=" ".join([text, *asides[at::3]]))
            for at, text in enumerate(passages)
        ),
    )
