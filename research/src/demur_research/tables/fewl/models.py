"""Rank models with FEWL by their answers to multiple choice, beside the ranking by accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from demur.evaluators import normalized_text
from demur_research.bench import Bench, Column, Figure, Result, Row, Table
from demur_research.datasets.rows import LabelledRow
from demur_research.ranking import (
    ModelRanking,
    rank_models,
)
from demur_research.tables.fewl.measures import FLOORS, Scores
from demur_research.tables.fewl.scoring import (
    OPTIONS,
    Question,
    Scorer,
    Setting,
    in_order,
)

CORRECT = "correct"
"""The recorded outcome of a right choice; the others are "incorrect" and "unknown"."""

_WITH_PENALTY, _WITHOUT = "fewl", "multi-weighted"
_METHODS = {
    "FEWL": _WITH_PENALTY,
    "FEWL without penalty": _WITHOUT,
    "FEWL, weights of mean one": "fewl-mean-one",
    "FEWL without penalty, weights of mean one": "multi-weighted-mean-one",
}
_PAPER_MODELS = {
    "Flan-t5-base": ("0.2999", "0.0401"),
    "Flan-alpaca-large": ("0.2564", "0.0295"),
    "Flan-alpaca-base": ("0.2510", "0.0211"),
    "Flan-t5-large": ("0.2415", "0.0202"),
    "Text-davinci-003": ("0.1954", "-0.0027"),
}
"""The paper's models, each with its true rate and its FEWL score."""


def chosen_text(options: Mapping[str, str], right: str, outcome: str, reply: str | None) -> str:
    """Return what a model answered, in words.

    Args:
        options: The texts of the options, by their letters.
        right: The letter of the right option.
        outcome: The outcome that the publisher recorded.
        reply: The recorded reply; the publisher keeps no reply of a right choice.

    Returns:
        The text of the option that the reply gives. If the reply gives several options and one
        contains the others, that one counts. If it gives no option, or several of which none
        contains the others, the reply itself is returned, and an empty text if the reply says
        nothing.
    """
    if outcome == CORRECT:
        return options[right]
    said = f" {normalized_text(reply or '')} "
    given = [text for text in options.values() if f" {normalized_text(text)} " in said]
    for text in given:
        if all(normalized_text(other) in normalized_text(text) for other in given):
            return text
    return (reply or "").strip() if said.strip() else ""


@dataclass(frozen=True)
class Choices:
    """Hold what models chose in one question of multiple choice."""

    question: str
    right: Mapping[str, bool]
    """Whether each model's choice was graded right."""
    texts: Mapping[str, str]
    """Each model's choice in words; empty if the model said nothing."""

    @classmethod
    def of(cls, row: LabelledRow) -> Choices:
        """Read what was recorded for a row.

        Raises:
            ValueError: The row holds no outcomes.
        """
        recorded = row.metadata.get("recorded")
        if not isinstance(recorded, dict):
            raise ValueError(f"{row.key} holds no recorded answers of models")
        options = {str(answer.name): answer.text for answer in row.answers}
        right, texts = {}, {}
        for model, kept in recorded.items():
            if not isinstance(kept, dict):
                raise ValueError(f"{row.key} holds no outcome of {model}")
            outcome, reply = str(kept["outcome"]), kept.get("text")
            right[model] = outcome == CORRECT
            said = reply if isinstance(reply, str) else None
            texts[model] = chosen_text(options, str(row.metadata["correct"]), outcome, said)
        return cls(str(row.question), right, texts)

    @property
    def answers(self) -> tuple[str, ...]:
        """Return the chosen texts, each once: models that choose the same text share a score."""
        return tuple(dict.fromkeys(self.texts.values()))


def _choices(bench: Bench) -> list[Choices]:
    wanted = bench.options.get("set", "truthfulqa")
    rows = [row for row in bench.read("haltt4llm") if row.metadata.get("set") == wanted]
    if not rows:
        raise ValueError(f"set: the data hold no questions of the set {wanted!r}")
    return [Choices.of(row) for row in in_order(bench, rows)]


def _models(bench: Bench) -> Result:
    every = _choices(bench)
    models = [model for model in every[0].texts if all(model in one.texts for one in every)]
    kept = [one for one in every if all(one.texts[model] for model in models)]
    if not kept:
        raise ValueError(
            "there is no question to which every model has an answer: name another set with "
            "-O set=NAME, or other data with --data"
        )
    questions = [Question(one.question, one.answers) for one in kept]
    scorer = Scorer(bench, questions, Setting.of(bench))
    scored = {name: scorer.scored(configuration) for name, configuration in _METHODS.items()}
    # All figures are over the same questions: those for which every method has all scores.
    whole = [
        at for at in range(len(kept)) if not any(None in one.scores[at] for one in scored.values())
    ]
    if not whole:
        raise ValueError(f"no question has a score: {' '.join(scorer.notes())}")
    truth = {model: sum(kept[at].right[model] for at in whole) / len(whole) for model in models}

    def ranked(scores: Scores) -> ModelRanking:
        by_model = {
            model: [scores[at][kept[at].answers.index(kept[at].texts[model])] for at in whole]
            for model in models
        }
        return rank_models(by_model, truth, bench.seed)

    rankings = {name: ranked(one.scores) for name, one in scored.items()}
    shown = rankings["FEWL"], rankings["FEWL without penalty"]
    lacking = len(kept) - len(whole)
    rows = [
        Row(
            model,
            (Figure(truth[model]), *(_mean(ranking, model) for ranking in shown), None),
            len(whole),
            lacking,
        )
        for model in sorted(models, key=lambda model: -truth[model])
    ]
    rows += [
        Row(name, (Figure(None, paper=rate), Figure(None, paper=score), None, None))
        for name, (rate, score) in _PAPER_MODELS.items()
    ]
    rows += [
        Row(
            f"ranking by {name} ({_METHODS[name]})",
            (None, None, None, _tau(ranking)),
            len(whole),
            lacking,
            scored[name].spent,
        )
        for name, ranking in rankings.items()
    ]
    for name, score in FLOORS.items():
        ranking = ranked([[score(one.text, answer) for answer in one.answers] for one in questions])
        rows.append(
            Row(f"ranking by {name}", (None, None, None, _tau(ranking)), len(whole), floor=True)
        )
    notes = (
        "The models are those of which answers are recorded, and not the paper's. All are told of "
        "the same questions, to which every model says something: "
        f"{len(every) - len(kept)} of {len(every)} are left out.",
        *_ON_CHOICES,
        *scorer.notes(),
    )
    columns = (
        Column("true rate", digits=4),
        Column("FEWL, mean", digits=4),
        Column("FEWL without penalty, mean", digits=4),
        Column("Kendall's tau to the true ranking", digits=2),
    )
    return Result(columns, tuple(rows), notes)


_ON_CHOICES = (
    "The paper's references are three models with an answer each; here they are five answers of "
    "one model.",
    "What is scored is the text of the option that a model chose, or its reply where it gave none "
    "or listed several.",
    'In the set "truthfulqa" the right option is always A: a model that favours A looks as if it '
    "knew. The grader also counts a reply that recites all options as right.",
    "The paper calls its true rate an error rate, 1 less the accuracy, and ranks more as better; "
    "here it is the share of right choices. Its own five models have a tau of 1.",
)


def _mean(ranking: ModelRanking, model: str) -> Figure:
    ranked = next(one for one in ranking.models if one.model == model)
    return Figure(ranked.mean, *ranked.interval)


def _tau(ranking: ModelRanking) -> Figure:
    low, high = ranking.tau_interval or (None, None)
    return Figure(ranking.tau, low, high)


_OPTIONS = {
    **OPTIONS,
    "set": "the set of questions: truthfulqa, hq, fake or nota [default: truthfulqa]",
}

MODELS = tuple(
    Table(
        f"fewl-v{version}-table-{number}",
        f"FEWL, version {version}, Table {number}",
        "Whether FEWL ranks models by their answers to multiple choice as their accuracy does.",
        ("haltt4llm",),
        _models,
        options=_OPTIONS,
    )
    for version, number in ((1, 4), (2, 3))
)
