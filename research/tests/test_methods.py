"""A recording goes on where it was stopped, is of one model, and is judged as a replay is."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from demur import DemurError, Evaluation
from demur_research import methods as live
from demur_research.datasets.phd import Judged, read_passages, read_phd_records
from demur_research.methods import METHODS, drawn, is_recording, judgings, mend, read, record
from demur_research.replay import Cost, Judging, replay
from publishers import as_lines, say
from support.fakes import ScriptedModel, isolated

EVERY = list(METHODS)
USED = {"input_tokens": 30, "output_tokens": 5, "total_tokens": 35}


class Named(ScriptedModel):
    """Told from others by its name."""

    model_name: str = "one"


def counted(stage: str, messages: Sequence[BaseMessage]) -> AIMessage:
    return AIMessage(say(stage, messages), usage_metadata=USED)


@pytest.fixture
def passages(tmp_path: Path) -> tuple[Judged, ...]:
    return read_passages(as_lines(tmp_path)[0])


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "recording.jsonl"


def nothing(done: int, total: int) -> None:
    pass


def by_name(judged: Sequence[Judging]) -> dict[tuple[str, str | None], Judging]:
    return {(one.method, one.matcher): one for one in judged}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# --- What is judged ---------------------------------------------------------------------------


def test_the_same_replies_are_judged_as_in_a_replay(
    tmp_path: Path, passages: tuple[Judged, ...], out: Path
) -> None:
    record(passages, EVERY, Named(script=say), out, nothing)
    found = by_name(list(judgings(passages, list(read(out, passages)), 90)))
    recorded = read_phd_records(tmp_path / "records_someone.jsonl", passages)
    replayed = by_name(replay(passages, recorded, 90))
    # A reply that is there was not compared by a model, and the other methods said other things.
    of_names = {key for key in replayed if key[1] not in (None, "llm")}
    assert len(of_names) == 8
    assert {key for key in found if key[1]} == of_names
    for key in {*of_names, ("all-false", None)}:
        assert found[key].verdicts == replayed[key].verdicts, key
    wrong = {one.key: one.entity == "Iron" for one in passages}
    assert found["zero-shot", None].verdicts == wrong
    assert set(found["lmvslm", None].verdicts.values()) == {False}


def test_the_percentage_counts_for_lists_alone(passages: tuple[Judged, ...], out: Path) -> None:
    record(passages, ["qg", "em"], Named(script=say), out, nothing)
    held = list(read(out, passages))
    strict, lax = (by_name(list(judgings(passages, held, least))) for least in (90, 80))
    changed = {
        (*key, passage)
        for key, one in strict.items()
        for passage, verdict in one.verdicts.items()
        if lax[key].verdicts[passage] != verdict
    }
    # The first reply gives 80; the published decision has a percentage of its own.
    assert changed == {("em", name, "phd-0") for name in ("exact", "normalized", "wikibio_name")}


def test_a_reply_without_a_share_is_decided_by_the_published_decision_alone(
    passages: tuple[Judged, ...], out: Path
) -> None:
    def silent(stage: str, messages: Sequence[BaseMessage]) -> str:
        return say(stage, messages).partition("\nPercentage")[0]

    record(passages[:1], ["em"], Named(script=silent), out, nothing)
    found = by_name(list(judgings(passages, list(read(out, passages)), 90)))
    verdicts = {matcher: one.verdicts["phd-0"] for (_, matcher), one in found.items()}
    undecided = dict.fromkeys(["exact", "wikibio_name", "normalized"], None)
    assert verdicts == {**undecided, "published_em": False}


def test_what_is_undetermined_is_decided_by_no_matcher(
    passages: tuple[Judged, ...], out: Path
) -> None:
    def silent(stage: str, messages: Sequence[BaseMessage]) -> str:
        mute = stage == "access" and "umber 2" in str(messages[-1].content)
        return "" if mute or stage == "verdict" else say(stage, messages)

    record(passages, ["qg", "zero-shot"], Named(script=silent), out, nothing)
    found = by_name(list(judgings(passages, list(read(out, passages)), 90)))
    assert found["zero-shot", None].verdicts == {one.key: None for one in passages}
    for key in found.keys() - {("zero-shot", None)}:
        undecided = [name for name, verdict in found[key].verdicts.items() if verdict is None]
        assert undecided == ["phd-2"], key


def test_a_method_costs_what_its_passages_cost_on_the_mean(
    passages: tuple[Judged, ...], out: Path
) -> None:
    record(passages, EVERY, Named(script=counted), out, nothing)
    held = list(read(out, passages))
    spent = {one.method: one.cost for one in judgings(passages, held, 90)}
    tokens = {method: cost and cost.tokens for method, cost in spent.items()}
    # LM vs LM: questions, testimony, whether there are more, and the verdict.
    calls = {"qg": 2, "em": 2, "zero-shot": 1, "lmvslm": 4, "all-false": 0}
    assert tokens == {method: 35.0 * count for method, count in calls.items()}
    seconds = [line.evaluation.usage.seconds for line in held if line.method == "qg"]
    assert spent["qg"] == Cost(70.0, pytest.approx(sum(seconds) / 5))
    assert min(seconds) > 0


# --- A recording goes on ----------------------------------------------------------------------


def test_what_is_there_is_not_asked_again(passages: tuple[Judged, ...], out: Path) -> None:
    first, second = Named(script=say), Named(script=say)
    told: list[tuple[int, int]] = []
    record(passages[:2], ["zero-shot"], first, out, nothing)
    before = out.read_bytes()
    methods = ["zero-shot", "qg", "zero-shot"]
    record(passages, methods, second, out, lambda done, total: told.append((done, total)))
    assert out.read_bytes().startswith(before)
    assert second.stages.count("verdict") == 3
    assert told == [(done, 10) for done in range(3, 11)]
    assert [(line["method"], line["key"]) for line in lines(out)] == [
        (method, f"phd-{at}") for method in ("zero-shot", "qg") for at in range(5)
    ]
    record(passages, methods, second, out, lambda done, total: pytest.fail("nothing was left"))


def test_a_finding_is_in_the_file_before_the_next_is_asked_for(
    passages: tuple[Judged, ...], out: Path
) -> None:
    def stops(stage: str, messages: Sequence[BaseMessage]) -> str:
        if "Iron" in isolated("passage", messages):
            raise KeyboardInterrupt
        return say(stage, messages)

    with pytest.raises(KeyboardInterrupt):
        record(passages, ["zero-shot"], Named(script=stops), out, nothing)
    assert [line["key"] for line in lines(out)] == ["phd-0", "phd-1", "phd-2"]
    again = Named(script=say)
    record(passages, ["zero-shot"], again, out, nothing)
    assert len(again.stages) == 2


def test_a_last_line_that_was_cut_anywhere_is_found_again(
    passages: tuple[Judged, ...], out: Path
) -> None:
    model = Named(script=say)
    record(passages[:2], ["all-false"], model, out, nothing)
    whole = out.read_bytes()
    first = whole.index(b"\n") + 1
    for at in [*range(9), *range(first, len(whole))]:
        out.write_bytes(whole[:at])
        left = at if at < first else at - first
        assert mend(out) == left
        assert out.read_bytes() == whole[: at - left]
        record(passages[:2], ["all-false"], model, out, nothing)
        assert [line["key"] for line in lines(out)] == ["phd-0", "phd-1"]


def test_a_cut_line_is_told_and_not_left_out(passages: tuple[Judged, ...], out: Path) -> None:
    model = Named(script=say)
    record(passages[:2], ["all-false"], model, out, nothing)
    with out.open("ab") as torn:
        torn.write('{"key": "Ã'.encode()[:-1])
    with pytest.raises(ValueError, match=r"line 3.*demur-bench record cuts it off and goes on"):
        list(read(out, passages))
    record(passages[:3], ["all-false"], model, out, nothing)
    assert [line.key for line in read(out, passages)] == ["phd-0", "phd-1", "phd-2"]


def test_what_was_undetermined_is_judged_again_only_if_asked_for(
    passages: tuple[Judged, ...], out: Path
) -> None:
    def fails(stage: str, messages: Sequence[BaseMessage]) -> str:
        return "Hm." if "Iron" in isolated("passage", messages) else say(stage, messages)

    record(passages, ["zero-shot"], Named(script=fails), out, nothing)
    better = Named(script=say)
    record(passages, ["zero-shot"], better, out, nothing)
    assert better.stages == []
    for _ in range(2):
        record(passages, ["zero-shot"], better, out, nothing, retry=True)
        assert len(better.stages) == 1
    (found,) = judgings(passages, list(read(out, passages)), 90)
    assert found.verdicts == {one.key: one.entity == "Iron" for one in passages}


def test_text_that_is_no_unicode_is_kept_readable(passages: tuple[Judged, ...], out: Path) -> None:
    def broken(stage: str, messages: Sequence[BaseMessage]) -> str:
        return "Red Fox \ud800\u2028." if stage == "access" else say(stage, messages)

    record(passages[:1], ["qg"], Named(script=broken), out, nothing)
    (line,) = read(out, passages)
    assert line.evaluation.details["reply"] == "Red Fox \ufffd\u2028."


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device here is always full")
def test_a_full_disk_says_that_what_is_there_is_kept(
    passages: tuple[Judged, ...], out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(passages[:1], ["all-false"], Named(script=say), out, nothing)
    before, whole = out.read_bytes(), Path.open

    def full(path: Path, mode: str = "r", *options: Any, **more: Any) -> Any:
        return whole(Path("/dev/full") if "a" in mode else path, mode, *options, **more)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(DemurError, match=r"cannot write .*No space left.*what is there is kept"):
        record(passages, ["all-false"], Named(script=say), out, nothing)
    assert out.read_bytes() == before


# --- A recording is of one model, and of the data ---------------------------------------------


def test_another_model_s_recording_is_refused_before_anything_is_asked(
    passages: tuple[Judged, ...], out: Path
) -> None:
    record(passages[:1], ["zero-shot"], Named(script=say), out, nothing)
    before, other = out.read_bytes(), Named(script=say, model_name="two")
    with pytest.raises(ValueError, match=r"line 1: Named one .* was asked, and not Named two"):
        record(passages, ["zero-shot"], other, out, nothing)
    assert (other.stages, out.read_bytes()) == ([], before)


def test_two_models_in_one_file_are_told(passages: tuple[Judged, ...], out: Path) -> None:
    for name in ("one", "two"):
        part = out.with_name(name)
        record(passages[:2], ["all-false"], Named(script=say, model_name=name), part, nothing)
    out.write_bytes(b"".join(out.with_name(name).read_bytes() for name in ("one", "two")))
    with pytest.raises(ValueError, match=r"line 3: Named two .* was asked, and not Named one"):
        list(read(out, passages))


@pytest.mark.parametrize("change", ["text", "entity"])
def test_a_key_that_means_another_passage_now_is_refused(
    passages: tuple[Judged, ...], out: Path, change: str
) -> None:
    record(passages, ["all-false"], Named(script=say), out, nothing)
    one = passages[2]
    changed = Judged(
        one.key,
        one.entity + "!" * (change == "entity"),
        one.text + "!" * (change == "text"),
        one.domain,
        one.factual,
    )
    with pytest.raises(ValueError, match="line 3: phd-2 is another passage than in the data"):
        list(read(out, [changed]))


def test_lines_about_other_passages_are_left_out(passages: tuple[Judged, ...], out: Path) -> None:
    record(passages, ["all-false"], Named(script=say), out, nothing)
    assert [line.key for line in read(out, passages[3:])] == ["phd-3", "phd-4"]


def test_data_with_an_id_twice_is_refused(passages: tuple[Judged, ...], out: Path) -> None:
    with pytest.raises(ValueError, match="an id twice"):
        record([*passages, passages[0]], ["all-false"], Named(script=say), out, nothing)
    assert not out.exists()


# --- Files that cannot be used ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda row: "{", "Invalid JSON"),
        (lambda row: "", "Invalid JSON"),
        (lambda row: "[]", "an object"),
        (lambda row: json.dumps({**row, "method": ["qg"]}), "method: "),
        (lambda row: json.dumps({**row, "evaluation": {}}), "evaluation.name: Field required"),
        (lambda row: json.dumps({"key": "phd-0"}), "passage: Field required"),
    ],
    ids=["cut", "empty", "list", "method", "evaluation", "fields"],
)
def test_a_line_that_is_none_is_told_with_its_number(
    passages: tuple[Judged, ...],
    out: Path,
    change: Callable[[dict[str, Any]], str],
    told: str,
) -> None:
    record(passages[:2], ["all-false"], Named(script=say), out, nothing)
    first, second = lines(out)
    out.write_text(f"{json.dumps(first)}\n{change(second)}\n", encoding="utf-8")
    for use in (
        lambda: list(read(out, passages)),
        lambda: record(passages, ["all-false"], Named(script=say), out, nothing),
    ):
        with pytest.raises(ValueError, match=f"line 2: it is no line of a recording.*{told}"):
            use()


@pytest.mark.parametrize("held", ["Notes of mine", '{"id": 1}\n', "[]", "\n"], ids=range(4))
def test_a_file_of_something_else_is_left_as_it_is(
    passages: tuple[Judged, ...], out: Path, held: str
) -> None:
    out.write_text(held, encoding="utf-8")
    with pytest.raises(ValueError, match="is no recording: name another file"):
        record(passages, ["all-false"], Named(script=say), out, nothing)
    assert out.read_text(encoding="utf-8") == held
    assert not is_recording(out)


def test_files_that_cannot_be_had(passages: tuple[Judged, ...], tmp_path: Path) -> None:
    model = Named(script=say)
    with pytest.raises(ValueError, match=r"cannot read .*none"):
        list(read(tmp_path / "none", passages))
    with pytest.raises(ValueError, match="cannot read"):
        record(passages, ["all-false"], model, tmp_path, nothing)
    with pytest.raises(ValueError, match=r"cannot write .*none"):
        record(passages, ["all-false"], model, tmp_path / "none" / "out.jsonl", nothing)
    assert not is_recording(tmp_path)
    assert mend(tmp_path / "none") == 0


# --- What is drawn ----------------------------------------------------------------------------


def test_what_is_drawn_depends_on_the_texts_alone(passages: tuple[Judged, ...]) -> None:
    everything = drawn(passages, None)
    assert sorted(everything, key=lambda one: one.key) == list(passages)
    for most in range(1, 7):
        assert drawn(passages[::-1], most) == everything[:most]


def test_every_method_judges(passages: tuple[Judged, ...], out: Path) -> None:
    record(passages[:1], EVERY, Named(script=say), out, nothing)
    held = list(read(out, passages))
    assert [line.method for line in held] == EVERY
    assert all(isinstance(line.evaluation, Evaluation) for line in held)
    assert not any(line.evaluation.undetermined for line in held)
    assert is_recording(out)
    assert live.METHODS.keys() == {line.method for line in held}
