"""Test each way to score pairs against its definition or its library."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from demur import DemurError, MissingExtraError
from demur.similarity import Pair
from demur.similarity.scorers import Cosine, load_bleu, load_rouge


class Letters:
    """Embed a text as the counts of three letters, and record the texts."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def __call__(self, texts: list[str]) -> list[list[float]]:
        self.batches.append(list(texts))
        return [[float(text.count(letter)) for letter in "abc"] for text in texts]


def test_the_cosine_is_that_of_the_vectors_and_never_negative() -> None:
    found = Cosine(lambda texts: [[float(text), 1.0] for text in texts])(
        [("0", "0"), ("1", "0"), ("3", "-3"), ("-1", "1")]
    )
    assert found == pytest.approx([1.0, 0.5**0.5, 0.0, 0.0], abs=1e-6)


@pytest.mark.parametrize(
    ("vectors", "said"),
    [
        ([[0.0, 0.0], [1.0, 0.0]], r"length 0\.0 for 'a'"),
        ([[1.0, 0.0], [np.nan, 0.0]], r"length nan for 'b'"),
        ([[1.0, 0.0]], r"shape \(1, 2\) for 2 texts"),
        ([1.0, 0.0], r"shape \(2,\) for 2 texts"),
    ],
    ids=["zero", "nan", "one", "flat"],
)
def test_vectors_without_a_direction_are_refused(vectors: list[list[float]], said: str) -> None:
    with pytest.raises(DemurError, match=said):
        Cosine(lambda _: vectors)([("a", "b")])


def counts(texts: list[str]) -> list[list[float]]:
    return Letters()(texts)


@pytest.mark.parametrize(
    ("pair", "score"),
    [
        (("The cat sat.", "the cat"), 2 * 2 / (3 + 2)),
        (("a b c d", "d c b a"), 2 * 1 / (4 + 4)),
        (("one two three four", "two x four"), 2 * 2 / (4 + 3)),
        (("Осло в Норвегии", "осло в швеции"), 2 * 2 / (3 + 3)),
        (("same words", "Same, words!"), 1.0),
        (("", "a"), 0.0),
        (("", "..."), 0.0),
    ],
    ids=lambda given: ascii(given) if isinstance(given, tuple) else "",
)
def test_rouge_l_is_the_f1_of_the_longest_common_subsequence(pair: Pair, score: float) -> None:
    pytest.importorskip("rapidfuzz")
    assert load_rouge()([pair, pair[::-1]]) == pytest.approx([score, score], abs=1e-12)


def test_bleu_is_sacrebleus_with_the_premise_as_reference() -> None:
    sacrebleu = pytest.importorskip("sacrebleu")
    premise = "Oslo is the capital of Norway and its largest city."
    hypothesis = "Oslo is the capital of Norway."
    expected = [
        sacrebleu.sentence_bleu(hypothesis, [premise]).score / 100,
        sacrebleu.sentence_bleu(premise, [hypothesis]).score / 100,
    ]
    assert expected[0] != pytest.approx(expected[1])
    found = load_bleu()([(premise, hypothesis), (hypothesis, premise), (premise, premise)])
    assert found == pytest.approx([*expected, 1.0])
    assert load_bleu()([("", "a"), ("a", ""), ("", "")]) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("package", "load"),
    [("rapidfuzz", load_rouge), ("sacrebleu", load_bleu)],
    ids=["rouge", "bleu"],
)
def test_a_package_that_is_missing_is_asked_for(
    package: str, load: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"demur\[similarity\]"):
        load()
