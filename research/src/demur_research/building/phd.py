"""Passages in the manner of PHD (arXiv 2310.06498, section 3): written by a model, to be labelled.

A file of entities says how often each is found, by a search engine's hits or by page views. By that
they are of the domain low, medium or high; as many of each are drawn at random, and a model writes
a short article about each. Then people label the passages in two stages and in the file itself:

- `label_1`: with the entity's Wikipedia article as the only reference: "factual" (every claim is
  supported), "non-factual" (anything is wrong), or "unverifiable" (the article does not tell).
- `label_2`: with a search of the web: "factual", or "non-factual" (wrong, or still unverifiable).
  It is needed where `label_1` is "unverifiable". Given elsewhere too, it tells how far two readings
  agree.
- `label`: what holds in the end, "factual" or "non-factual".
- `wrong_part`: what is wrong or cannot be verified, in the passage's words; several parts are
  joined with semicolons. Empty where the label is "factual".

The paper gives the bounds 100,000 and 1,000,000 hits, which are the defaults. The released file
keeps others: there, medium has 1 to 10 million hits, and high more than 100 million.
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
from demur_research.datasets.phd import DOMAINS, Domain
from demur_research.spending import Spent, total

LISTS: Mapping[Domain, str] = {"low": "wiki_10w", "medium": "wiki_1000w", "high": "wiki_1y"}
"""What the released file calls the domains."""
LABELS = ("factual", "non-factual")
UNVERIFIABLE = "unverifiable"

EMPTY = "empty passages"
CUT = "passages cut off at the token limit"


class Entity(BaseModel):
    """Something that Wikipedia has an article about."""

    entity: Annotated[str, Field(min_length=1)]
    count: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """How often it is found."""
    url: str | None = None
    """Of its article."""


@dataclass(frozen=True)
class Bounds:
    """Which counts make an entity rare or common."""

    low_below: float = 100_000
    high_above: float = 1_000_000

    def __post_init__(self) -> None:
        if not 0 < self.low_below <= self.high_above:
            raise ValueError(
                f"expected 0 < low below <= high above, got {self.low_below:g} and "
                f"{self.high_above:g}"
            )

    def domain(self, count: float) -> Domain:
        """Of an entity that is found so often; both bounds are of the domain medium."""
        if count < self.low_below:
            return "low"
        return "high" if count > self.high_above else "medium"


@dataclass(frozen=True)
class Written:
    """Passages to be labelled."""

    lists: dict[str, list[dict[str, Any]]]
    """In the form of the released file, without labels."""
    left_out: Mapping[str, int]
    """How many passages, by `EMPTY` and `CUT`."""
    spent: Spent
    """What the calls cost, when they were made."""


def read_entities(path: Path) -> list[Entity]:
    """The entities in JSON lines, or in a JSON list, of entity, count and perhaps url.

    Raises:
        ValueError: The file is not of this form, or has an entity twice; the message says where.
    """
    found = rows(load(path), Entity, str(path))
    times = Counter(one_line(one.entity) for one in found)
    for name, count in times.most_common(1):
        if count > 1:
            raise ValueError(f"{path}: the entity {name!r} stands there {count} times")
    return found


def draw(
    entities: Sequence[Entity], each: int = 100, bounds: Bounds = Bounds(), seed: int = 0
) -> dict[Domain, list[Entity]]:
    """Draw so many entities of each domain at random, or all where there are fewer."""
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
        DemurError: Some could not be written. What was written is recorded: the same again asks
            for the others only.
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
        """What has still to be filled in, or contradicts itself."""
        if not self.label_1:
            yield "label_1 is empty"
        elif self.label_1 == UNVERIFIABLE and not self.label_2:
            yield "label_2 is empty, and label_1 is unverifiable"
        if not self.label:
            yield "label is empty"
        elif self.decided and self.label != self.decided:
            yield "label is another than both stages come to"
        if self.label == "non-factual" and not (self.wrong_part or "").strip():
            yield "wrong_part is empty, and label is non-factual"
        if self.label == "factual" and (self.wrong_part or "").strip():
            yield "wrong_part is filled in, and label is factual"

    @property
    def decided(self) -> str | None:
        """The label where the stages leave no choice; None where they differ or are not done."""
        given = {one for one in (self.label_1, self.label_2) if one in LABELS}
        return str(*given) if len(given) == 1 else None

    @property
    def unquoted(self) -> int:
        """Wrong parts that are not in the passage's words."""
        parts = [part.strip() for part in (self.wrong_part or "").split(";")]
        return sum(part not in self.AI for part in parts)


@dataclass(frozen=True)
class Labels:
    """What people found."""

    per_domain: Mapping[Domain, Mapping[str, int]]
    """How many passages, by their final labels."""
    unverifiable: int
    """Passages that the first stage could not decide."""
    both: int
    """Passages that both stages decided."""
    alike: int
    """Those of them that they decided alike."""
    kappa: float | None
    """Cohen's, of `both`; None where it is undefined: one label alone was given."""
    unquoted: int
    """Wrong parts that are not in their passage's words: no reader can find them."""


def read_labels(path: Path) -> Labels:
    """The labels that people filled in, if all are there.

    Raises:
        ValueError: The file is not of the form that `write` gives, or labels are missing or
            contradict themselves; the message says how many, and which the first are.
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
    """Cohen's kappa of two readings: how far they agree beyond chance, at most 1.

    Returns:
        None of no pairs, and where both give one and the same label throughout.
    """
    if not pairs:
        return None
    first, second = (Counter(side) for side in zip(*pairs, strict=True))
    chance: float = sum(first[label] * second[label] for label in first) / len(pairs) ** 2
    if chance == 1:
        return None
    alike = sum(1 for one, two in pairs if one == two) / len(pairs)
    return (alike - chance) / (1 - chance)
