"""Turn the methods' decisions on passages into rows of F1, precision and recall by domain."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from demur import Evaluation
from demur.calibration import CalibrationError, best_f1
from demur.evaluators import Evaluator
from demur.evaluators.baselines import SelfCheck
from demur_research.bench import Bench, Column, Done, Figure, Result, Row
from demur_research.datasets.phd import DOMAINS
from demur_research.datasets.rows import LabelledRow
from demur_research.detection import Detection, detection, f1_difference
from demur_research.replay import Verdicts
from demur_research.spending import Spent

PHD, WIKIBIO = "phd", "wikibio-gpt3"

ALL_FALSE, LMVSLM, ZERO_SHOT = "all false", "lmvslm", "zero-shot"

HALVES = (
    "Threshold of the other half: the best for F1 on the half of the passages that a passage is "
    "not in."
)
MATCHERS = (
    "exact, normalized and wikibio_name match names as demur does; with em the reply must give the "
    "percentage too (option percentage). published_qg and published_em decide as the published "
    "figures came about: with 80 percent, and with four wordings that count as 100."
)

_COLUMNS = (
    *(Column("F1, %"), Column("precision, %"), Column("recall, %")),
    *(Column("F1 over all false"), Column("F1 over the published decision")),
)


@dataclass(frozen=True)
class Judged:
    """Hold a method's decisions on the passages."""

    name: str
    verdicts: Verdicts
    spent: Spent | None = None
    """The mean cost of a passage."""
    floor: bool = False
    published: Verdicts | None = None
    """The published decision on the same replies, if it is another one."""

    def decided(self, rows: Iterable[LabelledRow]) -> list[tuple[LabelledRow, bool]]:
        """Return the rows that the method decides on, and whether it rejects each."""
        verdicts = ((row, self.verdicts.get(row.key)) for row in rows)
        return [(row, verdict) for row, verdict in verdicts if verdict is not None]

    def detection(self, rows: Iterable[LabelledRow], seed: int = 0) -> Detection:
        """Return F1, precision and recall over the rows that the method decides on."""
        decided = self.decided(rows)
        return detection([wrong(row) for row, _ in decided], [no for _, no in decided], seed)

    def undetermined(self, rows: Iterable[LabelledRow]) -> int:
        """Return how many of the rows the method was to judge and could not decide."""
        keys = {row.key for row in rows}
        return sum(key in keys and verdict is None for key, verdict in self.verdicts.items())


def passages(bench: Bench, name: str = PHD) -> list[LabelledRow]:
    """Return the labelled passages, at most `limit`, in an order that only their texts decide."""
    rows = [row for row in bench.read(name) if row.metadata.get("in_rv_subset", True)]
    if not rows:
        raise ValueError(f"{name}: the data holds no passage that the table is about")
    return sorted(rows, key=_digest)[: bench.limit]


def _digest(row: LabelledRow) -> str:
    said = f"{row.metadata['entity']}\0{row.answers[0].text}"
    return hashlib.sha256(said.encode()).hexdigest()


def wrong(row: LabelledRow) -> bool:
    """Return whether people labelled the passage as not factual.

    Raises:
        ValueError: The passage has no label.
    """
    label = row.answers[0].hallucinated
    if label is None:
        raise ValueError(f"the passage {row.key} has no label")
    return label


def by_halves(
    name: str,
    rows: Sequence[LabelledRow],
    scores: Mapping[str, float | None],
    *,
    spent: Spent | None = None,
    floor: bool = False,
) -> Judged:
    """Reject passages that score above a threshold, which is chosen on the other half of them.

    Args:
        name: The name of the method.
        rows: The passages, in an order that has nothing to do with their labels.
        scores: The scores by key; higher is worse, and None is undetermined. A row without a score
            is missing.
        spent: The mean cost of a passage.
        floor: Whether the method is a trivial rule, which knows nothing.
    """
    known = [(row, score) for row in rows if (score := scores.get(row.key)) is not None]
    verdicts: dict[str, bool | None] = dict.fromkeys(scores)
    for half, other in ((known[::2], known[1::2]), (known[1::2], known[::2])):
        try:
            least = best_f1([-score for _, score in other], [wrong(row) for row, _ in other]).value
        except CalibrationError:  # no threshold: too few passages, or all with one label
            continue
        verdicts |= {row.key: -score < least for row, score in half}
    return Judged(f"{name}, threshold of the other half", verdicts, spent, floor)


def floors(rows: Sequence[LabelledRow]) -> Iterator[Judged]:
    """Yield the decisions of trivial rules, which know nothing."""
    yield Judged(ALL_FALSE, {row.key: True for row in rows}, floor=True)
    lengths = {row.key: len(row.answers[0].text) for row in rows}
    yield by_halves("the longest", rows, lengths, floor=True)
    yield by_halves("the shortest", rows, {key: -n for key, n in lengths.items()}, floor=True)


def selfchecks(bench: Bench, model: bool) -> dict[str, Evaluator]:
    """Return the variants of SelfCheck that are compared, by name.

    Args:
        bench: Gives the embedding and the model.
        model: Whether the model gives the samples; if not, they come with the passages.
    """
    chat = bench.model if model else None
    return {
        "selfcheck embedding": SelfCheck(
            chat, method="embedding", n_samples=3, similarity=bench.embedding
        ),
        "selfcheck 1-gram": SelfCheck(chat, method="ngram", n_samples=3),
    }


def inconsistencies(
    rows: Sequence[LabelledRow], done: Sequence[Done[Evaluation]]
) -> dict[str, float | None]:
    """Return SelfCheck's scores of passages, by key: higher is worse, and None is undetermined."""
    found = (None if one.value.score is None else -one.value.score for one in done)
    return dict(zip((row.key for row in rows), found, strict=True))


def result(
    bench: Bench,
    rows: Sequence[LabelledRow],
    judged: Sequence[Judged],
    paper: Mapping[str, str],
    notes: Iterable[str],
) -> Result:
    """Return the table: the methods' rows over all passages, then their rows over each domain.

    Args:
        bench: Gives the seed.
        rows: The passages.
        judged: The decisions of the methods.
        paper: The paper's figures by the methods' names: F1, P and R over all, and over each
            domain.
        notes: The notes of the table.
    """
    shown = []
    for at, part in enumerate((None, *DOMAINS)):
        some = [row for row in rows if part in (None, row.metadata["domain"])]
        for one in judged:
            told = paper.get(one.name, "- " * 12).split()[3 * at : 3 * at + 3]
            row = _row(bench.seed, some, one, told)
            shown.append(row if part is None else _of_domain(row, part))
    return Result(_COLUMNS, tuple(shown), tuple(notes))


def _of_domain(row: Row, domain: str) -> Row:
    return replace(row, name=f"PHD-{domain.title()}: {row.name}", spent=None)


def _row(seed: int, rows: Sequence[LabelledRow], one: Judged, paper: Sequence[str]) -> Row:
    decided, found = one.decided(rows), one.detection(rows, seed)
    figures = (
        replace(figure, paper=told.strip("-")) for figure, told in zip(found, paper, strict=True)
    )
    beside = [
        None if other is None or one.floor else over(decided, other, seed)
        for other in ({row.key: True for row in rows}, one.published)
    ]
    undetermined = one.undetermined(rows)
    return Row(one.name, (*figures, *beside), len(decided), undetermined, one.spent, one.floor)


def over(decided: Sequence[tuple[LabelledRow, bool]], other: Verdicts, seed: int) -> Figure:
    """Return by how much the F1 exceeds another's on the passages that both decide on."""
    both = [
        (wrong(row), no, bool(than))
        for row, no in decided
        if (than := other.get(row.key)) is not None
    ]
    labels, first, second = ([one[at] for one in both] for at in range(3))
    return f1_difference(labels, first, second, seed)


def percentage(bench: Bench, default: float) -> float:
    """Return the least percentage that entity matching has to give: the option `percentage`.

    Raises:
        ValueError: The option is not a number from 0 to 100.
    """
    given = bench.options.get("percentage", str(default))
    try:
        found = float(given)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 100:
        raise ValueError(f"percentage: expected a number from 0 to 100, got {given!r}")
    return found
