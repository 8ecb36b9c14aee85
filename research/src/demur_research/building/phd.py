"""Build passages like those of PHD (arXiv 2310.06498, section 3): a model writes, people label.

A file of entities says how often each entity is found, by a search engine's hits or by page views.
By that count, an entity is of the domain low, medium or high. Equally many entities of each domain
are drawn at random, and a model writes a short article about each. Then people label the passages,
in two stages and in the file itself:

- `label_1`: the label by the entity's Wikipedia article alone: "factual" (every claim is
  supported), "non-factual" (anything is wrong), or "unverifiable" (the article does not tell).
- `label_2`: the label by a search of the web: "factual", or "non-factual" (wrong, or still
  unverifiable). It is needed where `label_1` is "unverifiable". Where both stages decide, the
  labels show how far two readings agree.
- `label`: the final label, "factual" or "non-factual".
- `wrong_part`: what is wrong or cannot be verified, in the passage's words. Several parts are
  joined with semicolons. It is empty where the label is "factual".

The default bounds are the paper's: 100,000 and 1,000,000 hits. The released file has others: there,
medium has 1 to 10 million hits, and high more than 100 million.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel, Field

from demur import DemurError
from demur._text import one_line
from demur.runtime import ChatCall, Outcome, Reply, ask_all, drive
from demur_research.bench import Bench
from demur_research.datasets.files import load, rows
from demur_research.datasets.phd import DOMAINS, LISTS, Domain
from demur_research.spending import Spent, total

LABELS = ("factual", "non-factual")
UNVERIFIABLE = "unverifiable"

EMPTY = "empty passages"
CUT = "passages cut off at the token limit"


class Entity(BaseModel):
    """Describe something that Wikipedia has an article about."""

    entity: Annotated[str, Field(min_length=1)]
    count: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """How often the entity is found."""
    url: str | None = None
    """The address of its article."""


@dataclass(frozen=True)
class Bounds:
    """Hold the counts below which an entity is rare, and above which it is common."""

    low_below: float = 100_000
    high_above: float = 1_000_000

    def __post_init__(self) -> None:
        if not 0 < self.low_below <= self.high_above:
            raise ValueError(
                f"expected 0 < low below <= high above, got {self.low_below:g} and "
                f"{self.high_above:g}"
            )

    def domain(self, count: float) -> Domain:
        """Return the domain of an entity with this count; both bounds are of the domain medium."""
        if count < self.low_below:
            return "low"
        return "high" if count > self.high_above else "medium"


@dataclass(frozen=True)
class Written:
    """Hold passages that people are to label."""

    lists: dict[str, list[dict[str, Any]]]
    """The passages in the form of the released file, without labels."""
    left_out: Mapping[str, int]
    """The number of passages that were left out, by `EMPTY` and `CUT`."""
    spent: Spent
    """The cost of the calls when they were made."""


def read_entities(path: Path) -> list[Entity]:
    """Return the entities of a file.

    The file has JSON lines, or a JSON list, of entity, count and, if known, url.

    Raises:
        ValueError: The file does not have this form, or has an entity twice. The message says
            where.
    """
    found = rows(load(path), Entity, str(path))
    times = Counter(one_line(one.entity) for one in found)
    for name, count in times.most_common(1):
        if count > 1:
            raise ValueError(
                f"{path}: the entity {name!r} stands there {count} times, expected once"
            )
    return found


def draw(
    entities: Sequence[Entity], each: int = 100, bounds: Bounds = Bounds(), seed: int = 0
) -> dict[Domain, list[Entity]]:
    """Draw `each` entities of every domain at random, or all of a domain that has fewer."""
    of: dict[Domain, list[Entity]] = defaultdict(list)
    for one in sorted(entities, key=lambda one: one.entity):
        of[bounds.domain(one.count)].append(one)
    return {
        domain: Random(f"{seed} {domain}").sample(of[domain], min(each, len(of[domain])))
        for domain in DOMAINS
    }


def write(bench: Bench, drawn: Mapping[Domain, Sequence[Entity]]) -> Written:
    """Have the bench's model write a passage about each entity.

    Raises:
        DemurError: Some passages could not be written. Those that were written are recorded, so the
            same command asks only for the others.
    """
    model = bench.model
    asked = [(domain, one) for domain, entities in drawn.items() for one in entities]

    def ask(item: tuple[Domain, Entity], config: RunnableConfig) -> Outcome[Reply]:
        call = ChatCall(model, [HumanMessage(_request(item[1]))], "passage")
        (outcome,), _ = drive(ask_all([call]), config, None)
        return outcome

    done = bench.each("writing", asked, ask)
    failed = [one.value.error for one in done if one.value.error is not None]
    if failed:
        raise DemurError(
            f"{len(failed)} of {len(asked)} passages could not be written ({failed[0]}): what was "
            f"written is in {bench.recording.path}, and the same command asks for the others"
        )
    lists: dict[str, list[dict[str, Any]]] = {LISTS[domain]: [] for domain in DOMAINS}
    left_out = Counter[str]({EMPTY: 0, CUT: 0})
    for (domain, one), came in zip(asked, done, strict=True):
        reply = came.value.value
        if reply.truncated or not reply.text.strip():
            left_out[CUT if reply.truncated else EMPTY] += 1
        else:
            lists[LISTS[domain]].append(_unlabelled(one, reply.text.strip()))
    return Written(lists, left_out, total(one.spent for one in done))


def _request(entity: Entity) -> str:
    return (
        f"Write a short encyclopedia article about {one_line(entity.entity)}: one paragraph of "
        "four to six sentences, plain text, facts only."
    )


def _unlabelled(entity: Entity, text: str) -> dict[str, Any]:
    return {
        **{"entity": entity.entity, "url": entity.url, "count": entity.count, "AI": text},
        **dict.fromkeys(("label_1", "label_2", "label", "wrong_part")),
    }


# --- Labels ---------------------------------------------------------------------------------------

_Label = Literal["factual", "non-factual"]


class _Labelled(BaseModel):
    entity: str
    AI: str
    label_1: Literal["factual", "non-factual", "unverifiable", ""] | None
    label_2: _Label | Literal[""] | None
    label: _Label | Literal[""] | None
    wrong_part: Annotated[str, Field(coerce_numbers_to_str=True)] | None

    def faults(self) -> Iterator[str]:
        """Yield what still has to be filled in, and what contradicts itself."""
        if not self.label_1:
            yield "label_1 is empty"
        elif self.label_1 == UNVERIFIABLE and not self.label_2:
            yield "label_2 is empty, and label_1 is unverifiable"
        if not self.label:
            yield "label is empty"
        elif self.decided and self.label != self.decided:
            yield "label differs from the label that the stages give"
        if self.label == "non-factual" and not (self.wrong_part or "").strip():
            yield "wrong_part is empty, and label is non-factual"
        if self.label == "factual" and (self.wrong_part or "").strip():
            yield "wrong_part is filled in, and label is factual"

    @property
    def decided(self) -> str | None:
        """Return the label that the stages determine; None if they differ or have not decided."""
        given = {one for one in (self.label_1, self.label_2) if one in LABELS}
        return str(*given) if len(given) == 1 else None

    @property
    def unquoted(self) -> int:
        """Return the number of wrong parts that are not in the passage's words."""
        parts = [part.strip() for part in (self.wrong_part or "").split(";")]
        return sum(part not in self.AI for part in parts)


@dataclass(frozen=True)
class Labels:
    """Hold counts of the labels that people gave."""

    per_domain: Mapping[Domain, Mapping[str, int]]
    """The number of passages of each domain, by their final labels."""
    unverifiable: int
    """The number of passages that the first stage could not decide."""
    both: int
    """The number of passages that both stages decided."""
    alike: int
    """The number of passages to which both stages gave the same label."""
    kappa: float | None
    """Cohen's kappa over the `both` passages; None if it is undefined because only one label was
    given."""
    unquoted: int
    """The number of wrong parts that are not in their passage's words, so that no reader can find
    them."""


def read_labels(path: Path) -> Labels:
    """Return the counts of the labels that people filled in, if all labels are there.

    Raises:
        ValueError: The file does not have the form that `write` gives, or labels are missing or
            contradict each other. The message says how many, and where the first is.
    """
    held: Any = load(path)
    if not isinstance(held, dict) or not held or not held.keys() <= {*LISTS.values()}:
        raise ValueError(f"{path}: expected an object with the lists {', '.join(LISTS.values())}")
    found = {
        domain: rows(held.get(name, []), _Labelled, f"{path}, {name}")
        for domain, name in LISTS.items()
    }
    _refuse_faults(path, found)
    every = [one for passages in found.values() for one in passages]
    pairs = [
        (one.label_1, one.label_2)
        for one in every
        if one.label_1 in LABELS and one.label_2 in LABELS
    ]
    return Labels(
        {
            domain: {label: sum(one.label == label for one in passages) for label in LABELS}
            for domain, passages in found.items()
        },
        unverifiable=sum(one.label_1 == UNVERIFIABLE for one in every),
        both=len(pairs),
        alike=sum(first == second for first, second in pairs),
        kappa=cohen_kappa(pairs),
        unquoted=sum(one.unquoted for one in every if one.label == "non-factual"),
    )


def _refuse_faults(path: Path, found: Mapping[Domain, Sequence[_Labelled]]) -> None:
    faults, first, faulty, of = Counter[str](), "", 0, 0
    for domain, passages in found.items():
        for at, one in enumerate(passages, start=1):
            here = list(one.faults())
            faults.update(here)
            faulty, of = faulty + bool(here), of + 1
            if here and not first:
                first = f"{LISTS[domain]} {at}, {one.entity.strip()}"
    if faulty or not of:
        why = "; ".join(f"{count} times {fault}" for fault, count in faults.most_common())
        raise ValueError(
            f"{path}: {faulty} of {of} passages are not labelled as they have to be: {why} (the "
            f"first: {first})"
            if of
            else f"{path}: it holds no passage"
        )


def cohen_kappa(pairs: Sequence[tuple[Any, Any]]) -> float | None:
    """Return Cohen's kappa of two readings: how far they agree beyond chance, at most 1.

    Returns:
        Kappa; None if there are no pairs, or if both readings give one and the same label
        throughout.
    """
    if not pairs:
        return None
    first, second = (Counter(side) for side in zip(*pairs, strict=True))
    chance: float = sum(first[label] * second[label] for label in first) / len(pairs) ** 2
    if chance == 1:
        return None
    alike = sum(1 for one, two in pairs if one == two) / len(pairs)
    return (alike - chance) / (1 - chance)
