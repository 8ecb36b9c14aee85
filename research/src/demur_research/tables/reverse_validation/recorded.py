"""Make Tables 1, 3, 4 and 6 from the labels and from the publishers' records of two models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from demur import Sample
from demur.schema import Share
from demur_research.bench import Bench, Column, Figure, Result, Row
from demur_research.datasets.published import (
    CHATGPT,
    LLAMA_2,
    PHD_LISTS,
    VARIANTS,
    WIKIBIO_LISTS,
    Records,
    Variant,
    find_records,
    read_records,
)
from demur_research.datasets.rows import LabelledRow
from demur_research.replay import (
    LLM,
    PERCENTAGE,
    PUBLISHED,
    lmvslm,
    matchers,
    replay,
    selfcheck,
    zero_shot,
)
from demur_research.resampling import share
from demur_research.tables.reverse_validation.judged import (
    ALL_FALSE,
    HALVES,
    LMVSLM,
    MATCHERS,
    PHD,
    WIKIBIO,
    ZERO_SHOT,
    Judged,
    by_halves,
    floors,
    inconsistencies,
    passages,
    percentage,
    result,
    selfchecks,
    wrong,
)

_ASKED = "llm: what the recorded model said where the names differ as strings."
_OF_WIKIBIO = "selfcheck bertscore, threshold of WikiBio"
_LOWEST = (
    "Threshold of WikiBio, as the paper chooses it: all of its subset is wrong, so every figure is "
    "best there where all is rejected. It is the lowest score recorded of that subset."
)

_ALL_FALSE_PAPER = "41.3 26.0 100 57.1 40.0 100 38.7 24.0 100 24.6 14.0 100"
_TABLE_3 = {
    ALL_FALSE: _ALL_FALSE_PAPER,
    LMVSLM: "25.5 75.0 15.4 25.5 85.7 15.0 34.5 100 20.8 11.1 25.0 7.1",
    _OF_WIKIBIO: "41.1 26.0 97.4 56.1 39.4 97.5 39.7 24.7 100 23.6 13.5 92.8",
    ZERO_SHOT: "0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0",
    "qg, published_qg": "52.3 40.7 73.1 58.6 44.7 85.0 53.3 44.4 66.6 33.3 25.5 50.0",
    "em, published_em": "59.1 48.0 76.9 63.6 50.7 85.0 64.2 58.6 70.8 41.9 31.0 64.3",
}
_TABLE_6 = {
    ALL_FALSE: _ALL_FALSE_PAPER,
    LMVSLM: "41.5 26.3 98.7 57.6 40.4 100 40.0 25.0 100 23.2 13.3 92.9",
    _OF_WIKIBIO: _ALL_FALSE_PAPER,
    ZERO_SHOT: "2.5 100 1.3 0.0 0.0 0.0 0.0 0.0 0.0 13.3 100 7.1",
    "qg, published_qg": "50.9 35.5 89.7 58.0 41.8 95.0 52.9 36.5 95.8 31.6 20.9 64.3",
    "em, published_em": "50.0 34.7 89.7 59.0 42.4 97.5 44.2 29.6 87.5 37.7 25.6 71.4",
}
_TABLE_4 = {
    LMVSLM: ("29.8", "60.0"),
    ZERO_SHOT: ("0", "N/A"),
    "qg, wikibio_name": ("74.2", "10.0"),
    "em, published_em": ("67.2", "10.0"),
}
_TABLE_1 = {"high": ("86", "14"), "medium": ("76", "24"), "low": ("60", "40")}


def labels(bench: Bench) -> Result:
    """Return Table 1: how many passages of each domain are factual."""
    rows = passages(bench)
    shown = []
    for domain, paper in _TABLE_1.items():
        found = [wrong(row) for row in rows if row.metadata["domain"] == domain]
        counts = len(found) - sum(found), sum(found)
        figures = [Figure(n, paper=told) for n, told in zip(counts, paper, strict=True)]
        shown.append(Row(f"PHD-{domain.title()}", (*figures, share(found)), len(found)))
    columns = Column("factual", 0), Column("non-factual", 0), Column("non-factual, %")
    return Result(columns, tuple(shown))


def _detected(bench: Bench, model: str, paper: Mapping[str, str], source: str) -> Result:
    rows, records = passages(bench), records_of(bench, PHD, model)
    judged = [
        *floors(rows),
        Judged(LMVSLM, lmvslm(records.by_key)),
        *_selfchecks(bench, rows, records),
        Judged(ZERO_SHOT, zero_shot(records.by_key)),
        *_reverse_validation(bench, rows, records),
    ]
    notes = (source, *_unmatched(rows, records), MATCHERS, _ASKED, _LOWEST, HALVES)
    return result(bench, rows, judged, paper, notes)


chatgpt = partial(
    _detected,
    model=CHATGPT,
    paper=_TABLE_3,
    source="The replies of gpt-3.5-turbo-0301 that the publishers recorded; no model is asked.",
)
"""Table 3, from the records of ChatGPT."""
llama_2 = partial(
    _detected,
    model=LLAMA_2,
    paper=_TABLE_6,
    source="The replies of Llama-2-7b-chat that the publishers recorded; no model is asked.",
)
"""Table 6, from the records of Llama-2."""


def wikibio(bench: Bench) -> Result:
    """Return Table 4: how much of WikiBio is rejected, where every passage is wrong."""
    rows, records = passages(bench, WIKIBIO), records_of(bench, WIKIBIO, CHATGPT)
    judged = [
        Judged(ALL_FALSE, {row.key: True for row in rows}, floor=True),
        Judged(LMVSLM, lmvslm(records.by_key)),
        Judged(ZERO_SHOT, zero_shot(records.by_key)),
        *_reverse_validation(bench, rows, records),
    ]
    columns = Column("rejected, %"), Column("least share of wrong sentences of those, %")
    notes = (
        "All passages are wrong, so what rejects everything is never wrong.",
        *_unmatched(rows, records),
        *(MATCHERS, _ASKED),
    )
    return Result(columns, tuple(_wikibio_row(rows, one) for one in judged), notes)


def _wikibio_row(rows: Sequence[LabelledRow], one: Judged) -> Row:
    decided = one.decided(rows)
    ratios = [float(str(row.metadata["ratio"])) for row, rejected in decided if rejected]
    rejected, least = _TABLE_4.get(one.name, ("", ""))
    figures = (
        Figure.of_share(Share(len(ratios), len(decided)), rejected),
        Figure(100 * min(ratios) if ratios else None, paper=least),
    )
    return Row(one.name, figures, len(decided), one.undetermined(rows), floor=one.floor)


def _reverse_validation(
    bench: Bench, rows: Sequence[LabelledRow], records: Records
) -> Iterator[Judged]:
    least = percentage(bench, PERCENTAGE)
    for variant in VARIANTS:
        yield from by_matchers(rows, records, variant, least, variant)


def by_matchers(
    rows: Sequence[LabelledRow], records: Records, variant: Variant, least: float, title: str
) -> Iterator[Judged]:
    """Yield what each matcher decides on the recorded replies of a variant.

    Args:
        rows: The passages.
        records: The recorded replies.
        variant: The variant.
        least: The least percentage that entity matching has to give.
        title: The beginning of the names.
    """
    entities = {row.key: str(row.metadata["entity"]) for row in rows}
    said = {key: records.by_key[key] for key in entities if key in records.by_key}
    found = {name: replay(entities, said, variant, name, least) for name in matchers(variant)}
    published = found[PUBLISHED[variant]]
    for name, verdicts in found.items():
        if name == LLM and not verdicts:  # no model was asked
            continue
        over = None if name == PUBLISHED[variant] else published
        yield Judged(f"{title}, {name}", verdicts, published=over)


def _selfchecks(bench: Bench, rows: Sequence[LabelledRow], records: Records) -> Iterator[Judged]:
    scores = selfcheck(records.by_key)
    least = _lowest_of_wikibio(bench) if scores else 0.0
    yield Judged(_OF_WIKIBIO, {key: score >= least for key, score in scores.items()})
    yield by_halves("selfcheck bertscore", rows, scores)
    samples = with_samples(rows, records)
    sampled = [row for row in rows if row.key in samples]
    for name, check in selfchecks(bench, model=False).items():
        done = bench.judged(name, check, [samples[row.key] for row in sampled])
        yield by_halves(name, rows, inconsistencies(sampled, done))


def with_samples(rows: Sequence[LabelledRow], records: Records) -> dict[str, Sample]:
    """Return each passage that has recorded samples as SelfCheck reads it, by its key."""
    return {
        row.key: Sample(answer=row.answers[0].text, metadata={"samples": [*said.samples]})
        for row in rows
        if (said := records.by_key.get(row.key)) and said.samples
    }


def _lowest_of_wikibio(bench: Bench) -> float:
    """Return the paper's threshold (section 5): passages with this score or more are rejected."""
    scores = selfcheck(records_of(bench, WIKIBIO, CHATGPT, "wikibio-records").by_key)
    if not scores:
        raise ValueError(
            "the records of WikiBio hold no scores by BERTScore to choose a threshold from: name "
            "records that do with -O wikibio-records=PATH"
        )
    return min(scores.values())


def records_of(bench: Bench, name: str, model: str, option: str = "records") -> Records:
    """Return the records of a set, from the option's path or else from beside the set's files."""
    lists = {PHD: PHD_LISTS, WIKIBIO: WIKIBIO_LISTS}[name]
    given = bench.options.get(option)
    place = Path(given) if given else bench.read(name).folder
    try:
        if place is None:
            raise ValueError("the folder of the data is not known, so its records were not found")
        files = find_records(place, lists, model)
    except ValueError as error:
        raise ValueError(
            f"{error}. Say where the records of {name} are: -O {option}=PATH"
        ) from error
    return read_records(files, passages(replace(bench, limit=None), name))


def _unmatched(rows: Sequence[LabelledRow], records: Records) -> Iterator[str]:
    missing = sum(row.key not in records.by_key for row in rows)
    if missing:
        yield f"{missing} of {len(rows)} passages have no record."
    if records.left_over:
        names = ", ".join(records.left_over)
        yield f"{len(records.left_over)} records are of passages that the data lacks: {names}."
