"""Measure how well quotes from a page show what supports a claim: RefChecker's, and simpler ones.

The claims are those of WiCE. Annotators marked the supporting sentences in the page that a claim
cites. The sets of one claim differ, so a quote is compared with the set that it agrees with best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from demur import Evaluation, RefChecker
from demur._text import word_set
from demur.evaluators.refchecker.localization import find_evidence, index
from demur.evaluators.refchecker.references import Passage
from demur.schema import ClaimLabel, Evidence
from demur_research.bench import Bench, Column, Figure, Result, Row, Table, mean_cost, place
from demur_research.datasets.rows import LabelledRow
from demur_research.datasets.wice import places
from demur_research.resampling import mean_figure
from demur_research.tables.checkers import sample

LABELS = ("supported", "partially_supported")
"""The labels of claims that are quoted for. Claims without any support have empty sets, so there is
nothing to quote."""
WAYS = ("overlap", "nearness", "rule", "refchecker")
_CLAIMS = 100


@dataclass(frozen=True)
class Marked:
    """Hold a claim, the page that it cites, and the sentences that annotators marked in it."""

    key: str
    group: str
    """The article. Claims of one article are drawn together."""
    claim: str
    sentences: tuple[str, ...]
    """The sentences of the page, as published."""
    sets: tuple[frozenset[int], ...]
    """For each annotation, the places of the sentences that support the claim. No set is empty."""

    @property
    def page(self) -> str:
        """Return the page as one text, with one sentence on each line."""
        return "\n".join(self.sentences)

    @property
    def mean_size(self) -> float:
        """Return the mean number of sentences in a set."""
        return sum(map(len, self.sets)) / len(self.sets)

    def quoted(self, spans: Iterable[tuple[int, int]]) -> frozenset[int]:
        """Return the sentences that spans of the page cover by at least half."""
        covered = np.zeros(len(self.page), np.bool_)
        for start, end in spans:
            covered[start:end] = True
        return frozenset(
            at
            for at, (start, end) in enumerate(places(self.sentences))
            if end > start and 2 * int(covered[start:end].sum()) >= end - start
        )


def marked(rows: Iterable[LabelledRow], labels: Sequence[str]) -> list[Marked]:
    """Return the claims with one of these labels; sets without a sentence are left out."""
    found = []
    for row in rows:
        sets: list[list[int]] = row.metadata["supporting_sentences"]  # type: ignore[assignment]
        sentences: list[str] = row.metadata["evidence"]  # type: ignore[assignment]
        some = tuple(frozenset(one) for one in sets if one)
        if some and row.answers[0].label in labels:
            claim = row.answers[0].text
            found.append(Marked(row.key, row.group or row.key, claim, tuple(sentences), some))
    return found


@dataclass(frozen=True)
class Agreement:
    """Describe how far the sentences quoted for a claim agree with the nearest annotation."""

    group: str
    count: int
    """The number of quoted sentences."""
    precision: float | None
    """The share of the quoted sentences that are in the annotation; None if nothing is quoted."""
    recall: float
    f1: float


def agreement(one: Marked, quoted: frozenset[int] | None) -> Agreement:
    """Compare quoted sentences with the annotators' set that gives the best F1.

    Args:
        one: The claim.
        quoted: The places of the quoted sentences. None: there is no quote, so recall and F1 are 0.
            If a quote covers half of no sentence, precision is 0 as well.
    """
    if not quoted:
        return Agreement(one.group, 0, None if quoted is None else 0.0, 0.0, 0.0)
    f1, precision, recall = max(
        (
            2 * len(quoted & of) / (len(quoted) + len(of)),
            len(quoted & of) / len(quoted),
            len(quoted & of) / len(of),
        )
        for of in one.sets
    )
    return Agreement(one.group, len(quoted), precision, recall, f1)


# --- Ways of quoting ------------------------------------------------------------------------------

Scoring = Callable[[Marked], Sequence[float]]
"""A function from a claim to a score for each sentence of its page."""


def shared_words(one: Marked) -> list[float]:
    """Return for each sentence how many of the claim's words it holds.

    The shares of the claim's words have the same order.
    """
    said = word_set(one.claim)
    return [float(len(said & word_set(sentence))) for sentence in one.sentences]


def nearness(bench: Bench) -> Scoring:
    """Return a function that scores how near each sentence is to the claim.

    It compares embeddings by the local MiniLM.
    """

    def scores(one: Marked) -> list[float]:
        vectors = np.asarray(bench.embedding.embed_documents([one.claim, *one.sentences]))
        # Only scores above 0 are quoted. 1 is added, so that each sentence with text is above 0.
        return [
            1 + near if sentence.strip() else 0
            for near, sentence in zip(
                (vectors[1:] @ vectors[0]).tolist(), one.sentences, strict=True
            )
        ]

    return scores


def highest(scores: Sequence[float], count: int) -> frozenset[int] | None:
    """Return the places of the highest scores above 0, or None if there are none.

    Of equal scores, the first come first.
    """
    order = sorted(range(len(scores)), key=lambda at: (-scores[at], at))[:count]
    return frozenset(at for at in order if scores[at] > 0) or None


def by_rule(one: Marked, most: int | None = None) -> frozenset[int] | None:
    """Return what RefChecker would quote of the whole page, whatever its label.

    Args:
        one: The claim.
        most: The greatest number of quotes; None: all.
    """
    page = index([Passage(0, 0, one.page)])
    return _quoted(one, find_evidence(one.claim, page, ClaimLabel.ENTAILMENT)[:most])


def by_refchecker(one: Marked, found: Evaluation) -> frozenset[int] | None:
    """Return what RefChecker quotes for the claims that it finds in this one."""
    return _quoted(one, [quote for claim in found.claims for quote in claim.evidence])


def _quoted(one: Marked, quotes: Sequence[Evidence]) -> frozenset[int] | None:
    spans = [(quote.span.start, quote.span.end) for quote in quotes]
    return one.quoted(spans) if spans else None


# --- The table ------------------------------------------------------------------------------------


def figures(found: Sequence[Agreement], seed: int) -> tuple[Figure, ...]:
    """Return the figures of a row.

    They are the precision over claims with a quote, the recall and F1 over all claims, the number
    of quoted sentences, and the number of claims without a quote.
    """
    groups = [one.group for one in found]
    with_quote = [one for one in found if one.precision is not None]
    precisions = [100 * one.precision for one in with_quote if one.precision is not None]
    return (
        mean_figure(precisions, seed, groups=[one.group for one in with_quote]),
        mean_figure([100 * one.recall for one in found], seed, groups=groups),
        mean_figure([100 * one.f1 for one in found], seed, groups=groups),
        mean_figure([one.count for one in found], seed, groups=groups),
        Figure(len(found) - len(with_quote)),
    )


def _row(
    name: str,
    chosen: Sequence[Marked],
    quoted: Callable[[Marked], frozenset[int] | None],
    seed: int,
    floor: bool = False,
) -> Row:
    found = [agreement(one, quoted(one)) for one in chosen]
    return Row(name, figures(found, seed), items=len(found), floor=floor)


def _ranked(
    bench: Bench, name: str, chosen: Sequence[Marked], scoring: Scoring, size: int, floor: bool
) -> list[Row]:
    """Return the rows of the best sentence and of the `size` best sentences."""
    scores: dict[str, Sequence[float]] = {}
    for at, one in enumerate(chosen):
        bench.report(name, at, len(chosen))
        scores[one.key] = scoring(one)
    sizes: Mapping[str, int] = {"1 sentence": 1, f"{size} sentences": size}
    return [
        _row(
            f"{name}, {told}",
            chosen,
            lambda one, count=count: highest(scores[one.key], count),  # type: ignore[misc]
            bench.seed,
            floor,
        )
        for told, count in sizes.items()
    ]


def _refchecker(bench: Bench, chosen: Sequence[Marked]) -> list[Row]:
    samples = [sample(one.claim, [one.page]) for one in chosen]
    done = bench.judged("refchecker", RefChecker(bench.model), samples)
    found = [
        agreement(one, by_refchecker(one, of.value))
        for one, of in zip(chosen, done, strict=True)
        if not of.value.undetermined
    ]
    with_quote = [one for one in found if one.precision is not None]
    return [
        Row(
            "refchecker",
            figures(found, bench.seed),
            items=len(found),
            undetermined=len(done) - len(found),
            spent=mean_cost(done),
        ),
        Row("refchecker, claims with a quote", figures(with_quote, bench.seed), len(with_quote)),
    ]


def _make(bench: Bench) -> Result:
    labels, ways = bench.names("labels", LABELS), bench.names("ways", WAYS)
    every = marked(bench.read("wice"), labels)
    if not every:
        raise ValueError(
            f"the set holds no claim that is {' or '.join(labels)} and has supporting sentences: "
            "name other labels with -O labels=, or another file with --data"
        )
    ordered = sorted(every, key=lambda one: place(bench.seed, one.key))
    chosen = ordered[: bench.limit or _CLAIMS]
    mean_size = sum(one.mean_size for one in chosen) / len(chosen)
    size = max(2, round(mean_size))
    rows: list[Row] = []
    if "overlap" in ways:
        rows += _ranked(bench, "overlap", chosen, shared_words, size, floor=True)
    if "nearness" in ways:
        rows += _ranked(bench, "nearness", chosen, nearness(bench), size, floor=False)
    if "rule" in ways:
        name = "refchecker's rule on the page"
        rows.append(_row(f"{name}, first quote", chosen, lambda one: by_rule(one, 1), bench.seed))
        rows.append(_row(name, chosen, by_rule, bench.seed))
    if "refchecker" in ways:
        rows += _refchecker(bench, chosen)
    return Result(
        (
            Column("precision, %"),
            Column("recall, %"),
            Column("F1, %"),
            Column("sentences quoted", 2),
            Column("claims without a quote", 0),
        ),
        tuple(rows),
        (
            f"{len(chosen)} of {len(every)} claims that are {' or '.join(labels)}, which the seed "
            "chooses. Each page is one document.",
            f"A set of supporting sentences holds {mean_size:.1f} on the mean of these claims, so "
            f"the ways that rank sentences take 1 and {size}. Of the sets of a claim the one with "
            "the best F1 counts. Figures are means over claims.",
            "A sentence counts as quoted where quotes cover at least half of it. A claim without a "
            "quote has no precision, and a recall and an F1 of 0.",
            "overlap: by the share of the claim's words. nearness: by embeddings (MiniLM). "
            "refchecker: what it quotes for claims that it calls supported or contradicted, of the "
            "text that it reads. Its rule on the page: what it would quote of all of the page, "
            "whatever its label.",
        ),
    )


QUOTES = Table(
    "quotes",
    "demur",
    "How well the quotes that RefChecker gives agree with the sentences that people marked.",
    ("wice",),
    _make,
    options={
        "labels": f"some of {', '.join(LABELS)}, with commas between [default: all]",
        "ways": f"some of {', '.join(WAYS)}, with commas between [default: all]",
    },
)

TABLES = (QUOTES,)
