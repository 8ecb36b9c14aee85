"""Compare answers that are made with FEWL's examples, with a baseline's, and without examples.

The experiment is that of FEWL, version 1, section 5.1 and appendix D.7 (version 2, D.13), on CHALE.
FEWL scores each of a question's three answers, and so does the baseline, which has one reference
answer and no penalty. The questions for which the two choose different answers are the pool. For
each test question, the five nearest questions of the pool become examples: once with the answers
that FEWL chose, and once with the baseline's. The test questions are those of the pool, each
without itself as an example, and then others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig

from demur import ExampleStore
from demur.evaluators import CONFIGURATIONS, normalized_text
from demur.exemplars import FEWLExampleSelector
from demur.runtime import Outcome
from demur.schema import Share
from demur_research.bench import Bench, Column, Done, Figure, Result, Row, Table, mean_cost
from demur_research.pairwise import PairwiseJudge, PairwiseVerdict, win_rates
from demur_research.resampling import share
from demur_research.tables.fewl.asking import answered
from demur_research.tables.fewl.chale import SIDES
from demur_research.tables.fewl.scoring import (
    OPTIONS,
    Question,
    Scorer,
    Setting,
    chosen,
)

BASELINE = "single"
"""The papers' baseline: one reference answer and no penalty (version 2, section 5)."""
BY_FEWL, BY_BASELINE, WITHOUT = "FEWL", "baseline", "none"
ARMS = (BY_FEWL, BY_BASELINE, WITHOUT)
"""What chose the answers of the examples; with "none", there are no examples."""
PAIRS = ((BY_FEWL, BY_BASELINE), (BY_FEWL, WITHOUT), (BY_BASELINE, WITHOUT))
_RIGHT, _WRONG = "the data's right answer", "its wrong one"
_K = 5


@dataclass(frozen=True)
class Chosen:
    """Hold a question with the place of the answer that each arm chose."""

    question: Question
    short_answer: str
    """What an answer has to say, in a few words; empty if the data does not tell."""
    choices: Mapping[str, int]
    """The place of the chosen answer among the question's answers, by arm."""
    scores: Mapping[str, tuple[float, ...]]
    """The scores of the question's answers, by arm."""


def disputed(questions: Sequence[Chosen]) -> list[Chosen]:
    """Return the questions for which the scorers choose different answers: the pool."""
    return [one for one in questions if one.choices[BY_FEWL] != one.choices[BY_BASELINE]]


def finds(short_answer: str, answer: str) -> bool:
    """Return whether an answer holds the words of the short answer in their order."""
    return f" {normalized_text(short_answer)} " in f" {normalized_text(answer)} "


def _scored(bench: Bench, configuration: str) -> tuple[list[Chosen], Scorer, int]:
    """Return the questions with both scorers' choices, and how many questions have none."""
    rows = chosen(bench, "chale")
    questions = [Question.of(row, SIDES) for row in rows]
    scorer = Scorer(bench, questions, Setting.of(bench))
    by_arm = {BY_FEWL: configuration, BY_BASELINE: BASELINE}
    scores = {arm: scorer.scored(name).scores for arm, name in by_arm.items()}
    found = []
    for at, (row, question) in enumerate(zip(rows, questions, strict=True)):
        own = {
            arm: tuple(score for score in column[at] if score is not None)
            for arm, column in scores.items()
        }
        if all(len(some) == len(SIDES) for some in own.values()):
            choices = {arm: some.index(max(some)) for arm, some in own.items()}
            short = row.metadata.get("short_answer")
            found.append(Chosen(question, short if isinstance(short, str) else "", choices, own))
    return found, scorer, len(rows) - len(found)


def _selector(bench: Bench, pool: Sequence[Chosen], arm: str) -> FEWLExampleSelector:
    store = ExampleStore(embedding=bench.embedding)
    store.add_many((one.question.text, [*one.question.answers], one.scores[arm]) for one in pool)
    return FEWLExampleSelector(store, k=_K, on_empty="none")


def _make(bench: Bench) -> Result:
    configuration = bench.one_of("config", CONFIGURATIONS, "fewl")
    questions, scorer, lacking = _scored(bench, configuration)
    pool = disputed(questions)
    tests = [*pool, *(one for one in questions if one not in pool)]
    if "tests" in bench.options:
        tests = tests[: bench.number("tests", 1)]
    answers = {}
    for arm in ARMS:
        selector = None if arm == WITHOUT else _selector(bench, pool, arm)
        answer = partial(_answer, bench.model, selector)
        answers[arm] = bench.each(f"answering: {arm}", tests, answer)
    judge = PairwiseJudge(bench.model_of(bench.options.get("judge", bench.model_name)))
    shown = {arm: [_said(one.value) for one in done] for arm, done in answers.items()}
    shown[_RIGHT] = [one.question.answers[0] for one in tests]
    shown[_WRONG] = [one.question.answers[-1] for one in tests]
    rows = []
    errors = [one.value.error for done in answers.values() for one in done]
    for first, second in (*PAIRS, (_RIGHT, _WRONG)):
        pairs = [
            {"question": one.question.text, "first": a, "second": b}
            for one, a, b in zip(tests, shown[first], shown[second], strict=True)
        ]
        verdicts = bench.each(f"comparing {first} and {second}", pairs, judge.invoke)
        paper = _PAPER if (first, second) == PAIRS[0] else ("", "", "")
        rows.append(_compared(f"{first} : {second}", verdicts, paper))
        errors += [one.value.error for one in verdicts]
    for first, second in (*PAIRS, (_RIGHT, _WRONG)):
        rows.append(_longer(f"{first} : {second}, the longer wins", shown[first], shown[second]))
    rows += [_finding(arm, tests, answers[arm], shown[arm]) for arm in ARMS]
    right = (f"by {arm} {sum(one.choices[arm] == 0 for one in pool)} times" for arm in ARMS[:2])
    reasons = [error for error in errors if error is not None]
    notes = (
        f"{len(questions)} questions scored, by {configuration} and by {BASELINE}; {lacking} have "
        f"no score. {len(pool)} are disputed, and are the pool (the papers': 121); there the right "
        f"answer is chosen {' and '.join(right)}. {len(tests)} test questions.",
        "The papers' row has both methods over vanilla answers; here they stand against each "
        "other, and each against no examples. The judge is asked in both orders: what it is unsure "
        "of, or decides by the order, is a tie.",
        *(
            f"{len(reasons)} answers and verdicts are undetermined, the first since {reason}"
            for reason in reasons[:1]
        ),
        *scorer.notes(),
    )
    columns = (
        Column("first wins, %"),
        Column("second wins, %"),
        Column("ties, %"),
        Column("first wins of decided, %"),
        Column("judge chose what was shown first, %"),
        Column("answers that hold the short answer, %"),
    )
    return Result(columns, tuple(rows), notes)


def _answer(
    model: BaseChatModel,
    selector: FEWLExampleSelector | None,
    one: Chosen,
    config: RunnableConfig,
) -> Outcome[str]:
    return answered(model, one.question.text, config, selector)


def _said(outcome: Outcome[str]) -> str:
    """Return an answer, or an empty text, which the judge leaves undetermined."""
    return "" if outcome.error is not None else outcome.value


def _compared(
    name: str, verdicts: Sequence[Done[PairwiseVerdict]], paper: tuple[str, str, str]
) -> Row:
    rates = win_rates([one.value for one in verdicts])
    wins, ties, losses = rates.with_ties
    figures = (
        Figure.of_share(wins, paper[0]),
        Figure.of_share(losses, paper[1]),
        Figure.of_share(ties, paper[2]),
        Figure.of_share(rates.decided),
        Figure.of_share(rates.position_bias),
        None,
    )
    items = wins.total
    return Row(name, figures, items, rates.undetermined, mean_cost(verdicts))


def _longer(name: str, first: Sequence[str], second: Sequence[str]) -> Row:
    """Return the row of a trivial rule: the longer answer wins."""
    pairs = [(len(a), len(b)) for a, b in zip(first, second, strict=True) if a and b]
    wins, losses = sum(a > b for a, b in pairs), sum(a < b for a, b in pairs)
    figures = (
        Figure.of_share(Share(wins, len(pairs))),
        Figure.of_share(Share(losses, len(pairs))),
        Figure.of_share(Share(len(pairs) - wins - losses, len(pairs))),
        Figure.of_share(Share(wins, wins + losses)),
        None,
        None,
    )
    return Row(name, figures, len(pairs), len(first) - len(pairs), floor=True)


def _finding(
    arm: str, tests: Sequence[Chosen], done: Sequence[Done[Outcome[str]]], said: Sequence[str]
) -> Row:
    known = [(one.short_answer, text) for one, text in zip(tests, said, strict=True) if text]
    told = [finds(short, text) for short, text in known if short]
    what = "no examples" if arm == WITHOUT else f"examples by {arm}"
    return Row(
        f"answers with {what}",
        (None, None, None, None, None, share(told)),
        len(told),
        len(said) - len(known),
        mean_cost(done),
    )


_PAPER = ("GPT-4 56.20", "GPT-4 19.01", "GPT-4 24.79")
"""The paper's shares: wins of FEWL, wins of the baseline, and ties."""

EXEMPLARS = tuple(
    Table(
        f"fewl-v{version}-table-{number}",
        f"FEWL, version {version}, Table {number}",
        "Whether few-shot examples that FEWL chose bring better answers.",
        ("chale",),
        _make,
        options={
            **OPTIONS,
            "config": "the configuration of FEWL that chooses answers [default: fewl]",
            "judge": "the model that compares answers, named as for --model [default: --model]",
            "tests": "the number of test questions [default: all that were scored]",
        },
    )
    for version, number in ((1, 6), (2, 5))
)
