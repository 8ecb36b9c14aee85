"""FEWL's few-shot exemplars on CHALE: do they bring better answers than a baseline's, or than none?

    python -m demur_research.exemplars --data DIR --references REC.jsonl --recording OUT.jsonl \
        --record 60
    python -m demur_research.exemplars --data DIR --references REC.jsonl --recording OUT.jsonl

FEWL, version 1, section 5.1 and appendix D.7 (version 2, D.13). REC holds the replies that
`demur_research.chale` recorded. By them each of a question's three answers is scored by FEWL and
by the baseline, one reference answer without a penalty; the questions for which the two choose
another answer are the pool. For each test question the five nearest of the pool become examples,
once with the answers that FEWL chose and once with the baseline's. Test questions are those of the
pool, each without itself, and then others.

The first command has a model answer, and judge the answers two by two, and appends what comes to
OUT; started again it goes on where it stopped. The second prints the tables from OUT without a
model. The paper's table says "over vanilla answers" and has both methods in one row: it is told
here against each other, and each against no examples.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.output_parsers import StrOutputParser

from demur._resolve import resolve_model
from demur._share import Share
from demur.errors import DemurError
from demur.evaluators import CONFIGURATIONS, FEWL, NeighborStore, normalized_text
from demur.evaluators.fewl.reference_models import ReferenceModels
from demur.exemplars import (
    ExampleStore,
    FEWLExampleSelector,
    PairwiseJudge,
    PairwiseVerdict,
    WinRates,
    few_shot_prompt,
    win_rates,
)
from demur.runtime import bounded
from demur_research import chale
from demur_research.chale import SIDES, Item, Side

BASELINE = "single"
"""One reference answer, no penalty: the papers' baseline (v2, section 5)."""
ARMS = ("fewl", "baseline", "none")
_LABELLED = "right : wrong"
PAIRS = {
    "fewl : baseline": ("fewl", "baseline"),
    "fewl : none": ("fewl", "none"),
    "baseline : none": ("baseline", "none"),
    _LABELLED: ("right", "wrong"),
}
"""Who is compared; the last are the data's own answers, to tell what the judge is worth."""

_K = 5
_ANSWER_TOKENS = 128


@dataclass(frozen=True)
class Scored:
    """A question with what each of its answers scores, by both scorers."""

    item: Item
    scores: Mapping[str, tuple[float, ...]]
    """By "fewl" and "baseline", in the order of `SIDES`."""

    def choice(self, scorer: str) -> Side:
        """The answer with the highest score; of equal ones the first."""
        found = self.scores[scorer]
        return SIDES[found.index(max(found))]


def scored(
    known: Mapping[str, Item], replies: Sequence[Mapping[str, Any]], configuration: str
) -> list[Scored]:
    """Each recorded question, its answers scored by a configuration of FEWL and by the baseline."""
    model = chale.Recorded()
    references = ReferenceModels((model,), model, 5, 5)
    items = [known[row["id"]] for row in replies]
    store = NeighborStore()
    store.add_many(
        [chale.said(item, row, references) for item, row in zip(items, replies, strict=True)]
    )
    columns = {
        name: chale.scores(FEWL(model, n_wrong=5, neighbors=store, **CONFIGURATIONS[chosen]), items)
        for name, chosen in (("fewl", configuration), ("baseline", BASELINE))
    }
    found = []
    for at, item in enumerate(items):
        row = {name: [column[side][at] for side in SIDES] for name, column in columns.items()}
        told = {name: tuple(s for s in scores if s is not None) for name, scores in row.items()}
        if any(len(scores) < len(SIDES) for scores in told.values()):
            raise DemurError(f"an answer to {item.key} has no score: {row}")
        found.append(Scored(item, told))
    return found


def disputed(questions: Sequence[Scored]) -> list[Scored]:
    """Those for which the two scorers choose another answer: the pool."""
    return [one for one in questions if one.choice("fewl") != one.choice("baseline")]


def selectors(pool: Sequence[Scored]) -> dict[str, FEWLExampleSelector | None]:
    """By arm, what selects its examples from the pool."""
    found: dict[str, FEWLExampleSelector | None] = dict.fromkeys(ARMS)
    for arm in ARMS[:2]:
        store = ExampleStore()
        store.add_many(
            (one.item.question, [one.item.answers[side] for side in SIDES], one.scores[arm])
            for one in pool
        )
        found[arm] = FEWLExampleSelector(store, k=_K)
    return found


def answered(
    one: Scored,
    choose: Mapping[str, FEWLExampleSelector | None],
    model: BaseChatModel,
    known: Mapping[str, str],
) -> dict[str, str]:
    """A test question's answers by arm.

    Args:
        one: The question.
        choose: By arm, what selects its examples.
        model: Who answers.
        known: Answers that need not be asked for: those without examples are the same for any pool.
    """
    answers = dict(known)
    for arm in ARMS:
        if arm not in answers:
            bound = model.bind(**bounded(model, _ANSWER_TOKENS))
            chain = few_shot_prompt(choose[arm]) | bound | StrOutputParser()
            answers[arm] = chain.invoke({"question": one.item.question}).strip()
    return answers


def compared(
    one: Scored,
    answers: Mapping[str, str],
    model: BaseChatModel,
    known: Mapping[str, Mapping[str, Any]],
) -> dict[str, Mapping[str, Any]]:
    """The verdicts on a test question's answers, and on the data's own; `known` ones stay."""
    labelled = {"right": one.item.answers["non_hallu"], "wrong": one.item.answers["hallu"]}
    shown = {**answers, **labelled}
    judge = PairwiseJudge(model)
    verdicts = dict(known)
    for name, (first, second) in PAIRS.items():
        if name not in verdicts:
            pair = {"question": one.item.question, "first": shown[first], "second": shown[second]}
            verdicts[name] = judge.invoke(pair).model_dump(mode="json", exclude={"usage"})
    return verdicts


def finds(item: Item, answer: str) -> bool:
    """Whether an answer holds the short answer's words in their order."""
    return f" {normalized_text(item.short_answer)} " in f" {normalized_text(answer)} "


# --- Tables -------------------------------------------------------------------------------------

HEAD = (
    "| first : second | wins | losses | wins of these, % | inconsistent | unsure | same | "
    "undetermined | wins of all, % | ties | losses | chose what was shown first, % |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|"
)


def line(name: str, rates: WinRates) -> str:
    """A row of the table, with 95 % intervals."""
    cells = (
        *(name, rates.wins, rates.losses, percent(rates.decided)),
        *(rates.inconsistent, rates.unsure, rates.same, rates.undetermined),
        *map(percent, rates.with_ties),
        percent(rates.position_bias),
    )
    return f"| {' | '.join(map(str, cells))} |"


def percent(share: Share) -> str:
    """A share in percent, with its interval."""
    if share.value is None or share.interval is None:
        return "-"
    low, high = share.interval
    return f"{100 * share.value:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def tables(rows: Sequence[Mapping[str, Any]], questions: Mapping[str, Scored]) -> Iterator[str]:
    """What the recording says, line by line."""
    pool = disputed(list(questions.values()))
    right = (
        f"by {arm} {sum(one.choice(arm) == 'non_hallu' for one in pool)} times" for arm in ARMS[:2]
    )
    yield f"{len(questions)} questions scored, {len(pool)} disputed"
    yield f"there the right answer is chosen {', '.join(right)}"
    yield f"{len(rows)} test questions\n"
    yield HEAD
    for name in PAIRS:
        verdicts = [PairwiseVerdict.model_validate(row["verdicts"][name]) for row in rows]
        yield line(name, win_rates(verdicts))
    yield "\n| answers | with the short answer in them, % |\n|---|---|"
    for arm in ARMS:
        hits = sum(finds(questions[row["id"]].item, row["answers"][arm]) for row in rows)
        yield f"| {arm} | {percent(Share(hits, len(rows)))} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Record what is missing, or print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with chale/")
    parser.add_argument(
        "--references", type=Path, required=True, help="a recording of demur_research.chale"
    )
    parser.add_argument("--recording", type=Path, required=True, help="answers and verdicts")
    parser.add_argument("--record", type=int, default=0, help="record so many test questions")
    parser.add_argument("--model", default="local", help="who answers, and judges")
    parser.add_argument(
        "--beside",
        type=Path,
        help="a recording with another --config, for what is the same in both",
    )
    parser.add_argument("--config", default="fewl-mean-one", choices=list(CONFIGURATIONS))
    options = parser.parse_args(arguments)
    known = {item.key: item for item in chale.items(options.data)}
    replies = list(chale.recorded(options.references))
    questions = scored(known, replies, options.config)
    if options.record:
        return _record(options, questions)
    rows = _of_one_config(options.recording, options.config)
    complete = [row for row in rows.values() if "verdicts" in row]
    for told in tables(complete, {one.item.key: one for one in questions}):
        sys.stdout.write(f"{told}\n")
    return 0


def recorded(path: Path) -> dict[str, dict[str, Any]]:
    """What a recording has of each question: its configuration, answers, verdicts."""
    rows: dict[str, dict[str, Any]] = {}
    for line in chale.recorded(path):
        rows.setdefault(line["id"], {}).update(line)
    return rows


def _record(options: argparse.Namespace, questions: Sequence[Scored]) -> int:
    path: Path = options.recording
    pool = disputed(questions)
    tests = [*pool, *(one for one in questions if one not in pool)][: options.record]
    choose = selectors(pool)
    model = resolve_model(options.model)
    rows = _of_one_config(path, options.config) if path.exists() else {}
    beside = recorded(options.beside) if options.beside else {}

    def answers(one: Scored) -> Any:
        told = beside.get(one.item.key, {}).get("answers", {})
        return answered(one, choose, model, {"none": told["none"]} if told else {})

    def verdicts(one: Scored) -> Any:
        told = beside.get(one.item.key, {}).get("verdicts", {})
        known = {_LABELLED: told[_LABELLED]} if told else {}
        return compared(one, rows[one.item.key]["answers"], model, known)

    with path.open("a", encoding="utf-8") as out:
        for what, make in (("answers", answers), ("verdicts", verdicts)):
            for at, one in enumerate(tests, start=1):
                row = rows.setdefault(one.item.key, {})
                if what not in row:
                    row[what] = make(one)
                    told = {"id": one.item.key, "config": options.config, what: row[what]}
                    out.write(json.dumps(told) + "\n")
                    out.flush()
                    sys.stderr.write(f"{what} of {at} of {len(tests)} questions\n")
    return 0


def _of_one_config(path: Path, config: str) -> dict[str, dict[str, Any]]:
    rows = recorded(path)
    if others := {row["config"] for row in rows.values()} - {config}:
        raise DemurError(f"{path} is of --config {', '.join(sorted(others))}, not {config}")
    return rows


if __name__ == "__main__":
    sys.exit(main())
