"""Compare two models' answers with FEWL: whether it finds the truer one by the labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from demur_research.bench import Bench, Column, Figure, Result, Row, Table, mean_cost
from demur_research.ranking import (
    PairwiseAgreement,
    pairwise_agreement,
    tqa_metric,
)
from demur_research.spending import Spent
from demur_research.tables.fewl.asking import answered
from demur_research.tables.fewl.measures import FLOORS, share, told
from demur_research.tables.fewl.scoring import (
    OPTIONS,
    Question,
    Scorer,
    Setting,
    chosen,
)

_PAIRS_OF_METHODS = {
    "one reference": ("single", "single-penalty"),
    "five references by expertise": ("multi-weighted", "fewl"),
    "five references by expertise, weights of mean one": (
        "multi-weighted-mean-one",
        "fewl-mean-one",
    ),
}
"""The configurations without penalty and with penalty, by the name of the method."""
_PAPER_PAIRS = {
    "Flan-t5-base v.s. GPT-3.5": ("60.11", "64.60"),
    "Flan-t5-large v.s. GPT-3.5": ("60.65", "63.13"),
    "Flan-t5-base v.s. Flan-t5-large": ("58.32", "59.39"),
}
"""The paper's figures without and with penalty, with GPT-4 as the reference."""


def _samples(bench: Bench) -> Result:
    names = [bench.options.get("first", bench.model_name), bench.options.get("second", "")]
    if not names[1] or names[0] == names[1]:
        raise ValueError(
            "second: expected the name of a second model, as --model takes it, such as "
            "--option second=ollama:NAME"
        )
    rows = chosen(bench, "truthfulqa")
    texts = [str(row.question) for row in rows]
    models = [bench.model_of(name) for name in names]
    said = [
        bench.each(f"answers of {name}", texts, partial(answered, model))
        for name, model in zip(names, models, strict=True)
    ]
    questions = [
        Question(
            str(row.question),
            tuple("" if one.value.error else one.value.value for one in (first, second)),
            tuple(answer.text for answer in row.answers if answer.hallucinated is False),
            tuple(answer.text for answer in row.answers if answer.hallucinated is True),
        )
        for row, first, second in zip(rows, *said, strict=True)
    ]
    scorer = Scorer(bench, questions, Setting.of(bench))
    truth = [_truth(scorer, question) for question in questions]
    pair = f"{names[0]} v.s. {names[1]}"
    found = []
    for name, configurations in _PAIRS_OF_METHODS.items():
        scored = [scorer.scored(configuration) for configuration in configurations]
        agreements = [_agreement(one.scores, truth, bench.seed) for one in scored]
        found.append(
            Row(
                f"{pair}: {name}",
                tuple(share(one.preference) for one in agreements),
                items=len(rows) - agreements[1].undecided - agreements[1].preference.missing,
                undetermined=agreements[1].preference.missing,
                spent=scored[1].spent,
            )
        )
    found += [
        Row(name, tuple(Figure(None, paper=told(["GPT-4"], one)) for one in figures))
        for name, figures in _PAPER_PAIRS.items()
    ]
    for name, score in FLOORS.items():
        floors = [[score(one.text, answer) for answer in one.answers] for one in questions]
        agreed = _agreement(floors, truth, bench.seed)
        figures = (share(agreed.preference), None)
        known = len(rows) - agreed.undecided - agreed.preference.missing
        found.append(Row(f"{pair}: {name}", figures, items=known, floor=True))
    same = sum(first == second for first, second in truth if first is not None)
    notes = [
        "An answer is true by its greatest similarity to a labelled right answer, less that to a "
        f"wrong one. Left out are the questions to which both answers are equally true: {same}.",
        *scorer.notes(),
        *(
            f"{len(lacking)} answers of {name} are missing, the first since {lacking[0]}"
            for name, answers in zip(names, said, strict=True)
            if (lacking := [one.value.error for one in answers if one.value.error])
        ),
        *(
            f"An answer of {name} took {_tokens(spent)} and {spent.seconds:.1f} seconds."
            for name, answers in zip(names, said, strict=True)
            if (spent := mean_cost(answers)) is not None
        ),
    ]
    columns = Column("agrees with the labels without penalty, %"), Column("with penalty, %")
    return Result(columns, tuple(found), tuple(notes))


def _tokens(spent: Spent) -> str:
    return "untold tokens" if spent.tokens is None else f"{spent.tokens:.0f} tokens"


def _truth(scorer: Scorer, question: Question) -> tuple[float | None, float | None]:
    """Return how true both answers are by the labelled answers; None if an answer is missing."""
    if not all(question.answers):
        return None, None
    labelled = [*question.correct, *question.incorrect]
    pairs = [(answer, text) for answer in question.answers for text in labelled]
    scores = scorer.similarity().scores(pairs).tolist()
    right = len(question.correct)
    first, second = scores[: len(labelled)], scores[len(labelled) :]
    return tqa_metric(first[:right], first[right:]), tqa_metric(second[:right], second[right:])


def _agreement(
    scores: Sequence[Sequence[float | None]],
    truth: Sequence[tuple[float | None, float | None]],
    seed: int,
) -> PairwiseAgreement:
    return pairwise_agreement(
        [row[0] for row in scores],
        [row[1] for row in scores],
        [first for first, _ in truth],
        [second for _, second in truth],
        seed,
    )


_OPTIONS = {
    **OPTIONS,
    "first": "the first model that answers, named as for --model [default: --model]",
    "second": "the second model that answers, named as for --model [required]",
}

SAMPLES = tuple(
    Table(
        f"fewl-v{version}-table-{number}",
        f"FEWL, version {version}, Table {number}",
        "Whether FEWL finds the truer of two models' answers.",
        ("truthfulqa",),
        _samples,
        options=_OPTIONS,
    )
    for version, number in ((1, 5), (2, 4))
)
