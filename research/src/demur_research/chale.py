"""FEWL on CHALE: how often the right answer scores above the half and the wholly wrong one.

Every configuration of the papers' tables is scored from recorded replies, without a model, beside
the trivial floor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from demur import FEWL, Evaluation, NeighborStore, Sample
from demur.evaluators import CONFIGURATIONS, normalized_text, preference
from demur.evaluators.fewl import formula
from demur.evaluators.fewl.formula import Floats
from demur.evaluators.fewl.neighbors import KnownQuestion
from demur.evaluators.fewl.terms import Premise
from demur.similarity import Similarity
from demur_research.ranking import kendall_tau
from demur_research.recorder import Lines
from demur_research.references import SIDES, Asked, NoModel, Question, Side

Scores: TypeAlias = dict[Side, list[float | None]]

BY_AGREEMENT = [name for name, options in CONFIGURATIONS.items() if "expertise" in options]
"""Configurations that want to know with what the references agree."""


@dataclass(frozen=True)
class Scoring:
    """How the answers are scored, beside the configuration."""

    asked: Asked
    similarity: Similarity
    k_neighbors: int = 25
    temperature: float = 1.0
    premise: Premise = "answer"
    drop_alike: float = 1.0
    """Pairs whose sides are so alike, or more, are dropped; 1: none."""

    def fewl(self, configuration: str, store: NeighborStore) -> FEWL:
        """The evaluator of a configuration, for questions that the store knows."""
        return FEWL(
            NoModel(),
            similarity=self.similarity,
            n_answers=self.asked.n_answers,
            n_wrong=self.asked.n_wrong,
            k_neighbors=self.k_neighbors,
            temperature=self.temperature,
            premise=self.premise,
            neighbors=store,
            **CONFIGURATIONS[configuration],
        )


def floor(item: Question, side: Side) -> float:
    """The share of the answer's words that stand in the question: what knows nothing at all."""
    words = normalized_text(item.answers[side]).split()
    asked = set(normalized_text(item.question).split())
    return sum(word in asked for word in words) / len(words) if words else 0.0


def scores(
    evaluator: FEWL,
    chosen: Sequence[Question],
    read: Callable[[Evaluation], float | None] = lambda evaluation: evaluation.score,
) -> Scores:
    """What a configuration gives each answer."""
    labels = {"correct": ["non_hallu"], "incorrect": ["half_hallu", "hallu"]}
    found: Scores = {side: [] for side in SIDES}
    for item in chosen:
        metadata = {
            name: [item.answers[side] for side in SIDES if side in sides]
            for name, sides in labels.items()
        }
        for side in SIDES:
            sample = Sample(question=item.question, answer=item.answers[side], metadata=metadata)
            found[side].append(read(evaluator.invoke(sample)))
    return found


def unlike_others(evaluation: Evaluation) -> float | None:
    """The penalty alone, as a score: how little an answer is like those to other questions."""
    penalties: Any = evaluation.details["penalties"]
    return None if penalties is None else -float(np.mean(penalties))


def line(name: str, found: Scores) -> str:
    """A row of the table: how often the right answer scores higher, with 95 % intervals."""
    lacking = sum(score is None for score in found["non_hallu"])
    cells = [f"{name} ({lacking} undetermined)" if lacking else name]
    for side in SIDES[1:]:
        over = preference(found["non_hallu"], found[side])
        if over.rate is None or over.interval is None:
            cells.append("- | -")
        else:
            low, high = (100 * bound for bound in over.interval)
            cells.append(f"{100 * over.rate:.1f} [{low:.1f}, {high:.1f}] | {over.ties}")
    return f"| {' | '.join(cells)} |"


HEAD = "| configuration | NH > HH, % | ties | NH > H, % | ties |\n|---|---|---|---|---|"


def _usable(asked: Sequence[KnownQuestion]) -> str:
    """How good the recorded replies are, in a line."""
    pairs = [one.pairs for one in asked if one.pairs is not None]
    usable = sum(len(pair.usable) for pair in pairs) / len(asked)
    answers = sum(len(one.answers) for one in asked) / len(asked)
    distinct = sum(len({normalized_text(text) for text in one.answers}) for one in asked) / len(
        asked
    )
    thin = sum(len(pair.usable) < 3 for pair in pairs)
    same = sum(pair.same for pair in pairs)
    repeated = sum(pair.repeated for pair in pairs)
    return (
        f"{len(asked)} questions; {answers:.1f} answers each, {distinct:.1f} of them distinct; "
        f"{usable:.1f} usable pairs each ({same} with equal sides and {repeated} repeated were "
        f"dropped), fewer than 3 for {thin} questions"
    )


def weighing(
    asked: Sequence[KnownQuestion], chosen: Sequence[Question], similarity: Similarity
) -> str:
    """In a line: does expertise by the pairs rank reference answers as labelled answers do?"""
    taus = []
    for one, item in zip(asked, chosen, strict=True):
        if one.pairs is not None and one.pairs.usable:
            wrong, corrected = zip(*one.pairs.usable, strict=True)
            labelled = [item.answers["non_hallu"]], [item.answers[side] for side in SIDES[1:]]
            tau = kendall_tau(
                _expertise(one.answers, corrected, wrong, similarity),
                _expertise(one.answers, *labelled, similarity),
            )
            taus += [tau] if tau is not None else []
    if len(taus) < 2:
        return "too few questions to tell whether the pairs rank reference answers as labels do"
    half = 1.96 * np.std(taus, ddof=1) / len(taus) ** 0.5
    return (
        f"expertise by pairs and by labels: mean Kendall tau over the answers to a question "
        f"{np.mean(taus):.2f} +- {half:.2f} (95 %, {len(taus)} questions)"
    )


def _expertise(
    answers: Sequence[str], corrected: Sequence[str], wrong: Sequence[str], similarity: Similarity
) -> Floats:
    pairs = list(product(answers, [*corrected, *wrong]))
    table = np.reshape(similarity.scores(pairs), (len(answers), -1))
    return formula.expertise(table[:, : len(corrected)], table[:, len(corrected) :])


def _without_alike(asked: KnownQuestion, similarity: Similarity, most: float) -> KnownQuestion:
    """Without the pairs whose sides are as alike as `most`, or more."""
    if asked.pairs is None or most >= 1:
        return asked
    pairs = asked.pairs.usable
    kept = [
        pair for pair, score in zip(pairs, similarity.scores(pairs), strict=True) if score < most
    ]
    return replace(asked, pairs=replace(asked.pairs, usable=tuple(kept)))


def tables(
    scoring: Scoring, chosen: Sequence[Question], lines: Lines, configurations: Sequence[str]
) -> Iterator[str]:
    """What the recording says, line by line.

    Args:
        scoring: How the answers are scored.
        chosen: Recorded questions.
        lines: The recording.
        configurations: Names in `CONFIGURATIONS`.
    """
    agreement = bool({*BY_AGREEMENT} & {*configurations})
    asked = [
        _without_alike(
            scoring.asked.known(one, lines, agreement), scoring.similarity, scoring.drop_alike
        )
        for one in chosen
    ]
    store = NeighborStore()
    store.add_many(asked)
    yield _usable(asked)
    chosen_options = [CONFIGURATIONS[name] for name in configurations]
    if any(options["weighting"] in ("expertise", "best") for options in chosen_options):
        yield weighing(asked, chosen, scoring.similarity)
    yield f"\n{HEAD}"
    words: Scores = {side: [floor(item, side) for item in chosen] for side in SIDES}
    yield line("floor: words of the question", words)
    if any(options["penalty"] for options in chosen_options):
        alone = scores(scoring.fewl("fewl-uniform", store), chosen, unlike_others)
        yield line("the penalty alone", alone)
    for name in configurations:
        yield line(name, scores(scoring.fewl(name, store), chosen))
