"""Test FEWL on CHALE with recorded replies: rows, costs, floors and refusals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pytest
from langchain_core.messages import BaseMessage

from benches import benched, made, row_of, values
from colours import chale, halueval, knowing, reply, truthfulqa
from demur import Evaluation
from demur.similarity import resolve_similarity
from demur_research.bench import Figure
from demur_research.tables import TABLES
from demur_research.tables.fewl import scoring
from demur_research.tables.fewl.chale import CHALE
from demur_research.tables.fewl.halueval import HALUEVAL
from demur_research.tables.fewl.measures import overlap, unlike_others
from demur_research.tables.fewl.scoring import chosen
from demur_research.tables.fewl.truthfulqa import TRUTHFULQA
from support.fakes import ScriptedModel, isolated
from support.shared import shared

pytest.importorskip("chromadb")
pytestmark = pytest.mark.usefixtures("apart")

SETS = {"chale": chale()}
ROUGE = {"similarity": "rouge", "wrong": "3"}
NAMES = [one.name for one in CHALE if "wrong" in one.options and one.name != "fewl-chale-all"]


def test_a_model_that_knows_scores_the_right_answer_highest(path: Path) -> None:
    result = made("fewl-v1-table-1", path, knowing(), SETS, options=ROUGE)
    assert [row.name for row in result.rows] == [
        "single + no penalty (single)",
        "single + penalty (single-penalty)",
        "multi + no penalty (multi)",
        "FEWL (Ours) (fewl)",
        "the penalty alone",
        "multi-weighted",
        "fewl-mean-one, demur's default",
        "multi-weighted-mean-one",
        "words of the question",
        "the longest answer",
        "the shortest answer",
    ]
    single = row_of(result, "single + no penalty (single)")
    paper = "GPT-3.5 65.24±0.14, GPT-4 66.56±0.19"
    assert single.figures[:2] == (Figure(100, 100, 100, paper), Figure(0))
    assert [row.floor for row in result.rows] == [False] * 8 + [True] * 3
    assert {row.items for row in result.rows} == {4}
    # No answer has a word of its question, so all answers tie.
    assert values(result, "words of the question") == [0, 4, 0, 4]


def test_each_row_counts_what_it_would_have_cost_alone(path: Path) -> None:
    model = knowing()
    options = {
        **ROUGE,
        "agreement": "yes",
        "configs": "single,multi,fewl,fewl-ideal,fewl-agreement",
    }
    result = made("fewl-chale-all", path, model, SETS, options=options)
    calls = {row.name: row.spent and row.spent.calls for row in result.rows}
    assert calls == {
        "single": 1,
        "multi": 1,
        "fewl": 2,
        "the penalty alone": 2,
        "fewl-ideal": 1,
        "fewl-agreement": 4,
        "words of the question": None,
        "the longest answer": None,
        "the shortest answer": None,
    }
    assert len(model.requests) == 4 * 4


def test_a_replay_finds_the_same_without_a_model(path: Path) -> None:
    first = made("fewl-v1-table-1", path, knowing(), SETS, options=ROUGE)
    assert made("fewl-v1-table-1", path, None, SETS, options=ROUGE, at_once=3) == first
    assert not any(row.undetermined for row in first.rows)
    assert sum(row.floor for row in first.rows) == 3


def test_questions_without_a_score_are_counted_and_told(path: Path) -> None:
    def silent(stage: str, messages: Sequence[BaseMessage]) -> str:
        if isolated("question", messages).endswith("2"):
            raise ValueError("out of order")
        return reply(stage, messages)

    result = made("fewl-v1-table-1", path, ScriptedModel(script=silent), SETS, options=ROUGE)
    single = row_of(result, "single + no penalty (single)")
    assert (single.items, single.undetermined) == (3, 1)
    assert single.figures[0] is not None
    assert single.figures[0].value == 100
    assert "out of order" in " ".join(result.notes)
    assert row_of(result, "the longest answer").undetermined == 0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"wrong": "0"}, "wrong: expected a whole number of at least 1, got '0'"),
        ({"similarity": "other"}, "unknown similarity 'other'"),
        ({"temperature": "hot"}, "temperature: expected a number above 0, got 'hot'"),
        ({"configs": "best"}, "configs: expected one of single, .*, got 'best'"),
        ({"configs": "fewl-agreement"}, "fewl-agreement needs --option agreement=yes"),
    ],
)
def test_a_wrong_option_is_refused_before_anybody_is_asked(
    path: Path, options: dict[str, str], told: str
) -> None:
    model = knowing()
    with pytest.raises(ValueError, match=told):
        made("fewl-chale-all", path, model, SETS, options=options)
    assert model.requests == []


def test_the_seed_and_the_limit_choose_the_questions(path: Path) -> None:
    def keys(**of_bench: int) -> list[str]:
        with benched(path, knowing(), {"chale": chale(12)}, **of_bench) as bench:
            return [row.key for row in chosen(bench, "chale", most=9)]

    assert keys() == keys()
    assert keys() != keys(seed=3)
    assert len({*keys()}) == 9
    assert keys(limit=4) == keys()[:4]


def test_the_lengths_of_answers_by_hand(path: Path) -> None:
    result = made("fewl-v1-table-8", path, knowing(), {"chale": chale(1)})
    found = {row.name: [one and one.value for one in row.figures] for row in result.rows}
    assert found["Short"] == [1, 1, 3]
    # The text is "It is painted red , a fine red .".
    assert found["Long"] == [9, 8, 32]
    assert found["Non-Hallu"] == [6, 5, 21]
    paper = [one and one.paper for one in row_of(result, "Long").figures]
    assert paper == ["259.64", "95.89", "1111.28"]


def test_the_penalty_alone_prefers_what_is_unlike_other_answers() -> None:
    lazy, fresh, first = (
        Evaluation(name="fewl", details={"penalties": penalties})
        for penalties in ([0.5, 0.75], [0.25, 0.5], None)
    )
    assert unlike_others(lazy) == -0.625
    assert unlike_others(fresh) == -0.375
    assert unlike_others(first) is None
    assert unlike_others(Evaluation(name="fewl", error="none")) is None


def test_overlap_is_the_share_of_words_that_the_question_has() -> None:
    assert overlap("Who wrote it?", "Ann wrote it.") == pytest.approx(2 / 3)
    assert overlap("Who wrote it?", "Nobody.") == 0
    assert overlap("Who wrote it?", "...") == 0


def test_expertise_by_pairs_is_held_against_that_by_labels(path: Path) -> None:
    """Compare expertise by pairs with expertise by labels; the first answer is mostly nearer."""

    def ranked(stage: str, messages: Sequence[BaseMessage]) -> str:
        at = int(isolated("question", messages).rsplit(" ", 1)[1])
        sides = ["far", "near"] if at == 3 else ["near", "far"]
        if stage == "pairs":
            return "\n".join(
                f"{n}. Wrong Answer: w{n} {sides[1]}.\n{n}. Non-Wrong Answer: c{n} {sides[0]}."
                for n in range(1, 4)
            )
        right = reply(stage, messages).splitlines()[0].removeprefix("1. ")
        return f"1. near {right}\n2. far away from it"

    options = {**ROUGE, "configs": "fewl"}
    result = made("fewl-chale-all", path, ScriptedModel(script=ranked), SETS, options=options)
    # Three questions agree and one does not, so this is the mean of 1, 1, 1 and -1.
    assert "Kendall tau over the answers to a question 0.50 +- 0.98" in result.notes[0]
    with benched(path, None, SETS, limit=1, options=options) as bench:
        assert "Too few questions" in TABLES["fewl-chale-all"].make(bench).notes[0]


# --- Figures in the papers ------------------------------------------------------------------------


def printed(cells: Sequence[str]) -> list[list[list[str]]]:
    """Return by measure and model the numbers that a row gives for the paper."""
    return [
        [re.findall(r"\d+(?:\.\d+)?", cell.rpartition(" ")[2]) for cell in text.split(", ")]
        for text in cells
    ]


def _numbers(paper: Path) -> list[list[str]]:
    """Return the numbers of each line of a paper; one number has a comma in place of the point."""
    text = re.sub(r"(?<=\d),(?=\d\d\b)", ".", paper.read_text(encoding="utf-8"))
    return [re.findall(r"\d+(?:\.\d+)?", line) for line in text.splitlines()]


def stands(numbers: Sequence[str], lines: Sequence[Sequence[str]]) -> bool:
    """Return whether some line has these numbers side by side."""
    size = len(numbers)
    return any(
        [*line[at : at + size]] == [*numbers]
        for line in lines
        for at in range(len(line) - size + 1)
    )


@pytest.mark.parametrize("name", [*NAMES, *(table.name for table in (*TRUTHFULQA, *HALUEVAL))])
def test_the_papers_figures_stand_in_the_papers(
    path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Find each row in its paper: a model's measures, or a measure's models, are side by side."""
    version = "v1-arxiv" if "-v1-" in name else "v2-iclr-submission"
    lines = _numbers(shared("..", "papers", f"fewl-{version}.txt"))
    rouge = resolve_similarity("rouge")
    monkeypatch.setattr(scoring, "resolve_similarity", lambda similarity: rouge)
    sets = {**SETS, "truthfulqa": truthfulqa(), "halueval-qa": halueval()}
    result = made(name, path, knowing(), sets, limit=2, options={"wrong": "3"})
    checked = 0
    for row in result.rows:
        cells = [figure.paper for figure in row.figures if figure and figure.paper]
        by_measure = printed(cells)
        by_model = [[*chain(*of_one)] for of_one in zip(*by_measure, strict=True)]
        in_rows = all(stands([*chain(*one)], lines) for one in by_measure)
        in_models = all(stands(numbers, lines) for numbers in by_model)
        # In the paper's text, the lines of these rows run into each other.
        if row.name.startswith("single-best"):
            in_rows = all(stands([number], lines) for numbers in by_model for number in numbers)
        assert in_rows or in_models, row.name
        checked += len(cells)
    assert checked
