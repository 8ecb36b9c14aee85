"""FEWL on CHALE: how often the right answer scores above the half and the wholly wrong one.

    python -m demur_research.chale --data DIR --recording REC.jsonl --record 150
    python -m demur_research.chale --data DIR --recording REC.jsonl.gz
    python -m demur_research.chale --data DIR --orders

The first asks a model, the local one by default, for reference answers and for wrong and corrected
pairs, and appends its replies to the recording; started again it goes on where it stopped. The
second scores every configuration of the papers' tables from the recording, without a model, beside
the trivial floor. The third says what each order of premise and hypothesis misses. DIR holds
`chale/chale.jsonl`. Rows with markup, and those whose half wrong answer is the wrong one, are left
out.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult

from demur._resolve import resolve_model
from demur.errors import DemurError
from demur.evaluators import (
    CONFIGURATIONS,
    FEWL,
    FEWLPrompts,
    NeighborStore,
    normalized_text,
    preference,
)
from demur.evaluators.fewl import formula
from demur.evaluators.fewl.formula import Floats
from demur.evaluators.fewl.neighbors import KnownQuestion
from demur.evaluators.fewl.reference_models import ReferenceModels
from demur.evaluators.fewl.terms import Premise
from demur.runtime import Outcome, Reply, ask, drive
from demur.schema import Evaluation, Sample
from demur.similarity import Similarity, resolve_similarity
from demur_research import orders
from demur_research.agreement import Agreement
from demur_research.pairs import PROMPTS
from demur_research.ranking import kendall_tau

Side: TypeAlias = Literal["non_hallu", "half_hallu", "hallu"]
SIDES: tuple[Side, ...] = ("non_hallu", "half_hallu", "hallu")
Scores: TypeAlias = dict[Side, list[float | None]]

_MIN_PAIRS: int = FEWL.model_fields["min_pairs"].default


@dataclass(frozen=True)
class Item:
    """A question with its three answers."""

    key: str
    question: str
    short_answer: str
    """What an answer has to say, in a few words."""
    answers: Mapping[Side, str]


def items(folder: Path, seed: int = 0) -> list[Item]:
    """The rows that can be used, in an order that the seed decides."""
    found = []
    with (folder / "chale" / "chale.jsonl").open(encoding="utf-8") as file:
        for row in map(json.loads, file):
            if not (row["flags"]["markup_in_answers"] or row["flags"]["half_equals_hallu"]):
                answers: dict[Side, str] = {side: row[side] for side in SIDES}
                found.append(Item(row["id"], row["question"], row["short_answer"], answers))
    return sorted(found, key=lambda one: hashlib.sha256(f"{seed}:{one.question}".encode()).digest())


# --- Recording ----------------------------------------------------------------------------------


def record(
    item: Item, references: ReferenceModels, answers: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A model's replies about a question, and what they cost; answers that are given stay."""
    calls = {"pairs": references.pairs_call(item.question)}
    if answers is None:
        (calls["answers"],) = references.answer_calls(item.question)
    outcomes, _ = drive(ask(list(calls.values())), {}, None)
    replies = (_kept(outcome) for outcome in outcomes)
    told = {"id": item.key, "question_sha256": _sha256(item.question), "answers": answers}
    return {**told, **dict(zip(calls, replies, strict=True))}


def record_agreement(key: str, asked: KnownQuestion, references: ReferenceModels) -> dict[str, Any]:
    """With which pairs each reference answer agrees; nothing where there are too few of them."""
    replies: list[dict[str, Any]] = []
    if asked.pairs is not None and len(asked.pairs.usable) >= _MIN_PAIRS:
        calls = references.agreement_calls(asked.question, asked.answers, asked.pairs)
        outcomes, _ = drive(ask(calls), {}, None)
        replies = [_kept(outcome) for outcome in outcomes]
    return {"id": key, "question_sha256": _sha256(asked.question), "agreement": replies}


def _kept(outcome: Outcome) -> dict[str, Any]:
    if outcome.error is not None:
        raise DemurError(f"no reply to record: {outcome.error}")
    reply: Reply = outcome.value
    cost = outcome.usage.model_dump(include={"input_tokens", "output_tokens", "seconds"})
    return {"reply": reply.text, "truncated": reply.truncated, **cost}


def _again(kept: Mapping[str, Any]) -> Outcome:
    return Outcome(Reply(kept["reply"], kept["truncated"]))


def recorded(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a recording, plain or compressed."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def said(item: Item, row: Mapping[str, Any], references: ReferenceModels) -> KnownQuestion:
    """What the replies of a recording's row say."""
    if row["question_sha256"] != _sha256(item.question):
        raise DemurError(f"the recording of {item.key} is of another question than the data's")
    answers = references.answer(0, _again(row["answers"]))
    pairs = references.pairs(_again(row["pairs"]))
    if isinstance(answers, str) or isinstance(pairs, str):
        raise DemurError(f"the recording of {item.key} cannot be read: {answers}, {pairs}")
    kept = row.get("agreement")
    agreement = references.agreement(list(map(_again, kept)), pairs) if kept else None
    if isinstance(agreement, str):
        raise DemurError(f"the recording of {item.key} cannot be read: {agreement}")
    return KnownQuestion(item.question, answers, pairs, agreement)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# --- Scoring ------------------------------------------------------------------------------------


def floor(item: Item, side: Side) -> float:
    """The share of the answer's words that stand in the question: what knows nothing at all."""
    words = normalized_text(item.answers[side]).split()
    asked = set(normalized_text(item.question).split())
    return sum(word in asked for word in words) / len(words) if words else 0.0


def scores(
    evaluator: FEWL,
    chosen: Sequence[Item],
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Record what is missing, or print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with chale/")
    parser.add_argument("--recording", type=Path, help="JSON lines; .gz to read")
    parser.add_argument("--orders", action="store_true", help="needs no recording")
    parser.add_argument("--record", type=int, default=0, help="record so many questions")
    parser.add_argument("--model", default="local", help="whom to ask")
    parser.add_argument("--answers", type=Path, help="record the pairs only, beside these answers")
    parser.add_argument(
        "--agreement",
        type=Path,
        help="a recording of what the references agree with, for expertise by agreement; with "
        "--record it is made, of the questions in --recording",
    )
    parser.add_argument(
        "--pairs", choices=list(PROMPTS), default="denied", help="what is asked for"
    )
    parser.add_argument("--n-answers", type=int, default=5)
    parser.add_argument("--n-wrong", type=int, default=5)
    parser.add_argument("--k-neighbors", type=int, default=25)
    parser.add_argument(
        "--similarity",
        default="cosine",
        help="as FEWL takes it; or agreement: --model says whether two answers agree",
    )
    parser.add_argument("--drop-alike", type=float, default=1.0, help="drop pairs so alike")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--premise", choices=get_args(Premise), default="answer")
    names = list(CONFIGURATIONS)
    parser.add_argument("--config", nargs="+", default=names, choices=names, metavar="NAME")
    parser.add_argument("--limit", type=int, help="score so many questions")
    options = parser.parse_args(arguments)
    known = items(options.data)
    if options.orders:
        sides = [(item.answers["non_hallu"], item.answers["hallu"]) for item in known]
        sys.stdout.write(f"{orders.table(sides)}\n")
        return 0
    if options.recording is None:
        parser.error("--recording is missing: it is needed by all but --orders")
    if options.record:
        return _record(options, known[: options.record])
    by_agreement = [name for name in options.config if "expertise" in CONFIGURATIONS[name]]
    if options.agreement is None and options.config is parser.get_default("config"):
        options.config = [name for name in options.config if name not in by_agreement]
    elif options.agreement is None and by_agreement:
        parser.error(f"{by_agreement[0]} needs --agreement, a recording of its own")
    return _tables(options, {item.key: item for item in known})


def _record(options: argparse.Namespace, wanted: Sequence[Item]) -> int:
    model = resolve_model(options.model)
    prompts = replace(FEWLPrompts(), pairs=PROMPTS[options.pairs])
    references = ReferenceModels((model,), model, options.n_answers, options.n_wrong, prompts)
    if options.agreement:
        path: Path = options.agreement
        told = {row["id"]: row for row in recorded(options.recording)}
        wanted = [item for item in wanted if item.key in told]

        def made(item: Item) -> dict[str, Any]:
            return record_agreement(item.key, said(item, told[item.key], references), references)
    else:
        path = options.recording
        answers = (
            {row["id"]: row["answers"] for row in recorded(options.answers)}
            if options.answers
            else {}
        )

        def made(item: Item) -> dict[str, Any]:
            return record(item, references, answers.get(item.key))

    done = {row["id"] for row in recorded(path)} if path.exists() else set()
    lacking = [item for item in wanted if item.key not in done]
    with path.open("a", encoding="utf-8") as out:
        for at, item in enumerate(lacking, start=1):
            out.write(json.dumps(made(item)) + "\n")
            out.flush()
            sys.stderr.write(f"{len(wanted) - len(lacking) + at} of {len(wanted)} questions\n")
    return 0


def _usable(asked: Sequence[KnownQuestion]) -> str:
    """How good the recorded replies are, in a line."""
    pairs = [one.pairs for one in asked if one.pairs is not None]
    usable = sum(len(one.usable) for one in pairs) / len(asked)
    answers = sum(len(one.answers) for one in asked) / len(asked)
    distinct = sum(len({normalized_text(text) for text in one.answers}) for one in asked) / len(
        asked
    )
    thin = sum(len(one.usable) < 3 for one in pairs)
    same = sum(one.same for one in pairs)
    repeated = sum(one.repeated for one in pairs)
    return (
        f"{len(asked)} questions; {answers:.1f} answers each, {distinct:.1f} of them distinct; "
        f"{usable:.1f} usable pairs each ({same} with equal sides and {repeated} repeated were "
        f"dropped), fewer than 3 for {thin} questions"
    )


def weighing(asked: Sequence[KnownQuestion], chosen: Sequence[Item], similarity: Similarity) -> str:
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


class Recorded(BaseChatModel):
    """Stands for the model whose replies were recorded, and has no others."""

    @property
    def _llm_type(self) -> str:
        return "recorded"

    def _generate(self, messages: list[BaseMessage], *arguments: Any, **options: Any) -> ChatResult:
        raise DemurError("the recording holds no reply to this: record it with --record")


def _without_alike(asked: KnownQuestion, similarity: Similarity, most: float) -> KnownQuestion:
    """Without the pairs whose sides are as alike as `most`, or more."""
    if asked.pairs is None or most >= 1:
        return asked
    pairs = asked.pairs.usable
    kept = [
        pair for pair, score in zip(pairs, similarity.scores(pairs), strict=True) if score < most
    ]
    return replace(asked, pairs=replace(asked.pairs, usable=tuple(kept)))


def _tables(options: argparse.Namespace, known: Mapping[str, Item]) -> int:
    model = Recorded()
    references = ReferenceModels((model,), model, options.n_answers, options.n_wrong)
    rows = list(recorded(options.recording))
    if options.agreement:
        agreement = {row["id"]: row["agreement"] for row in recorded(options.agreement)}
        rows = [
            {**row, "agreement": agreement[row["id"]]} for row in rows if row["id"] in agreement
        ]
    rows = rows[: options.limit]
    chosen = [known[row["id"]] for row in rows]
    similarity = resolve_similarity(
        Agreement(resolve_model(options.model))
        if options.similarity == "agreement"
        else options.similarity
    )
    store = NeighborStore()
    asked = [
        _without_alike(said(item, row, references), similarity, options.drop_alike)
        for item, row in zip(chosen, rows, strict=True)
    ]
    store.add_many(asked)
    words: Scores = {side: [floor(item, side) for item in chosen] for side in SIDES}
    sys.stdout.write(f"{_usable(asked)}\n")
    if any(CONFIGURATIONS[name]["weighting"] in ("expertise", "best") for name in options.config):
        sys.stdout.write(f"{weighing(asked, chosen, similarity)}\n")
    sys.stdout.write(f"\n{HEAD}\n")
    sys.stdout.write(line("floor: words of the question", words) + "\n")

    def configured(name: str) -> FEWL:
        return FEWL(
            model,
            similarity=similarity,
            n_answers=options.n_answers,
            n_wrong=options.n_wrong,
            k_neighbors=options.k_neighbors,
            temperature=options.temperature,
            premise=options.premise,
            neighbors=store,
            **CONFIGURATIONS[name],
        )

    if any(CONFIGURATIONS[name]["penalty"] for name in options.config):
        alone = scores(configured("fewl-uniform"), chosen, unlike_others)
        sys.stdout.write(line("the penalty alone", alone) + "\n")
    for name in options.config:
        sys.stdout.write(line(name, scores(configured(name), chosen)) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
