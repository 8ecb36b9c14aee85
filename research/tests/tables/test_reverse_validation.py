"""Test the tables of Reverse Validation on a small set and on the publishers' records."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, BaseMessage

from benches import Small, benched
from demur_research import bench as seam
from demur_research.bench import Result, Row
from demur_research.datasets.rows import Answer, LabelledRow
from demur_research.tables import TABLES
from demur_research.tables.reverse_validation import judges
from demur_research.tables.reverse_validation.judged import by_halves
from publishers import as_lines, biographies, published, say, scored_biographies
from support.fakes import ScriptedModel
from support.shared import shared

USED = {"input_tokens": 30, "output_tokens": 5, "total_tokens": 35}
DOMAINS = ("", "PHD-Low: ", "PHD-Medium: ", "PHD-High: ")
WIKIBIO_THRESHOLD = "selfcheck bertscore, threshold of WikiBio"
FLOORS = ["all false", "the longest, threshold of the other half"]
FLOORS += ["the shortest, threshold of the other half"]

Script = Callable[[str, Sequence[BaseMessage]], Any]


class Lengths(Embeddings):
    """Embed a text by its length, without a model."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float(len(text)), 1.0] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


@pytest.fixture(autouse=True)
def _no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seam, "MiniLM", Lengths)


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    """Return PHD as its publishers have it, with its records beside it."""
    return published(tmp_path)[0]


@pytest.fixture
def sets(tmp_path: Path) -> dict[str, Path]:
    """Return PHD and WikiBio as lines, with their records beside them."""
    wikibio, _ = scored_biographies(tmp_path / "wikibio")
    return {"phd": as_lines(tmp_path)[0], "wikibio-gpt3": wikibio}


def made(
    table: str,
    data: Mapping[str, Path],
    path: Path,
    script: Script | None = None,
    limit: int | None = None,
    **options: str,
) -> Result:
    """Make a table and return its result; without a script, no model can be asked."""
    model = None if script is None else ScriptedModel(script=script)
    told = {name.replace("_", "-"): value for name, value in options.items()}
    with benched(path, model, data, limit=limit, options=told) as bench:
        return TABLES[table].make(bench)


def rows(found: Result) -> dict[str, Row]:
    by_name = {row.name: row for row in found.rows}
    assert len(by_name) == len(found.rows)
    assert all(len(row.figures) == len(found.columns) for row in found.rows)
    return by_name


def values(row: Row) -> list[float | None]:
    return [None if figure is None else figure.value for figure in row.figures]


def counted(stage: str, messages: Sequence[BaseMessage]) -> AIMessage:
    return AIMessage(say(stage, messages), usage_metadata=USED)


# -- the labels ------------------------------------------------------------------------------------


def test_labels_are_counted_by_domain(lists: Path, path: Path) -> None:
    found = rows(made("rv-table-1", {"phd": lists}, path))
    assert {name: values(row) for name, row in found.items()} == {
        "PHD-High": [0, 2, 100],
        "PHD-Medium": [1, 0, 0],
        "PHD-Low": [1, 1, 50],
    }


# -- from records ----------------------------------------------------------------------------------


def test_each_method_and_matcher_has_a_row_of_all_and_of_each_domain(
    lists: Path, path: Path
) -> None:
    found = rows(made("rv-table-3", {"phd": lists}, path))
    # There are three floors, LMvsLM, four of SelfCheck, zero-shot, and five matchers for both
    # variants.
    assert len(found) == 4 * (3 + 1 + 4 + 1 + 5 + 5)
    own = found["qg, published_qg"]
    assert values(own)[:3] == pytest.approx([200 / 3, 200 / 3, 200 / 3])
    assert (own.items, own.undetermined) == (5, 0)
    assert values(found["PHD-High: qg, published_qg"])[:3] == pytest.approx([200 / 3, 100, 50])
    assert [name for name, row in found.items() if row.floor] == [
        f"{domain}{name}" for domain in DOMAINS for name in FLOORS
    ]
    assert values(found["PHD-Medium: all false"])[:3] == [0, 0, None]


def test_f1_is_held_against_the_floor_and_the_published_decision(lists: Path, path: Path) -> None:
    found = rows(made("rv-table-3", {"phd": lists}, path))
    own, other = values(found["qg, normalized"]), values(found["qg, published_qg"])
    assert own[4] == pytest.approx((own[0] or 0) - (other[0] or 0))
    assert other[4] is None
    floor = values(found["all false"])
    assert own[3] == pytest.approx((own[0] or 0) - (floor[0] or 0))
    assert floor[3:] == [None, None]


def test_selfchecks_threshold_is_the_lowest_score_of_wikibio(
    sets: dict[str, Path], path: Path
) -> None:
    found = made("rv-table-3", sets, path)
    # 0.2 is the lowest score of the subset, so of the scores 0.0 to 0.4 the last three are
    # rejected. Two rejections are wrong.
    row = rows(found)[WIKIBIO_THRESHOLD]
    assert values(row)[:3] == pytest.approx([200 / 3, 200 / 3, 200 / 3])


def test_a_threshold_is_applied_to_the_half_that_it_was_not_chosen_on() -> None:
    # In each half, the second passage is wrong, and scores 1 more than the first.
    scores = [1.0, 11.0, 2.0, 12.0]
    passages = [
        LabelledRow(str(at), None, (Answer(f"{at}", hallucinated=at > 1),)) for at in range(4)
    ]
    found = by_halves("x", passages, {str(at): score for at, score in enumerate(scores)})
    # The threshold 1 rejects in the half of 11 and 12, and the threshold 11 in that of 1 and 2.
    assert found.verdicts == {"0": False, "1": True, "2": False, "3": True}


def test_the_records_of_llama_2_are_its_own(sets: dict[str, Path], path: Path) -> None:
    records = sets["phd"].with_name("records_chatgpt.jsonl")
    records.rename(records.with_name("records_llama2_7b.jsonl"))
    found = rows(made("rv-table-6", sets, path))
    assert values(found["em, published_em"])[:3] == pytest.approx([80, 100, 200 / 3])
    with pytest.raises(ValueError, match="no records of chatgpt"):
        made("rv-table-3", sets, path)


def test_rejected_biographies_are_counted_with_the_least_wrong_of_them(
    tmp_path: Path, path: Path
) -> None:
    data, _ = biographies(tmp_path)
    found = made("rv-table-4", {"wikibio-gpt3": data}, path)
    own = rows(found)["qg, wikibio_name"]
    assert (own.items, own.undetermined) == (3, 0)
    assert values(own) == pytest.approx([200 / 3, 25])
    assert [figure and figure.paper for figure in own.figures] == ["74.2", "10.0"]
    assert values(rows(found)["all false"]) == [100, 25]
    assert "qg, llm" not in rows(found)
    assert "1 of 4 passages have no record." in found.notes


# -- with a live model -----------------------------------------------------------------------------


def test_the_same_replies_are_judged_as_from_records(lists: Path, path: Path) -> None:
    replayed = rows(made("rv-table-3", {"phd": lists}, path.with_name("vectors.jsonl")))
    live = rows(made("rv-live", {"phd": lists}, path, say, percentage="90"))
    of_names = {name for name in replayed if "g, " in name or "m, " in name}
    same = {name for name in of_names if not name.endswith(("llm", "half"))} | {"all false"}
    assert len(same) == 4 * 8 + 1
    for name in same:
        own, recorded = live[name], replayed[name]
        assert values(own) == pytest.approx(values(recorded), nan_ok=True), name
        assert own.items == recorded.items
    # Only "Iron" is rejected.
    assert values(live["zero-shot"])[:3] == [50, 100, pytest.approx(100 / 3)]
    assert values(live["lmvslm"])[:3] == [0, None, 0]


def test_a_method_costs_what_its_passages_cost_on_the_mean(lists: Path, path: Path) -> None:
    found = rows(made("rv-table-5", {"phd": lists}, path, counted))
    # LM vs LM asks for questions, testimony, further questions and the verdict. SelfCheck asks for
    # samples.
    calls = {"lmvslm": 4, "selfcheck embedding": 3, "zero-shot": 1}
    calls |= {"qg, normalized": 2, "em, normalized": 2}
    assert {name: values(row)[0] for name, row in found.items()} == {
        name: 35.0 * count for name, count in calls.items()
    }
    assert [*found] == [  # The paper's rows come first, then the others.
        *("qg, normalized", "em, normalized", "lmvslm"),
        *("selfcheck embedding", "zero-shot"),
    ]
    assert all((values(row)[1] or 0) > 0 for row in found.values())
    assert [figure and figure.paper for figure in found["qg, normalized"].figures] == [
        "297.3",
        "2.65",
    ]
    live = rows(made("rv-live", {"phd": lists}, path, counted))
    spent = live["em, normalized"].spent
    assert spent is not None
    assert (spent.calls, spent.tokens) == (2, 70)
    asking = live["em, llm"].spent
    assert asking is not None
    assert asking.calls > 2
    assert live["all false"].spent is None


def test_what_is_undetermined_is_counted_and_in_no_figure(lists: Path, path: Path) -> None:

    def silent(stage: str, messages: Sequence[BaseMessage]) -> str:
        mute = stage == "access" and "umber 2" in str(messages[-1].content)
        return "" if mute or stage in ("verdict", "sample") else say(stage, messages)

    found = rows(made("rv-live", {"phd": lists}, path, silent, methods="qg,zero-shot,selfcheck"))
    assert (found["zero-shot"].items, found["zero-shot"].undetermined) == (0, 5)
    selfcheck = found["selfcheck 1-gram, threshold of the other half"]
    assert (selfcheck.items, selfcheck.undetermined) == (0, 5)
    for name in ("qg, exact", "qg, normalized"):
        assert (found[name].items, found[name].undetermined) == (4, 1)
        assert found[f"PHD-Medium: {name}"].undetermined == 1
        spent = found[name].spent
        assert spent is not None
        assert spent.calls == 2
    costs = rows(made("rv-table-5", {"phd": lists}, path, methods="qg,zero-shot"))
    assert {name: (row.items, row.undetermined) for name, row in costs.items()} == {
        "qg, normalized": (4, 1),
        "zero-shot": (0, 5),
    }
    assert values(costs["zero-shot"]) == [None, None]


# -- on the publishers' records --------------------------------------------------------------------

# The figures of the part that is available here, and of the whole benchmark as published.
PART, WHOLE = 187, 300


def rounded(row: Row, digits: int = 2) -> list[float]:
    return [round(value or 0, digits) for value in values(row)[:3]]


def test_the_publishers_lists_give_the_published_figures(path: Path) -> None:
    data = shared("official", "phd", "PHD_benchmark.json")
    found = rows(made("rv-table-3", {"phd": data}, path))
    qg, em = found["qg, published_qg"], found["em, published_em"]
    if qg.items == WHOLE:
        assert [rounded(qg, 1), rounded(em, 1)] == [[52.3, 40.7, 73.1], [59.1, 48.0, 76.9]]
        return
    assert qg.items == PART
    assert rounded(found["all false"]) == [41.53, 26.20, 100]
    expected = {
        **{"qg, published_qg": 53.15, "qg, exact": 53.15, "qg, normalized": 54.41},
        **{"qg, wikibio_name": 51.85, "qg, llm": 47.73, "em, published_em": 63.70},
        **{"em, exact": 61.76, "em, normalized": 61.65, "em, wikibio_name": 55.74},
        **{"em, llm": 60.95, "PHD-Low: qg, normalized": 62.5},
    }
    assert {name: rounded(found[name])[0] for name in expected} == expected
    assert (found["qg, llm"].items, found["qg, llm"].undetermined) == (PART - 5, 5)


def test_what_the_recorded_replies_to_wikibio_give_is_near_the_paper(path: Path) -> None:
    data = shared("wikibio_gpt3", "wikibio.jsonl")
    found = rows(made("rv-table-4", {"wikibio-gpt3": data}, path))
    shares = {
        **{"qg, wikibio_name": (77.1, 25.0), "em, published_em": (71.2, 20.0)},
        **{"lmvslm": (28.0, 60.0), "zero-shot": (0.0, None)},
    }
    for name, (share, least) in shares.items():
        figure, lowest = found[name].figures
        assert figure is not None
        assert figure.value == pytest.approx(share, abs=0.05)
        assert (figure.low or 0) <= float(figure.paper) <= (figure.high or 0)
        assert (lowest and lowest.value) == (least and pytest.approx(least))


# -- a judge as matcher ----------------------------------------------------------------------------


def _by_names(reference: str, claim: str) -> float:
    """Support a claim that shares a word with a capital."""
    names = [set(re.findall(r"(?!The|This|It)[A-ZÉ]\w+", one)) for one in (reference, claim)]
    return 0.9 if names[0] & names[1] else 0.01


@pytest.fixture
def matching(monkeypatch: pytest.MonkeyPatch) -> Small:
    return Small(_by_names).stands_in(monkeypatch)


def test_a_judge_matches_where_the_reply_lacks_the_name(
    lists: Path, path: Path, matching: Small
) -> None:
    found = made("rv-matching", {"phd": lists}, path, models="chatgpt")
    by_name = rows(found)
    half = by_name["all false"].items
    assert half == 2  # every second of five passages
    for variant in ("qg", "em"):
        own = by_name[f"chatgpt: {variant}, exact, or small"]
        assert (own.items, own.undetermined) == (half, 0)
        published = by_name[f"chatgpt: {variant}, published_{variant}"]
        assert values(published)[4] is None
        better = (values(own)[0] or 0) - (values(published)[0] or 0)
        assert values(own)[4] == pytest.approx(better)
    assert [name for name, row in by_name.items() if row.floor] == FLOORS
    # Both replies about it have the name, so no judge is asked.
    assert not [pair for pair in matching.asked if "red fox" in pair[0].lower()]
    assert any("2 of 5 passages. On the 3 others" in note for note in found.notes)
    assert any("exact alone" in note for note in found.notes)


def test_the_published_texts_are_put_into_the_forms(matching: Small) -> None:
    passage = LabelledRow("p", None, (Answer("text", hallucinated=False),))
    reply = judges._Reply("m", "em", passage, "Iron", "Entity: Copper.\nPercentage: 95%")
    assert [reply.asked(form).text for form in judges.FORMS] == [
        "The entity is Iron.",
        "The entity is Copper.",
        "This is about Iron.",
        "It is also known as Iron.",
    ]
    assert reply.asked("another name of it").contexts == ("It is called Copper.",)
    assert not reply.named
    # The percentage counts too.
    assert [reply.rejected(same, 90) for same in (True, False)] == [False, True]
    assert reply.rejected(same=True, least=96) is True


# -- SelfCheck's variants --------------------------------------------------------------------------


def test_variants_of_selfcheck_stand_side_by_side(
    sets: dict[str, Path], path: Path, matching: Small
) -> None:
    found = rows(made("rv-selfcheck", sets, path))
    assert [*found] == [
        *("chatgpt: selfcheck nli, small", "chatgpt: selfcheck embedding"),
        *("chatgpt: selfcheck 1-gram", "chatgpt: selfcheck bertscore, as recorded"),
        *("the longest", "the shortest", "all false"),
    ]
    # The scores 0.0 to 0.4 rise with the passage's place. The 2nd, 4th and 5th are wrong.
    assert values(found["chatgpt: selfcheck bertscore, as recorded"])[0] == pytest.approx(5 / 6)
    assert values(found["all false"]) == [0.5, 75, 60, 100]
    assert {pair[0] for pair in matching.asked} >= {"Something else is said."}
