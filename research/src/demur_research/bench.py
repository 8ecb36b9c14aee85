"""A table: what it is made from, what is measured, and its rows beside the paper's figures."""

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
from demur._share import Share
from demur.evaluators import Evaluator
from demur.local import MINILM, MiniLM
from demur.runtime import Account, Scope, as_completed, within_scope
from demur_research.datasets.rows import Reading
from demur_research.recording import Recording
from demur_research.spending import Meter, Spent, total

T = TypeVar("T")
R = TypeVar("R")

Report = Callable[[str, int, int], None]
"""Is told what is done, how much of it, and of how much."""


def place(seed: int, text: str) -> bytes:
    """What sorts items into an order that the seed decides, whatever other items there are.

    So a smaller choice of the first ones is part of a larger one.
    """
    return hashlib.sha256(f"{seed}:{text}".encode()).digest()


@dataclass(frozen=True)
class Done(Generic[R]):
    """What came of one piece of work, and what it cost."""

    value: R
    spent: Spent


@dataclass(frozen=True)
class Bench:
    """What a table is made with. Every call of a model goes through its recording."""

    read: Callable[[str], Reading]
    """From a data set's name to its rows."""
    recording: Recording
    model_name: str = "local"
    limit: int | None = None
    """So many items of each kind; None: as many as the table wants."""
    at_once: int = 1
    """Items under way at a time. Measure seconds with one."""
    seed: int = 0
    """Of every choice and every bootstrap."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The table's own options."""
    report: Report = lambda what, done, total: None

    def model_of(self, name: str) -> BaseChatModel:
        """The recorded chat model of a name, as `demur.resolve_model` takes it.

        Raises:
            ValueError: The name is unknown, or the recording holds another model under it.
        """
        return self.recording.model(name, resolve_model if self.recording.writes else None)

    @cached_property
    def model(self) -> BaseChatModel:
        """The model that `--model` names."""
        return self.model_of(self.model_name)

    @cached_property
    def embedding(self) -> Embeddings:
        """The embedded MiniLM, its vectors recorded."""
        return self.recording.embedding(MiniLM, f"MiniLM {MINILM.sha256}")

    def names(
        self, option: str, known: Collection[str], default: Iterable[str] | None = None
    ) -> list[str]:
        """What one of the table's own options names, apart by commas; each once.

        Args:
            option: The option.
            known: What can be named.
            default: What is meant where the option is not given; None: all that is known.

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

    def number(self, option: str, default: int) -> int:
        """What one of the table's own options says: a whole number of at least 1.

        Raises:
            ValueError: It says something else.
        """
        said = self.options.get(option, str(default))
        if not (said.isdecimal() and int(said)):
            raise ValueError(f"{option}: expected a whole number of at least 1, got {said!r}")
        return int(said)

    def each(
        self, what: str, items: Sequence[T], work: Callable[[T, RunnableConfig], R]
    ) -> list[Done[R]]:
        """Do a piece of work for each item, and say what each cost.

        Args:
            what: What the progress calls it.
            items: What is worked on.
            work: Is given an item, and the config to invoke models and evaluators with: what is
                called without it is not counted.

        Returns:
            In the order of the items.
        """

        def one(at: int) -> tuple[int, Done[R]]:
            meter = Meter()
            # In an account of its own an item shares no call with others that are under way:
            # else its cost would hang on which these are, and a replay would find another.
            with within_scope(Scope(Account())):
                value = work(items[at], {"callbacks": [meter]})
            return at, Done(value, meter.spent)

        found: dict[int, Done[R]] = {}
        self.report(what, 0, len(items))
        # The first by itself: what is found out once for all, such as a model's bias to labels, is
        # then paid for once, however many are under way afterwards.
        every = range(len(items))
        for part in (every[:1], every[1:]):
            for at, done in as_completed(one, part, self.at_once):
                found[at] = done
                self.report(what, len(found), len(items))
        return [found[at] for at in range(len(items))]

    def judged(
        self, what: str, evaluator: Evaluator, samples: Sequence[Sample]
    ) -> list[Done[Evaluation]]:
        """Have an evaluator judge samples."""
        return self.each(what, samples, lambda sample, config: evaluator.invoke(sample, config))


# --- What a table shows ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Figure:
    """A number with its 95 % interval, and what the paper has there."""

    value: float | None
    """None where it is undefined: nothing was counted."""
    low: float | None = None
    high: float | None = None
    paper: str = ""
    """As the paper prints it, with the model that it is of where there are several."""

    @classmethod
    def of_share(cls, share: Share, paper: str = "") -> Figure:
        """A share in percent, with Wilson's interval."""
        if share.value is None or share.interval is None:
            return cls(None, paper=paper)
        low, high = share.interval
        return cls(100 * share.value, 100 * low, 100 * high, paper)


@dataclass(frozen=True)
class Row:
    """A row of a table."""

    name: str
    figures: tuple[Figure | None, ...]
    """One for each column; None: the row has none there."""
    items: int | None = None
    """How many its figures are of."""
    undetermined: int = 0
    """Items that nothing could be decided on: not in the figures."""
    spent: Spent | None = None
    """What an item cost on the mean; None where no model is asked or that was not recorded."""
    floor: bool = False
    """Whether it is a trivial one, which knows nothing."""


def mean_cost(done: Sequence[Done[Any]]) -> Spent | None:
    """What a piece of work cost on the mean; None of none, and where no model was called."""
    spent = total(one.spent for one in done)
    return spent / len(done) if spent.calls else None


@dataclass(frozen=True)
class Column:
    """What the figures under each other are."""

    head: str
    """With the unit, such as "F1, %"."""
    digits: int = 1
    """Behind the point."""


@dataclass(frozen=True)
class Result:
    """What a table comes to."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    """What was counted, left out or differs: a line each."""


@dataclass(frozen=True)
class Table:
    """A table or figure of a source, or one of our own, that can be run."""

    name: str
    """The command, such as "fewl-v1-table-1"."""
    source: str
    """Where it stands, such as "FEWL, version 1, Table 1"; "demur" for one of our own."""
    what: str
    """What it shows, in a sentence."""
    sets: tuple[str, ...]
    """The names of its data sets; none for texts of our own."""
    make: Callable[[Bench], Result]
    asks: bool = True
    """Whether it asks a model."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Its own options, each with what it means and its default."""


@dataclass(frozen=True)
class NotRun:
    """A table or figure of a source that cannot be run, and why."""

    source: str
    what: str
    why: str
