"""FEWL's few-shot exemplars on CHALE: do they bring better answers than a baseline's, or than none?

FEWL, version 1, section 5.1 and appendix D.7 (version 2, D.13). By recorded replies each of a
question's three answers is scored by FEWL and by the baseline, one reference answer without a
penalty; the questions for which the two choose another answer are the pool. For each test question
the five nearest of the pool become examples, once with the answers that FEWL chose and once with
the baseline's. Test questions are those of the pool, each without itself, and then others.

A model answers, and judges the answers two by two. The paper's table says "over vanilla answers"
and has both methods in one row: it is told here against each other, and each against no examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from langchain_core.language_models import BaseChatModel
from langchain_core.output_parsers import StrOutputParser

from demur import DemurError, ExampleStore, NeighborStore
from demur._share import Share
from demur.evaluators import normalized_text
from demur.exemplars import (
    FEWLExampleSelector,
    PairwiseJudge,
    PairwiseVerdict,
    WinRates,
    few_shot_prompt,
    win_rates,
)
from demur.runtime import bounded
from demur.similarity import resolve_similarity
from demur_research.chale import Scoring, scores
from demur_research.recorder import Item, Lines
from demur_research.references import SIDES, Asked, Question, Side
from demur_research.runner import Finding

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

    item: Question
    scores: Mapping[str, tuple[float, ...]]
    """By "fewl" and "baseline", in the order of `SIDES`."""

    def choice(self, scorer: str) -> Side:
        """The answer with the highest score; of equal ones the first."""
        found = self.scores[scorer]
        return SIDES[found.index(max(found))]


def scored(known: Sequence[Question], lines: Lines, configuration: str) -> list[Scored]:
    """Each recorded question, its answers scored by a configuration of FEWL and by the baseline."""
    scoring = Scoring(Asked(), resolve_similarity("cosine"))
    chosen = scoring.asked.recorded(known, lines)
    store = NeighborStore()
    store.add_many([scoring.asked.known(one, lines) for one in chosen])
    columns = {
        name: scores(scoring.fewl(option, store), chosen)
        for name, option in (("fewl", configuration), ("baseline", BASELINE))
    }
    found = []
    for at, item in enumerate(chosen):
        row = {name: [column[side][at] for side in SIDES] for name, column in columns.items()}
        told = {name: tuple(s for s in scores if s is not None) for name, scores in row.items()}
        if any(len(scores) < len(SIDES) for scores in told.values()):
            raise DemurError(f"an answer to {item.key} has no score: {row}")
        found.append(Scored(item, told))
    return found


def disputed(questions: Sequence[Scored]) -> list[Scored]:
    """Those for which the two scorers choose another answer: the pool."""
    return [
        question for question in questions if question.choice("fewl") != question.choice("baseline")
    ]


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


def tested(questions: Sequence[Scored], most: int) -> list[Item[Scored]]:
    """So many test questions: the pool, and then others."""
    pool = disputed(questions)
    tests = [*pool, *(question for question in questions if question not in pool)][:most]
    return [_as_item(test) for test in tests]


def _as_item(one: Scored) -> Item[Scored]:
    return Item(one.item.key, "\0".join([one.item.question, *one.item.answers.values()]), one)


def answering(
    pool: Sequence[Scored], configuration: str, model: BaseChatModel
) -> dict[str, Callable[[Scored], Finding]]:
    """What answers a test question: once for each arm."""

    def arm(selector: FEWLExampleSelector | None) -> Callable[[Scored], Finding]:
        chain = few_shot_prompt(selector) | model.bind(**bounded(model, _ANSWER_TOKENS))
        asked = chain | StrOutputParser()
        return lambda one: Finding(
            {"answer": asked.invoke({"question": one.item.question}).strip()}
        )

    return {_name(name, configuration): arm(one) for name, one in selectors(pool).items()}


def judging(
    configuration: str, model: BaseChatModel, lines: Lines
) -> dict[str, Callable[[Scored], Finding]]:
    """What compares the answers to a test question two by two, and the data's own."""
    judge = PairwiseJudge(model)

    def compare(sides: tuple[str, str]) -> Callable[[Scored], Finding]:
        def judged(one: Scored) -> Finding:
            first, second = (_shown(side, one, configuration, lines) for side in sides)
            pair = {"question": one.item.question, "first": first, "second": second}
            verdict = judge.invoke(pair)
            told = verdict.model_dump(mode="json", exclude={"usage"})
            return Finding({"verdict": told}, verdict.error)

        return judged

    return {_name(pair, configuration): compare(sides) for pair, sides in PAIRS.items()}


def _shown(side: str, one: Scored, configuration: str, lines: Lines) -> str:
    labelled: dict[str, Side] = {"right": "non_hallu", "wrong": "hallu"}
    if side in labelled:
        return one.item.answers[labelled[side]]
    return str(lines[one.item.key, _name(side, configuration)].result["answer"])


def _name(what: str, configuration: str) -> str:
    """Under which name an arm or a pair is recorded: some are the same for any configuration."""
    return what if what in ("none", _LABELLED) else f"{configuration}, {what}"


def finds(item: Question, answer: str) -> bool:
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


def tables(lines: Lines, questions: Sequence[Scored], configuration: str) -> Iterator[str]:
    """What the recording says, line by line.

    Raises:
        DemurError: Nothing of this configuration is recorded.
    """
    names = [_name(one, configuration) for one in [*ARMS, *PAIRS]]
    rows = [
        question
        for question in questions
        if all((question.item.key, name) in lines for name in names)
    ]
    if not rows:
        raise DemurError(f"the recording holds nothing of --config {configuration}: record it")
    pool = disputed(questions)
    right = (
        f"by {arm} {sum(one.choice(arm) == 'non_hallu' for one in pool)} times" for arm in ARMS[:2]
    )
    yield f"{len(questions)} questions scored, {len(pool)} disputed"
    yield f"there the right answer is chosen {', '.join(right)}"
    yield f"{len(rows)} test questions\n"
    yield HEAD
    for name in PAIRS:
        said = [lines[row.item.key, _name(name, configuration)].result["verdict"] for row in rows]
        yield line(name, win_rates([PairwiseVerdict.model_validate(one) for one in said]))
    yield "\n| answers | with the short answer in them, % |\n|---|---|"
    for arm in ARMS:
        hits = sum(finds(row.item, _shown(arm, row, configuration, lines)) for row in rows)
        yield f"| {arm} | {percent(Share(hits, len(rows)))} |"
