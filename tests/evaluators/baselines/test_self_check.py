"""Test SelfCheck: given and drawn samples, five comparisons, what it leaves out and reports."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult
from pydantic import Field

from demur import Failure, Sample
from demur._text import sentences
from demur.evaluators import SelfCheck
from demur.evaluators.baselines.bertscore import load_bertscore
from demur.evaluators.baselines.consistency import Unigrams
from demur.local import SmallJudge
from demur.schema import ClaimLabel
from demur.similarity import Pair, load_nli
from support.fakes import ScriptedModel, isolated
from support.tiny import tiny_bi_encoder, tiny_cross_encoder, with_torch

ANSWER = "Oslo is in Norway. It is old."
SENTENCES = ["Oslo is in Norway.", "It is old."]
SAMPLES = ["Oslo lies in Norway. It was founded long ago.", "Oslo is in Norway."]
SAMPLE = Sample(question="What is Oslo?", answer=ANSWER, metadata={"samples": SAMPLES})


def same_words(pairs: list[Pair]) -> list[float]:
    """Return for each pair the share of its words that both texts have."""
    both = [tuple(set(text.casefold().rstrip(".").split()) for text in pair) for pair in pairs]
    return [len(first & second) / len(first | second) for first, second in both]


def inconsistencies(found: Any) -> list[float]:
    return [one["inconsistency"] for one in found.details["sentences"]]


# --- The five ways ------------------------------------------------------------------------------


def test_embedding_takes_the_sentence_of_each_sample_that_is_most_alike() -> None:
    found = SelfCheck(method="embedding", similarity=same_words).invoke(SAMPLE)
    first, second = found.details["sentences"]
    assert (first["start"], first["end"], first["text"]) == (0, 18, SENTENCES[0])
    assert ANSWER[second["start"] : second["end"]] == second["text"] == SENTENCES[1]
    # {oslo, is, in, norway} is compared with {oslo, lies, in, norway}, and then with itself.
    assert first["values"] == pytest.approx([1 - 3 / 5, 0])
    # {it, is, old} is compared with {it, was, founded, long, ago} and {oslo, is, in, norway}.
    assert second["values"] == pytest.approx([1 - 1 / 7, 1 - 1 / 6])
    assert inconsistencies(found) == pytest.approx([0.2, 1 - (1 / 7 + 1 / 6) / 2])
    assert found.details["inconsistency"] == pytest.approx(np.mean(inconsistencies(found)))
    assert found.score == pytest.approx(1 - found.details["inconsistency"])
    assert (found.label, found.passed, found.failure) == (None, None, None)
    assert "It is old." in found.explanation
    assert found.usage.calls == 0


@with_torch
def test_bertscore_does_the_same_with_an_encoder(tmp_path: Path) -> None:
    folder = tiny_bi_encoder(tmp_path)
    lower = SAMPLE.model_copy(
        update={"answer": ANSWER.lower(), "metadata": {"samples": [s.lower() for s in SAMPLES]}}
    )
    found = SelfCheck(method="bertscore", encoder=folder).invoke(lower)
    score = load_bertscore(folder)
    for one in found.details["sentences"]:
        expected = [
            1 - max(score.scores([(one["text"], s[start:end]) for start, end in sentences(s)]))
            for s in lower.metadata["samples"]
        ]
        assert one["values"] == pytest.approx(expected, abs=1e-5)
    assert found.score == pytest.approx(1 - np.mean(inconsistencies(found)), abs=1e-6)


@with_torch
def test_nli_counts_contradiction_against_entailment(tmp_path: Path) -> None:
    folder = tiny_cross_encoder(tmp_path, ["contradiction", "entailment", "neutral"])
    nli = load_nli(folder)
    found = SelfCheck(method="nli", nli=folder).invoke(SAMPLE)
    for text, one in zip(SENTENCES, found.details["sentences"], strict=True):
        told = nli.predict([(sample, text) for sample in SAMPLES])
        against = [found[ClaimLabel.CONTRADICTION] for found in told]
        for_it = [found[ClaimLabel.ENTAILMENT] for found in told]
        expected = [a / (a + f) for a, f in zip(against, for_it, strict=True)]
        assert one["values"] == pytest.approx(expected, abs=1e-5)
    assert found.error is None


class Judging:
    """Stand for the small judge: it knows SAMPLES, and cannot read a sentence with a sign."""

    def __call__(
        self, judge: SmallJudge, pairs: Sequence[tuple[str, str]]
    ) -> list[dict[ClaimLabel, float] | str]:
        return ["unreadable" if "☃" in text else self.of(sample) for sample, text in pairs]

    def of(self, sample: str) -> dict[ClaimLabel, float]:
        support = 0.6 if sample == SAMPLES[0] else 0.9
        return {
            ClaimLabel.ENTAILMENT: support,
            ClaimLabel.NEUTRAL: 1 - support,
            ClaimLabel.CONTRADICTION: 0.0,
        }


def test_nli_may_be_by_the_small_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    judging = Judging()
    monkeypatch.setattr(SmallJudge, "predict", lambda judge, pairs: judging(judge, pairs))
    checker = SelfCheck(method="nli", nli="small")
    found = checker.invoke(SAMPLE)
    assert [one["values"] for one in found.details["sentences"]] == [
        pytest.approx([0.4, 0.1]),
        pytest.approx([0.4, 0.1]),
    ]
    assert found.score == pytest.approx(0.75)
    assert found.usage.calls == 0
    assert checker.fingerprints["similarity"] == SmallJudge().fingerprint
    assert pickle.loads(pickle.dumps(checker)).fingerprints == checker.fingerprints
    unread = checker.invoke({"answer": "It is ☃.", "metadata": {"samples": SAMPLES}})
    assert unread.error == "no comparison of this sentence with a sample can be read: 'It is ☃.'"
    assert unread.details["unread"] == 2


def test_the_small_judge_itself_tells_a_contradiction_from_what_samples_say() -> None:
    samples = ["Oslo is the capital of Norway.", "The capital of Norway is Oslo."]
    checker = SelfCheck(method="nli", nli="small")
    right, wrong = (
        checker.invoke({"answer": answer, "metadata": {"samples": samples}}).score or 0
        for answer in ("Oslo is the capital of Norway.", "Bergen is the capital of Norway.")
    )
    assert right > 0.8
    assert wrong < 0.5


def supporting(replies: dict[tuple[str, str], str]) -> ScriptedModel:
    """Return a model with these replies for a sentence and a sample; to all others it says yes."""

    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        assert stage == "support"
        reply = replies.get((isolated("sentence", messages), isolated("context", messages)), "Yes")
        if reply == "fail":
            raise ValueError("out of order")
        return reply

    return ScriptedModel(script=script)


def test_prompt_asks_about_each_sentence_and_sample() -> None:
    model = supporting({(SENTENCES[1], SAMPLES[0]): "No."})
    found = SelfCheck(model, method="prompt").invoke(SAMPLE)
    assert [one["values"] for one in found.details["sentences"]] == [[0, 0], [1, 0]]
    assert found.score == 0.75
    assert found.usage.calls == len(model.requests) == 4
    asked = {(isolated("sentence", one), isolated("context", one)) for one in model.requests}
    assert asked == set(product(SENTENCES, SAMPLES))


@pytest.mark.parametrize("reply", ["Hard to tell.", "fail"])
def test_what_cannot_be_read_is_left_out_and_told(reply: str) -> None:
    model = supporting({(SENTENCES[1], SAMPLES[0]): reply, (SENTENCES[1], SAMPLES[1]): "No"})
    found = SelfCheck(model, method="prompt").invoke(SAMPLE)
    assert [one["values"] for one in found.details["sentences"]] == [[0, 0], [None, 1]]
    assert inconsistencies(found) == [0, 1]
    assert found.details["unread"] == 1
    assert found.score == 0.5


def test_a_sentence_of_which_nothing_can_be_read_makes_it_undetermined() -> None:
    model = supporting({(SENTENCES[1], sample): "Hm." for sample in SAMPLES})
    found = SelfCheck(model, method="prompt", threshold=0.1).invoke(SAMPLE)
    assert "'It is old.'" in (found.error or "")
    assert (found.score, found.label, found.passed) == (None, None, None)
    assert inconsistencies(found) == [0, None]
    assert found.details["unread"] == 2


def test_an_argument_in_the_answer_is_no_reply() -> None:
    argued = "Yes, the context supports this sentence in full."
    model = ScriptedModel(script=lambda stage, messages: argued)
    found = SelfCheck(model, method="prompt").invoke(
        {"answer": argued, "metadata": {"samples": SAMPLES}}
    )
    assert "can be read" in (found.error or "")


def test_ngram_is_the_mean_over_words_of_a_model_of_samples_and_answer() -> None:
    found = SelfCheck(method="ngram").invoke(SAMPLE)
    spoken = [s[start:end] for s in SAMPLES for start, end in sentences(s)]
    model = Unigrams([*spoken, *SENTENCES])
    surprises = [model.surprises(text) for text in SENTENCES]
    assert inconsistencies(found) == pytest.approx([np.mean(one) for one in surprises])
    assert [one["worst"] for one in found.details["sentences"]] == pytest.approx(
        [max(one) for one in surprises]
    )
    assert found.details["sentences"][0]["values"] == []
    assert found.score == pytest.approx(math.exp(-np.mean(inconsistencies(found))))
    assert 0 < (found.score or 0) < 1


# --- Decisions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("threshold", "passed"), [(0.4, True), (0.6, False)])
def test_a_threshold_decides(threshold: float, passed: bool) -> None:
    found = SelfCheck(method="embedding", similarity=same_words, threshold=threshold).invoke(SAMPLE)
    assert found.score == pytest.approx((0.8 + (1 / 7 + 1 / 6) / 2) / 2)
    assert found.passed is passed
    assert found.label == ("factual" if passed else "non-factual")
    assert found.failure is (None if passed else Failure.OTHER)


def test_lines_without_words_are_no_sentences() -> None:
    answer = f"***\n\n{ANSWER}\n\n---"
    for method in ("ngram", "embedding"):
        checker = SelfCheck(method=method, similarity=same_words)
        found = checker.invoke({"answer": answer, "metadata": {"samples": SAMPLES}})
        assert [one["text"] for one in found.details["sentences"]] == SENTENCES
    empty = checker.invoke({"answer": "***", "metadata": {"samples": SAMPLES}})
    assert empty.error == "the answer holds no words"


# --- Samples ------------------------------------------------------------------------------------


class Speaker(ScriptedModel):
    """Record the temperature at which this scripted model is asked."""

    script: Any = lambda stage, messages: "Oslo is in Norway."
    temperatures: list[float | None] = Field(default_factory=list)

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self.temperatures.append(kwargs.get("temperature"))
        return super()._generate(messages, *args, **kwargs)


@pytest.mark.parametrize("temperature", [None, 0.7])
def test_samples_are_asked_for_where_none_are_given(temperature: float | None) -> None:
    model = Speaker()
    checker = SelfCheck(
        model, method="embedding", similarity=same_words, n_samples=3, temperature=temperature
    )
    found = checker.invoke(Sample(question="What is Oslo?", answer=ANSWER))
    assert found.details["samples"] == ["Oslo is in Norway."] * 3
    assert [isolated("question", one) for one in model.requests] == ["What is Oslo?"] * 3
    assert model.temperatures == [temperature] * 3
    assert found.usage.calls == 3  # The requests are equal, but each is made.
    assert ANSWER not in str(model.requests)


@pytest.mark.parametrize("samples", [[], "Oslo.", ["Oslo.", " "], 7], ids=repr)
def test_samples_of_another_form_are_refused(samples: Any) -> None:
    found = SelfCheck(method="ngram").invoke({"answer": ANSWER, "metadata": {"samples": samples}})
    assert "metadata['samples']: expected a list of texts" in (found.error or "")


def test_without_samples_a_question_and_a_model_are_needed() -> None:
    model = Speaker()
    without_model = SelfCheck(method="ngram").invoke({"question": "What?", "answer": ANSWER})
    assert "a model so that some can be asked for" in (without_model.error or "")
    without_question = SelfCheck(model, method="ngram").invoke({"answer": ANSWER})
    assert "a question so that some can be asked for" in (without_question.error or "")
    assert "empty" in (SelfCheck(method="ngram").invoke({"answer": ""}).error or "")


@pytest.mark.parametrize(("reply", "error"), [("fail", "1 of 3 samples"), ("", "is empty")])
def test_a_sample_that_cannot_be_had_is_told(reply: str, error: str) -> None:
    replies = iter(["Oslo.", reply, "Oslo."])

    def script(stage: str, messages: Sequence[BaseMessage]) -> str | AIMessage:
        said = next(replies)
        if said == "fail":
            raise ValueError("out of order")
        return said

    checker = SelfCheck(ScriptedModel(script=script), method="ngram", n_samples=3)
    found = checker.invoke({"question": "What is Oslo?", "answer": ANSWER})
    assert error in (found.error or "")


# --- Inside guards and other runnables ----------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"method": "prompt"}, "method='prompt' asks a model"),
        ({"method": "rumour"}, "'bertscore', 'nli', 'prompt'"),
    ],
)
def test_bad_arguments_are_refused_by_name(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        SelfCheck(**options)
