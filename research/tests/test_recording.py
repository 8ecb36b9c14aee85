"""Test that a recording replays its replies, resumes where it stopped, and needs no model."""

from __future__ import annotations

import errno
import gzip
import io
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.messages import HumanMessage, SystemMessage

from demur import DemurError
from demur.evaluators import SelfCheck, ZeroShot
from demur.recording import ModelLine, open_recording
from demur.schema import Sample
from demur_research.bench import Bench, Done
from demur_research.datasets.rows import Reading
from demur_research.spending import Spent, total
from support.fakes import ScriptedModel
from support.waiting import PATIENCE


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "recording.jsonl"


class Counted(ScriptedModel):
    """Report a fixed number of tokens with each reply."""

    def _generate(self, *arguments: Any, **options: Any) -> Any:
        result = super()._generate(*arguments, **options)
        message = result.generations[0].message
        message.usage_metadata = {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9}
        return result


def model(reply: Callable[..., Any] | str = "factual") -> Counted:
    say = (lambda messages: reply) if isinstance(reply, str) else reply
    return Counted(script=lambda stage, messages: say(messages))


def no_model(name: str) -> Any:
    raise AssertionError("no model is made")


def judged(path: Path, made: Any, answers: list[str], replay: bool = False) -> list[Done[Any]]:
    with open_recording(path, replay) as recording:
        bench = Bench(lambda name: Reading(()), recording, at_once=4)
        chat = recording.model("one", None if replay else made)
        return bench.judged("judging", ZeroShot(chat), [Sample(answer=text) for text in answers])


def test_what_is_recorded_is_not_asked_again(path: Path) -> None:
    judged(path, lambda name: model(), ["a", "b"])
    asked: list[Any] = []
    later = model(lambda messages: asked.append(messages) or "non-factual")
    found = judged(path, lambda name: later, ["a", "b", "c"])
    assert [one.value.passed for one in found] == [True, True, False]
    assert len(asked) == 1


def test_a_replay_finds_and_costs_the_same_without_a_model(path: Path) -> None:
    first = judged(path, lambda name: model(), ["a", "b"])
    again = judged(path, no_model, ["a", "b"], replay=True)
    assert [one.value.score for one in again] == [one.value.score for one in first]
    assert [one.spent for one in again] == [one.spent for one in first]
    assert total(one.spent for one in again).calls == 2
    assert again[0].spent.tokens == 9


def test_a_replay_of_what_is_not_recorded_decides_nothing_and_says_so(path: Path) -> None:
    judged(path, lambda name: model(), ["a"])
    (found,) = judged(path, no_model, ["other"], replay=True)
    assert found.value.undetermined
    assert "holds no reply" in found.value.error
    assert found.spent == Spent()


def test_samples_of_one_prompt_are_kept_apart(path: Path) -> None:
    texts = iter(f"text {at}" for at in range(100))
    chat = model(lambda messages: next(texts))
    with open_recording(path) as recording:
        recorded = recording.model("one", lambda name: chat)
        check = SelfCheck(recorded, method="ngram", n_samples=3)
        before = check.invoke({"question": "q", "answer": "text 1"})
    with open_recording(path, replay=True) as recording:
        again = SelfCheck(recording.model("one", None), method="ngram", n_samples=3)
        after = again.invoke({"question": "q", "answer": "text 1"})
    assert before.score == after.score
    assert len(set(before.details["samples"])) == 3
    assert before.details["samples"] == after.details["samples"]


def test_a_failed_call_is_not_recorded(path: Path) -> None:
    def fails(messages: Any) -> str:
        raise ValueError("no")

    (found,) = judged(path, lambda name: model(fails), ["a"])
    assert found.value.undetermined
    (found,) = judged(path, lambda name: model(), ["a"])
    assert found.value.passed


def test_a_torn_last_line_is_passed_over_by_a_replay_and_else_recorded_again(path: Path) -> None:
    judged(path, lambda name: model(), ["a", "b"])
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    found = judged(path, no_model, ["a", "b"], replay=True)
    assert sorted(one.value.undetermined for one in found) == [False, True]
    assert path.read_bytes() == whole[:-20]
    with open_recording(path) as recording:
        assert recording.cut > 0
    assert whole.startswith(path.read_bytes())
    assert len(judged(path, lambda name: model(), ["a", "b"])) == 2


def test_what_could_not_be_written_whole_is_taken_back(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = [10]

    class Full(io.FileIO):
        def write(self, content: Any) -> int:
            if not room[0]:
                raise OSError(errno.ENOSPC, "No space left on device")
            room[0], most = 0, room[0]
            return super().write(content[:most])

    judged(path, lambda name: model(), ["a"])
    before = path.read_bytes()
    with open_recording(path) as recording, monkeypatch.context() as at:
        at.setattr(Path, "open", lambda self, mode, buffering: Full(self, mode.replace("b", "")))
        with pytest.raises(DemurError, match="No space left"):
            recording.append(ModelLine(name="two", fingerprint="f", kind="k"))
    assert path.read_bytes() == before
    assert judged(path, lambda name: model(), ["a", "b"])[1].value.passed


def test_equal_calls_at_once_are_asked_once(path: Path) -> None:
    calling = threading.Barrier(4)
    numbers = iter(range(100))
    inner = model(lambda messages: f"reply {next(numbers)}")

    def call(chat: Any) -> str:
        calling.wait(PATIENCE)
        return str(chat.invoke("?").content)

    with open_recording(path) as recording:
        chat = recording.model("one", lambda name: inner)
        with ThreadPoolExecutor(4) as pool:
            replies = [*pool.map(call, [chat] * 4)]
    assert replies == ["reply 0"] * 4
    assert len(inner.requests) == 1


def test_an_option_that_cannot_be_written_is_refused(path: Path) -> None:
    with open_recording(path) as recording:
        chat = recording.model("one", lambda name: model())
        with pytest.raises(DemurError, match="options of a call cannot be recorded"):
            chat.invoke("?", keep=lambda text: text)
        assert chat.invoke("?", stop=["\n"], extra={"grammar": "x"}).content == "factual"


def test_other_options_messages_and_models_are_other_calls(path: Path) -> None:
    asked: list[Any] = []
    inner = model(lambda messages: asked.append(messages) or "factual")
    with open_recording(path) as recording:
        chat = recording.model("one", lambda name: inner)
        for prompt in (
            "ab",
            [HumanMessage("a"), HumanMessage("b")],
            [SystemMessage("a"), HumanMessage("b")],
            [HumanMessage([{"type": "text", "text": "ab"}])],
        ):
            for options in ({}, {"stop": ["a"]}, {"max_tokens": 1}, {"max_tokens": 2}):
                chat.invoke(prompt, **options)
    assert len(asked) == len(recording.calls) == 16


def test_a_damaged_line_is_named(path: Path) -> None:
    judged(path, lambda name: model(), ["a"])
    with path.open("a") as file:
        file.write('{"line":"call","key":1}\n')
    with pytest.raises(ValueError, match="line 3: no line of a recording"), open_recording(path):
        pass


def test_two_processes_do_not_write_one_recording(path: Path) -> None:
    with (
        open_recording(path),
        pytest.raises(ValueError, match="another run writes"),
        open_recording(path),
    ):
        pass


def test_a_compressed_recording_is_read_and_not_written(path: Path) -> None:
    judged(path, lambda name: model(), ["a"])
    packed = path.with_name("recording.jsonl.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert judged(packed, no_model, ["a"], replay=True)[0].value.passed
    with pytest.raises(ValueError, match="only read"), open_recording(packed):
        pass


class Lengths(Embeddings):
    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.asked += texts
        return [[float(len(text)), 0.5] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        raise AssertionError("a query is embedded as any text")


def test_vectors_are_computed_once(path: Path) -> None:
    inner = Lengths()
    with open_recording(path) as recording:
        recorded = recording.embedding(lambda: inner, "lengths")
        assert recorded.embed_documents(["a", "bb", "a"]) == [[1.0, 0.5], [2.0, 0.5], [1.0, 0.5]]
        assert recorded.embed_query("bb") == [2.0, 0.5]
    assert sorted(inner.asked) == ["a", "bb"]
    with open_recording(path, replay=True) as recording:
        replayed = recording.embedding(lambda: no_model("lengths"), "lengths")
        assert replayed.embed_query("a") == [1.0, 0.5]
        with pytest.raises(DemurError, match="lacks the vectors of 1 texts"):
            replayed.embed_documents(["a", "ccc"])
