"""Define a table: what it is made from, its rows, and the paper's figures beside them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig

from demur import Evaluation, Sample, resolve_model
from demur.evaluators import Evaluator
from demur.local import MINILM, MiniLM
from demur.recording import Recording
from demur.runtime import Account, Scope, as_completed, within_scope
from demur.schema import Share
from demur_research.datasets.rows import Reading
from demur_research.spending import Meter, Spent, total

T = TypeVar("T")
R = TypeVar("R")

Report = Callable[[str, int, int], None]
"""A callable that hears of progress: the name of the work, the items done, and the items in all."""


def place(seed: int, text: str) -> bytes:
    """Return a sort key for a text, which only the seed and the text decide.

    Other items do not change the order, so a smaller choice of first items is part of a larger one.
    """
    return hashlib.sha256(f"{seed}:{text}".encode()).digest()


@dataclass(frozen=True)
class Done(Generic[R]):
    """Hold the result of one piece of work, and what the work cost."""

    value: R
    spent: Spent


@dataclass(frozen=True)
class Bench:
    """Hold what a table is made with: data, models and options. Every model call is recorded."""

    read: Callable[[str], Reading]
    """A function from a data set's name to its rows."""
    recording: Recording
    model_name: str = "local"
    limit: int | None = None
    """The greatest number of items of each kind; None: as many as the table wants."""
    at_once: int = 1
    """The number of items that are worked on at the same time. Measure seconds with 1."""
    seed: int = 0
    """The seed of every choice and every bootstrap."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The values of the table's own options, by their names."""
    report: Report = lambda what, done, total: None

    def model_of(self, name: str) -> BaseChatModel:
        """Return the recorded chat model of a name.

        Args:
            name: The name, as `demur.resolve_model` takes it.

        Raises:
            ValueError: The name is unknown, or the recording holds another model under it.
        """
        return self.recording.model(name, resolve_model if self.recording.writes else None)

    @cached_property
    def model(self) -> BaseChatModel:
        """Return the recorded chat model that `--model` names."""
        return self.model_of(self.model_name)

    @cached_property
    def embedding(self) -> Embeddings:
        """Return the embedded MiniLM, which records its vectors."""
        return self.recording.embedding(MiniLM, f"MiniLM {MINILM.sha256}")

    def names(
        self, option: str, known: Collection[str], default: Iterable[str] | None = None
    ) -> list[str]:
        """Return the names that one of the table's own options gives, each once.

        Args:
            option: The option. Its value has names with commas between them.
            known: The names that are allowed.
            default: The names to return if the option is not given; None: all known names.

        Raises:
            ValueError: A name is not known.
        """
        if option not in self.options:
            return [*(known if default is None else default)]
        found = [name.strip() for name in self.options[option].split(",")]
        for name in found:
            if name not in known:
                raise ValueError(f"{option}: expected one of {', '.join(known)}, got {name!r}")
        return [*dict.fromkeys(found)]

    def one_of(self, option: str, known: Collection[str], default: str) -> str:
        """Return the one name that one of the table's own options gives.

        Raises:
            ValueError: The option gives another name, or several.
        """
        name, *others = self.names(option, known, [default])
        if others:
            given = self.options[option]
            raise ValueError(f"{option}: expected one of {', '.join(known)}, got {given!r}")
        return name

    def number(self, option: str, default: int) -> int:
        """Return the whole number of at least 1 that one of the table's own options gives.

        Args:
            option: The option.
            default: The number to return if the option is not given.

        Raises:
            ValueError: The value is not a whole number of at least 1.
        """
        said = self.options.get(option, str(default))
        if not (said.isdecimal() and int(said)):
            raise ValueError(f"{option}: expected a whole number of at least 1, got {said!r}")
        return int(said)

    def each(
        self, what: str, items: Sequence[T], work: Callable[[T, RunnableConfig], R]
    ) -> list[Done[R]]:
        """Do a piece of work for each item, and measure what each one cost.

        Args:
            what: The name of the work in the progress.
            items: The items to work on.
            work: Does the work. It gets an item, and the config to invoke models and evaluators
                with. A call without this config is not counted.

        Returns:
            The results, in the order of the items.
        """

        def one(at: int) -> tuple[int, Done[R]]:
            meter = Meter()
            # Each item has its own account, so that it shares no call with other items at work.
            # Otherwise its cost would depend on those items, and a replay would differ.
            with within_scope(Scope(Account())):
                value = work(items[at], {"callbacks": [meter]})
            return at, Done(value, meter.spent)

        found: dict[int, Done[R]] = {}
        self.report(what, 0, len(items))
        for at, done in as_completed(one, range(len(items)), self.at_once):
            found[at] = done
            self.report(what, len(found), len(items))
        return [found[at] for at in range(len(items))]

    def judged(
        self, what: str, evaluator: Evaluator, samples: Sequence[Sample]
    ) -> list[Done[Evaluation]]:
        """Have an evaluator judge samples, and measure what each evaluation cost."""
        return self.each(what, samples, lambda sample, config: evaluator.invoke(sample, config))


# --- What a table shows ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Figure:
    """Hold a number with its 95 % interval, and the paper's figure for it."""

    value: float | None
    """The number; None where it is undefined because nothing was counted."""
    low: float | None = None
    high: float | None = None
    paper: str = ""
    """The paper's figure, as printed there. It names its model where the paper has several."""

    @classmethod
    def of_share(cls, share: Share, paper: str = "") -> Figure:
        """Return a share in percent, with Wilson's interval."""
        if share.value is None or share.interval is None:
            return cls(None, paper=paper)
        low, high = share.interval
        return cls(100 * share.value, 100 * low, 100 * high, paper)


@dataclass(frozen=True)
class Row:
    """Hold a row of a table."""

    name: str
    figures: tuple[Figure | None, ...]
    """A figure for each column; None where the row has no figure."""
    items: int | None = None
    """The number of items that the figures are of."""
    undetermined: int = 0
    """The number of items that could not be decided. The figures leave them out."""
    spent: Spent | None = None
    """The mean cost of an item; None where no model is asked, or where its cost was not
    recorded."""
    floor: bool = False
    """Whether the row is of a trivial rule, which knows nothing."""


def mean_cost(done: Sequence[Done[Any]]) -> Spent | None:
    """Return the mean cost of a piece of work, or None if no model was called."""
    spent = total(one.spent for one in done)
    return spent / len(done) if spent.calls else None


@dataclass(frozen=True)
class Column:
    """Describe the figures of one column."""

    head: str
    """The heading with the unit, such as "F1, %"."""
    digits: int = 1
    """The number of decimal places."""


@dataclass(frozen=True)
class Result:
    """Hold the columns, rows and notes of a table."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    """One line each: what was counted, what was left out, or what differs from the paper."""


@dataclass(frozen=True)
class Table:
    """Describe a table or figure that can be run: one of a source, or one of demur's own."""

    name: str
    """The command, such as "fewl-v1-table-1"."""
    source: str
    """The place of the table, such as "FEWL, version 1, Table 1"; "demur" for a table of demur's
    own."""
    what: str
    """What the table shows, in a sentence."""
    sets: tuple[str, ...]
    """The names of its data sets; empty if it uses demur's own texts."""
    make: Callable[[Bench], Result]
    asks: bool = True
    """Whether the table asks a model."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The table's own options by their names, each with its meaning and its default."""


@dataclass(frozen=True)
class NotRun:
    """Describe a table or figure of a source that cannot be run, and say why."""

    source: str
    what: str
    why: str
