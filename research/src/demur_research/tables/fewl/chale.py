"""Score CHALE with FEWL: how often the right answer beats the half right and the wrong one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product

import numpy as np

from demur.evaluators import CONFIGURATIONS
from demur.evaluators.fewl import formula
from demur.evaluators.fewl.formula import Floats
from demur.scoring import Preference, preference
from demur.similarity import Similarity
from demur_research.bench import Bench, Column, Figure, Result, Row, Table
from demur_research.datasets.rows import LabelledRow
from demur_research.ranking import kendall_tau
from demur_research.resampling import mean_figure
from demur_research.tables.fewl.measures import (
    BY_HHEM,
    MODELS_OF_V1,
    Line,
    Measure,
    Scores,
    by_version,
    lines,
    measured,
    options_of,
    ours,
)
from demur_research.tables.fewl.scoring import OPTIONS, Question, Scorer, Setting, chosen

SIDES = ("non_hallu", "half_hallu", "hallu")
"""The names of a question's answers: right, half right and wrong."""

MEASURES = (
    Measure("NH > HH", lambda scores, seed: _right_over(1, scores, seed)),
    Measure("NH > H", lambda scores, seed: _right_over(2, scores, seed)),
)
"""The measures: the right answer above the half right one, and above the wrong one."""

OF_PAPERS = "The papers have 940 questions and do not say which. Here they are the set's own."


def _right_over(place: int, scores: Scores, seed: int) -> Preference:
    return preference([row[0] for row in scores], [row[place] for row in scores], seed)


def _scorer(bench: Bench) -> Scorer:
    questions = [Question.of(row, SIDES) for row in chosen(bench, "chale")]
    return Scorer(bench, questions, Setting.of(bench))


def _make(given: Sequence[Line], alone: str, more: Sequence[Line], bench: Bench) -> Result:
    return measured(_scorer(bench), (*given, *more), MEASURES, alone, notes=[OF_PAPERS])


def _table(
    name: str,
    source: str,
    what: str,
    given: Sequence[Line],
    alone: str = "fewl",
    more: Sequence[Line] = ours(),
) -> Table:
    make = partial(_make, given, alone, more)
    return Table(name, source, what, ("chale",), make, options=options_of(given))


# --- The papers' figures: NH > HH, then NH > H ---------------------------------------------------

_V1_TABLE_1 = lines(
    MODELS_OF_V1,
    ("single + no penalty", "single", "65.24±0.14 66.56±0.19", "62.89±0.28 65.88±0.12"),
    ("single + penalty", "single-penalty", "66.31±0.29 68.39±0.32", "66.61±0.24 68.95±0.29"),
    ("multi + no penalty", "multi", "67.67±0.16 68.95±0.16", "65.54±0.18 67.89±0.14"),
    ("FEWL (Ours)", "fewl", "70.52±0.37 72.66±0.22", "70.36±0.33 73.18±0.20"),
)
_V1_TABLE_2 = lines(
    MODELS_OF_V1,
    ("FEWL (Uniform)", "fewl-uniform", "68.52±0.21 70.38±0.29", "66.89±0.16 69.86±0.35"),
    ("FEWL (Ours)", "fewl", "70.52±0.37 72.66±0.22", "70.36±0.33 73.18±0.20"),
    ("FEWL (Ideal)", "fewl-ideal", "70.65±0.21 72.79±0.17", "70.52±0.27 73.45±0.18"),
)
_V1_TABLE_9 = lines(
    MODELS_OF_V1,
    ("single + no penalty", "single", "65.74±0.10 66.91±0.13", "63.30±0.08 66.38±0.19"),
    ("single + penalty", "single-penalty-random", "66.70±0.21 68.57±0.24", "66.45±0.40 69.15±0.31"),
    ("multi + no penalty", "multi", "67.87±0.13 68.62±0.39", "65.74±0.15 68.82±0.28"),
    ("FEWL (Uniform)", "fewl-uniform-random", "70.48±0.31 72.24±0.35", "70.42±0.19 72.77±0.20"),
    ("FEWL (Ours)", "fewl-random", "71.29±0.26 72.67±0.23", "71.31±0.19 73.32±0.24"),
    ("FEWL (Ideal)", "fewl-ideal-random", "71.50±0.27 72.89±0.17", "71.66±0.30 73.60±0.15"),
)
_V2_TABLE_1 = lines(
    ("GPT-3.5", "GPT-4", "GPT-5", "Llama-3.1", "Qwen-3.4B", "DeepSeek-V3"),
    (
        *("Single + No Penalty", "single"),
        "67.77 69.04 71.60 65.32 63.62 71.70",
        "66.60 67.23 72.13 65.74 62.77 70.11",
    ),
    (
        *("Single + Penalty", "single-penalty"),
        "76.06 76.70 81.60 73.94 69.89 78.94",
        "76.60 76.60 81.81 73.94 70.00 79.36",
    ),
    (
        *("Multi + No Penalty", "multi"),
        "69.15 69.04 73.94 67.98 64.04 73.19",
        "67.98 69.04 75.11 69.47 64.15 71.28",
    ),
    (
        *("FEWL (Ours)", "fewl"),
        "78.94 79.57 83.72 77.55 75.11 80.96",
        "77.66 78.94 83.51 77.13 73.40 79.89",
    ),
)
_MODELS_OF_TABLE_7 = ("Falcon-7B", *MODELS_OF_V1)
_V2_TABLE_7 = by_version(
    lines(
        _MODELS_OF_TABLE_7,
        ("Single + No Penalty", "single", "59.57 67.77 69.04", "60.43 66.60 67.23"),
        ("Single + Penalty", "single-penalty", "68.09 76.06 76.70", "68.62 76.60 76.60"),
        ("Multi + No Penalty", "multi", "62.66 69.15 69.04", "61.81 67.98 69.04"),
        ("FEWL (Ours)", "fewl", "73.30 78.94 79.57", "72.23 77.66 78.94"),
    ),
    lines(
        _MODELS_OF_TABLE_7,
        ("Single + No Penalty", "single", "53.81 65.24 66.56", "51.75 62.89 65.88"),
        ("Single + Penalty", "single-penalty", "55.21 66.31 68.39", "52.87 66.61 68.95"),
        ("Multi + No Penalty", "multi", "54.57 67.67 68.95", "52.19 65.54 67.89"),
        ("FEWL (Ours)", "fewl", "59.13 70.52 72.66", "58.70 70.36 73.18"),
    ),
)
_V2_TABLE_10 = lines(
    ("Mistral", "Gemma", "Phi-3"),
    ("single + no penalty", "single", "60.41 58.12 69.95", "59.82 59.76 70.06"),
    ("multi + no penalty", "multi", "66.73 62.19 71.63", "69.75 61.47 73.57"),
    ("single + penalty", "single-penalty", "65.59 74.10 73.68", "65.93 75.37 74.15"),
    ("FEWL (Ours)", "fewl", "72.24 81.72 76.43", "74.85 79.63 78.95"),
)
_V2_TABLE_15 = (
    *lines(
        MODELS_OF_V1,
        ("single + no penalty", "single", "65.24 66.56", "62.89 65.88"),
        ("single-best + no penalty", "single-best", "65.96 67.12", "63.34 66.36"),
    ),
    *lines(
        ("GPT-3.5",),
        ("multi + no penalty", "multi", "67.67", "65.54"),
        ("single + penalty", "single-penalty", "66.31", "66.61"),
        ("FEWL (Ours)", "fewl", "70.52", "70.36"),
    ),
)
_V2_TABLE_16 = (
    *lines(
        MODELS_OF_V1,
        ("JS, single + no penalty", "single-js", "65.24 66.56", "62.89 65.88"),
        ("JS, single + penalty", "single-penalty-js", "66.82 70.10", "66.93 70.33"),
        ("JS, multi + no penalty", "multi-js", "67.67 68.95", "65.54 67.89"),
        ("JS, FEWL (Ours)", "fewl-js", "70.30 72.53", "69.45 72.32"),
        ("KL, single + no penalty", "single-kl", "65.24 66.56", "62.89 65.88"),
        ("KL, single + penalty", "single-penalty-kl", "68.95 70.62", "66.18 69.13"),
        ("KL, multi + no penalty", "multi-kl", "67.67 68.95", "65.54 67.89"),
    ),
    *lines(("GPT-3.5",), ("KL, FEWL (Ours)", "fewl-kl", "71.18", "69.48")),
)

# --- Answers in numbers (version 1, Table 8) ------------------------------------------------------

_STATISTICS: Mapping[str, Callable[[str], int]] = {
    "words": lambda text: len(text.split()),
    "different words": lambda text: len(set(text.split())),
    "characters": len,
}
_KINDS: Mapping[str, tuple[str, tuple[str, str, str]]] = {
    "Short": ("short_answer", ("4.49", "4.15", "24.72")),
    "Long": ("long_answer", ("259.64", "95.89", "1111.28")),
    "Non-Hallu": ("non_hallu", ("33.57", "26.17", "170.49")),
    "Mid-Hallu": ("half_hallu", ("33.54", "26.24", "169.79")),
    "Hallu": ("hallu", ("33.15", "26.06", "167.66")),
}
"""By the papers' names, the field or answer of a row that holds the text, and the paper's means."""


def _statistics(bench: Bench) -> Result:
    found = chosen(bench, "chale")
    rows = []
    for name, (where, paper) in _KINDS.items():
        texts = [text for row in found if (text := _text(row, where)) is not None]
        counted = np.array([[count(text) for text in texts] for count in _STATISTICS.values()])
        figures = _means(counted, paper, bench.seed) if texts else [Figure(None, paper=paper[0])]
        rows.append(Row(name, tuple(figures), items=len(texts)))
    columns = tuple(Column(f"{name}, mean", digits=2) for name in _STATISTICS)
    words = "Words are what spaces part; letters of another case make another word."
    return Result(columns, tuple(rows), (OF_PAPERS, words))


def _text(row: LabelledRow, where: str) -> str | None:
    texts = {answer.name: answer.text for answer in row.answers}
    text = texts.get(where, row.metadata.get(where))
    return text if isinstance(text, str) else None


def _means(counted: Floats, paper: Sequence[str], seed: int) -> list[Figure]:
    return [mean_figure(counted[at], seed, told) for at, told in enumerate(paper)]


# --- All configurations ---------------------------------------------------------------------------

_ALL_OPTIONS = {
    **OPTIONS,
    "configs": "names of configurations, with commas between [default: all]",
    "agreement": "yes adds the configurations that ask the references what they agree with "
    "[default: no]",
    "pairs": "what corrected answers do: denied (deny the wrong one) or right (say what is right) "
    "[default: denied]",
    "temperature": "the temperature of the softmax over expertise [default: 1]",
    "premise": "which text is the premise: answer (the judged one) or reference [default: answer]",
}


def _all(bench: Bench) -> Result:
    scorer = _scorer(bench)
    names = _names(bench)
    given = ours(*names)
    told = []
    if {CONFIGURATIONS[name]["weighting"] for name in names} & {"expertise", "agreement", "best"}:
        told.append(weighing(scorer))
    alone = next((name for name in names if CONFIGURATIONS[name]["penalty"]), None)
    return measured(scorer, given, MEASURES, alone, told)


def _names(bench: Bench) -> list[str]:
    by_agreement = [
        name for name, given in CONFIGURATIONS.items() if given["weighting"] == "agreement"
    ]
    wanted = bench.one_of("agreement", ("no", "yes"), "no") == "yes"
    every = [name for name in CONFIGURATIONS if wanted or name not in by_agreement]
    names = bench.names("configs", CONFIGURATIONS, every)
    for name in names:
        if name not in every:
            raise ValueError(f"configs: {name} needs --option agreement=yes")
    return names


def weighing(scorer: Scorer) -> str:
    """Say whether expertise by pairs ranks reference answers as labelled answers rank them."""
    similarity = scorer.similarity()
    known = {one.question: one for one in scorer.known("fewl")}
    taus = []
    for question in scorer.questions:
        one = known.get(question.text)
        if one is not None and one.pairs is not None and one.pairs.usable:
            wrong, corrected = zip(*one.pairs.usable, strict=True)
            tau = kendall_tau(
                _expertise(one.answers, corrected, wrong, similarity),
                _expertise(one.answers, question.correct, question.incorrect, similarity),
            )
            taus += [tau] if tau is not None else []
    if len(taus) < 2:
        return "Too few questions to tell whether the pairs rank reference answers as labels do."
    half = 1.96 * np.std(taus, ddof=1) / len(taus) ** 0.5
    return (
        f"Expertise by pairs and by labels: mean Kendall tau over the answers to a question "
        f"{np.mean(taus):.2f} +- {half:.2f} (95 %, {len(taus)} questions)."
    )


def _expertise(
    answers: Sequence[str], corrected: Sequence[str], wrong: Sequence[str], similarity: Similarity
) -> Floats:
    pairs = list(product(answers, [*corrected, *wrong]))
    table = np.reshape(similarity.scores(pairs), (len(answers), -1))
    return formula.expertise(table[:, : len(corrected)], table[:, len(corrected) :])


# --- Tables ---------------------------------------------------------------------------------------

_RANDOM = ours("multi-weighted", "fewl-random-mean-one", "multi-weighted-mean-one")
_DIVERGENT = ours("fewl-js-mean-one", "fewl-kl-mean-one", "multi-weighted-mean-one")
_WHAT = "How often FEWL scores CHALE's right answer above the half right and the wrong one"

CHALE = (
    _table("fewl-v1-table-1", "FEWL, version 1, Table 1", f"{_WHAT}.", _V1_TABLE_1),
    _table("fewl-v1-table-2", "FEWL, version 1, Table 2", f"{_WHAT}, by weights.", _V1_TABLE_2),
    Table(
        "fewl-v1-table-8",
        "FEWL, version 1, Table 8",
        "How long CHALE's answers are.",
        ("chale",),
        _statistics,
        asks=False,
    ),
    _table(
        "fewl-v1-table-9",
        "FEWL, version 1, Table 9",
        f"{_WHAT}, with random questions as neighbours.",
        _V1_TABLE_9,
        "fewl-random",
        _RANDOM,
    ),
    _table("fewl-v2-table-1", "FEWL, version 2, Table 1", f"{_WHAT}.", _V2_TABLE_1),
    _table(
        "fewl-v2-table-7",
        "FEWL, version 2, Table 7",
        f"{_WHAT}, by two similarities.",
        _V2_TABLE_7,
        more=BY_HHEM,
    ),
    _table("fewl-v2-table-10", "FEWL, version 2, Table 10", f"{_WHAT}.", _V2_TABLE_10),
    _table(
        "fewl-v2-table-11",
        "FEWL, version 2, Table 11",
        f"{_WHAT}, with random questions as neighbours.",
        _V1_TABLE_9,
        "fewl-random",
        _RANDOM,
    ),
    _table("fewl-v2-table-12", "FEWL, version 2, Table 12", f"{_WHAT}, by weights.", _V1_TABLE_2),
    _table(
        "fewl-v2-table-15",
        "FEWL, version 2, Table 15",
        f"{_WHAT}, with the best reference alone.",
        _V2_TABLE_15,
    ),
    _table(
        "fewl-v2-table-16",
        "FEWL, version 2, Table 16",
        f"{_WHAT}, by other divergences.",
        _V2_TABLE_16,
        "fewl-js",
        _DIVERGENT,
    ),
    Table(
        "fewl-chale-all",
        "demur",
        f"{_WHAT}, by every configuration.",
        ("chale",),
        _all,
        options=_ALL_OPTIONS,
    ),
)
