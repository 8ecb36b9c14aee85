"""Test CHALE built anew: half wrong answers are half wrong, and CHALE's reader reads the file."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings

from demur.evaluators import normalized_text
from demur_research.building.chale import (
    FORMATTED,
    NO_ANSWER,
    NONE_IN_RANGE,
    TWICE,
    Source,
    Triple,
    build,
)
from demur_research.commands import building, run
from demur_research.datasets import chale, read_set
from publishers import dump


class Angles(Embeddings):
    """Embed a question by the angle in degrees at its end, so that similarity is their cosine."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        angles = (math.radians(float(text.rsplit(" ", 1)[1])) for text in texts)
        return [[2 * math.cos(angle), 2 * math.sin(angle)] for angle in angles]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def source(angle: float, short: str | None = None, long: str | None = None) -> Source:
    return Source(
        question=f"what is at {angle:g}",
        short_answer=f"Thing {angle:g}" if short is None else short,
        long_answer=(
            f"First of {angle:g} here. Second of {angle:g} here. Third of {angle:g} here. "
            f"Last of {angle:g} here."
            if long is None
            else long
        ),
    )


def parts(answer: str) -> tuple[str, str]:
    short, _, sentence = answer.partition(". ")
    return short, sentence


def assert_half(one: Triple) -> None:
    """Assert that the half wrong answer has one part of the right answer, and one of the wrong."""
    own, wrong, half = (parts(text) for text in (one.right, one.wrong, one.half))
    assert own[0] != wrong[0]
    assert own[1] != wrong[1]
    assert half == ((wrong[0], own[1]) if one.mismatch == "short answer" else (own[0], wrong[1]))


WORDS = st.sampled_from(["Red", "stone", "river", "cloud", "seven", "owls"])
SENTENCE = st.lists(WORDS, min_size=2, max_size=4).map(lambda words: f"{' '.join(words)}.")
SOURCES = st.lists(
    st.builds(
        source,
        st.integers(0, 180),
        st.lists(WORDS, min_size=1, max_size=2).map(" ".join),
        st.lists(SENTENCE, min_size=1, max_size=5).map(" ".join),
    ),
    min_size=1,
    max_size=9,
)


@given(SOURCES, st.integers(0, 3))
@settings(max_examples=30)
def test_every_half_wrong_answer_is_half_wrong(sources: list[Source], seed: int) -> None:
    try:
        built = build(sources, Angles(), seed)
    except ValueError:
        return
    by_question = {one.question: one for one in reversed(sources)}
    for one in built.triples:
        other = by_question[one.neighbour]
        assert_half(one)
        assert parts(one.right)[0] == one.source.short_answer
        assert parts(one.wrong)[0] == other.short_answer
        assert parts(one.right)[1] in one.source.long_answer
        assert parts(one.wrong)[1] in other.long_answer
        right, wrong = (normalized_text(text) for text in (one.source.short_answer, one.wrong))
        assert f" {right} " not in f" {wrong} "
        assert 0.2 <= one.similarity <= 0.8


@pytest.mark.parametrize("seed", range(3))
def test_answers_are_the_short_one_and_a_sentence_from_the_middle_of_the_long_one(
    seed: int,
) -> None:
    built = build([source(0), source(60)], Angles(), seed)
    for one, other in zip(built.triples, (60, 0), strict=True):
        for answer, angle in ((one.right, 60 - other), (one.wrong, other)):
            middle = [f"{which} of {angle} here." for which in ("Second", "Third")]
            assert answer in [f"Thing {angle}. {sentence}" for sentence in middle]
        assert one.neighbour == f"what is at {other}"
        assert one.similarity == pytest.approx(0.5)


def test_paragraphs_lose_their_tags_and_end_a_sentence() -> None:
    long = "<P> The first </P> <P> It  stands here </P> <P> The last </P>"
    (one, _) = build([source(0, long=long), source(60)], Angles()).triples
    assert one.right == "Thing 0. It stands here"


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (source(1, short=" ."), NO_ANSWER),
        (source(1, long="<Table> <Tr> <Td> 1 </Td> </Tr> </Table>"), FORMATTED),
        (source(1, long="As follows.\n- one\n- two"), FORMATTED),
        (source(1, long="| a | b |\n|---|---|"), FORMATTED),
        (Source(question="What is at 60", short_answer="x", long_answer="A b c."), TWICE),
        (source(150), NONE_IN_RANGE),
        (source(61, long="Second of 0 here."), None),
        (source(300, short="Thing 60 and 0"), None),
    ],
)
def test_what_is_left_out_is_counted_by_its_reason(bad: Source, why: str | None) -> None:
    built = build([source(0), source(60), bad], Angles())
    left = {name: count for name, count in built.left_out.items() if count}
    assert left == ({why: 1} if why else {})
    assert len(built.triples) == 3 - len(left)


def test_only_the_20_nearest_are_mismatched() -> None:
    near = [source(angle / 10) for angle in range(21)]
    built = build([*near[:-1], source(60)], Angles())
    assert {one.neighbour for one in built.triples if one.source != source(60)} == {"what is at 60"}
    assert built.left_out[NONE_IN_RANGE] == 0
    crowded = build([*near, source(60)], Angles())
    assert [one.source.question for one in crowded.triples] == ["what is at 60"]
    assert crowded.left_out[NONE_IN_RANGE] == 21


def test_the_same_seed_builds_the_same() -> None:
    sources = [source(angle) for angle in range(0, 180, 7)]
    one, again, other = (build(sources, Angles(), seed) for seed in (1, 1, 2))
    assert one == again != other


def test_chales_reader_reads_every_row_that_was_built(tmp_path: Path) -> None:
    built = build([source(angle) for angle in range(0, 180, 7)], Angles())
    found = read_set(chale.DATA_SET, dump(tmp_path / "built.json", built.as_published()))
    assert [row.question for row in found] == [one.source.question for one in built.triples]
    assert not any(found.left_out.values())
    for row, one in zip(found, built.triples, strict=True):
        texts = {answer.name: answer.text for answer in row.answers}
        assert texts == {"non_hallu": one.right, "half_hallu": one.half, "hallu": one.wrong}


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(building, "MiniLM", Angles)
    rows = [source(angle).model_dump() for angle in (0, 60, 150)]
    questions = dump(tmp_path / "questions.jsonl", rows)
    return ["build", "chale", str(questions), "-o", str(tmp_path / "built.json")]


def test_the_command_writes_the_file_and_says_what_it_left_out(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command) == 0
    out = capsys.readouterr().out
    assert "in the file\t3\nbuilt\t2\n" in out
    assert f"left out: {NONE_IN_RANGE}\t1" in out
    assert "fit neighbours of a question on the mean: 0.67" in out
    assert len(read_set(chale.DATA_SET, tmp_path / "built.json")) == 2
