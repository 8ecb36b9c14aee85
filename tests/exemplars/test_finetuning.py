from __future__ import annotations

import json
import math
import re
import runpy
import string
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.exemplars import Candidate, Entry, ExampleStore, Exported, export_finetuning
from demur.exemplars.finetuning import in_test
from support.fakes import ScriptedModel
from support.vectors import Told

FORMS: list[Literal["NFC", "NFD", "NFKC", "NFKD"]] = ["NFC", "NFD", "NFKC", "NFKD"]
DOC = Path(__file__).parents[2] / "docs" / "fine-tuning.md"


def candidate(answer: str, score: float, scorer: str = "s") -> Candidate:
    return Candidate(answer, score, scorer, "2026-11-21T00:00:00+00:00")


def entry(question: str, *scored: tuple[str, float]) -> Entry:
    return Entry(question, tuple(candidate(*one) for one in scored))


def entries(count: int) -> list[Entry]:
    return [entry(f"question {n}?", (f"answer {n}", n / 8), ("other", -1.0)) for n in range(count)]


def read(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().decode().split("\n") if line]


def both(folder: Path) -> list[Any]:
    return [*read(folder / "train.jsonl"), *read(folder / "test.jsonl")]


# --- The split ------------------------------------------------------------------------------------


def test_shares_are_exact_in_expectation() -> None:
    for share in (0.05, 0.2, 0.9):
        found = sum(in_test(f"What is number {n}?", share) for n in range(2000))
        assert abs(found - 2000 * share) < 5 * math.sqrt(2000 * share * (1 - share))


@given(st.text(), st.floats(0.001, 0.999), st.floats(0.001, 0.999))
def test_what_is_for_the_test_is_so_with_every_larger_share(
    question: str, one: float, other: float
) -> None:
    small, large = sorted((one, other))
    assert in_test(question, large) >= in_test(question, small)


# The dotless i is left out, because its capital is that of the dotted i.
letters = st.text(st.characters(max_codepoint=0x17F, exclude_characters="\u0131"), min_size=1)


@given(letters, st.sampled_from([str.casefold, str.swapcase, str.title]), st.sampled_from(FORMS))
def test_variants_of_a_question_fall_on_one_side(
    question: str, cased: Callable[[str], str], form: Literal["NFC", "NFD", "NFKC", "NFKD"]
) -> None:
    variant = f"\t{unicodedata.normalize(form, cased(question))} \n"
    # Many thresholds are tried, because two different hashes may agree on a single one.
    for at in range(1, 21):
        assert in_test(question, at / 21) is in_test(variant, at / 21)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("“What” is  it…", '"what" is it...', True),
        ("STRASSE", "stra\u00dfe", True),
        ("\uff57\uff48\uff4f", "Who", True),
        ("Who is it?", "What is it?", False),
        ("3.5", "35", False),
        ("a b", "ab", False),
    ],
)
def test_variants_by_example(one: str, other: str, same: bool) -> None:
    assert all(in_test(one, at / 97) is in_test(other, at / 97) for at in range(1, 97)) is same


def test_a_side_stays_from_version_to_version() -> None:
    assert [n for n in range(20) if in_test(f"question {n}?")] == [1, 11, 13, 18, 19]
    assert [n for n in range(20) if in_test("?" * (n + 1), 0.5)] == [3, 5, 6, 8, 9, 12, 13, 16, 19]


def test_a_side_depends_on_no_other_question(tmp_path: Path) -> None:
    pool = entries(60)
    export_finetuning(pool, tmp_path / "all")
    export_finetuning(reversed(pool[::2]), tmp_path / "some")
    for side in ("train.jsonl", "test.jsonl"):
        some = {str(row) for row in read(tmp_path / "some" / side)}
        assert some
        assert some <= {str(row) for row in read(tmp_path / "all" / side)}
    expected = {one.question for one in pool if in_test(one.question)}
    found = {row["prompt"][0]["content"] for row in read(tmp_path / "all" / "test.jsonl")}
    assert found == expected


# --- The files ------------------------------------------------------------------------------------


def test_the_best_answer_is_written_in_each_form(tmp_path: Path) -> None:
    pool = entries(20)
    export_finetuning(pool, tmp_path)
    first = {"role": "user", "content": "question 0?"}
    said = {"role": "assistant", "content": "answer 0"}
    assert {"prompt": [first], "completion": [said]} in both(tmp_path)
    export_finetuning(pool, tmp_path, form="messages", system="Be brief.")
    briefed = [{"role": "system", "content": "Be brief."}, first]
    assert {"messages": [*briefed, said]} in both(tmp_path)
    export_finetuning(pool, tmp_path, system="Be brief.")
    assert {"prompt": briefed, "completion": [said]} in both(tmp_path)
    export_finetuning(pool, tmp_path, form="text-prompt-completion")
    plain = {"prompt": "Question: question 0?\nAnswer:", "completion": " answer 0"}
    assert plain in both(tmp_path)
    export_finetuning(pool, tmp_path, form="text-prompt-completion", system="Be brief.")
    assert {**plain, "prompt": "Be brief.\n\n" + plain["prompt"]} in both(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["test.jsonl", "train.jsonl"]


# --- The figures ----------------------------------------------------------------------------------


def test_what_was_kept_and_what_not(tmp_path: Path) -> None:
    kept = [
        entry("question 0?", ("four", 0.5), ("x", 0.25)),
        entry("question 1?", ("sixsix", 1.0)),
        entry("question 2?", ("four", 0.25), ("y", 0.25), ("z", -9.0)),
        entry("question 5?", ("four", 2.0), ("y", -1.0)),
    ]
    stale = Entry("question 3?", (), (candidate("a", 9.0, "another"),))
    assert {in_test(one.question) for one in kept} == {True, False}
    exported = export_finetuning(
        [stale, *kept, entry("question 4?", ("low", 0.2), ("lower", 0.1))], tmp_path, min_score=0.25
    )
    sides = [in_test(one.question) for one in kept]
    assert exported == Exported(
        train=sides.count(False),
        test=sides.count(True),
        unscored=1,
        below=1,
        single=1,
        tied=1,
        lowest=0.25,
        mean=0.9375,
        highest=2.0,
        margin=pytest.approx((0.25 + 0 + 3) / 3),
        longest=6,
    )
    assert len(both(tmp_path)) == 4


# --- Refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"form": "text"}, "form: expected one of prompt-completion, messages, text-prompt-comple"),
        ({"test_share": 0}, "test_share: expected a number between 0 and 1.* got 0"),
        ({"test_share": 1.0}, "test_share: expected .* got 1.0"),
        ({"min_score": math.nan}, "min_score: expected a finite number or None, got nan"),
        ({"system": " \n"}, "system: expected a text or None"),
    ],
)
def test_arguments_are_refused_by_name(options: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=told):
        export_finetuning(entries(20), tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (entry(" \n", ("a", 1.0)), "expected a question"),
        (entry("q", ("a", 1.0), ("b", 2.0)), r"'q' best first, got the scores \[1.0, 2.0\]"),
        (Entry("q", (candidate("a", 1.0, "t"),)), "scores of one scorer, got s and, for 'q', t"),
    ],
)
def test_entries_without_meaning_are_refused(bad: Entry, told: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=told):
        export_finetuning([*entries(20), bad], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_export_or_an_empty_side_is_told_with_the_remedy(tmp_path: Path) -> None:
    stale = Entry("q", (), (candidate("a", 1.0, "another"),))
    told = "got 1 without a score .*rescore.*, 20 below min_score=99"
    with pytest.raises(ValueError, match=told):
        export_finetuning([stale, *entries(20)], tmp_path, min_score=99)
    for side, change in ((True, "train.jsonl .* smaller"), (False, "test.jsonl .* larger")):
        pool = [one for one in entries(40) if in_test(one.question) is side]
        with pytest.raises(ValueError, match=rf"{change} share, or more questions"):
            export_finetuning(pool, tmp_path)
    assert list(tmp_path.iterdir()) == []


# --- The recipe -----------------------------------------------------------------------------------

CHAT = (
    "{% for message in messages %}<{{ message['role'] }}>{{ message['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
"""A template that puts no marks around answers, like most templates."""


def tiny_model(folder: Path) -> str:
    """Save a causal model of two layers with random weights, and a tokenizer of single bytes."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    signs = ["<pad>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE({sign: at for at, sign in enumerate(signs)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="</s>",
        chat_template=CHAT,
    ).save_pretrained(folder)
    torch.manual_seed(7)
    config = LlamaConfig(
        vocab_size=len(signs),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=1024,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=1,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return str(folder)


OURS = {
    '"Qwen/Qwen2.5-0.5B-Instruct"': "tiny",
    '"openai:gpt-4o"': "judge",
    "num_train_epochs=10": "max_steps=2",
    "max_new_tokens=256": "max_new_tokens=2",
}
"""The test's replacements for names on the page."""


def recipe() -> list[str]:
    """Return the blocks of the page's code."""
    text = DOC.read_text(encoding="utf-8")
    for theirs, ours in OURS.items():
        assert text.count(theirs) == 1, f"the page has {theirs} {text.count(theirs)} times"
        text = text.replace(theirs, ours)
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


QUESTIONS = [f"What is {letter} in \u6771\u4eac?" for letter in string.ascii_lowercase[:13]]


def stored() -> ExampleStore:
    store = ExampleStore(embedding=Told())
    answers = ["Wrong {a}.", "It is {a}:\nright."]
    store.add_many([(f"{n} 1 | {one}", answers, [0.1, 0.9]) for n, one in enumerate(QUESTIONS)])
    return store


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Let torch compute in one thread: several wait for each other on a busy machine."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.documentation
@pytest.mark.usefixtures("one_thread")
def test_the_page_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from safetensors.torch import load_file

    monkeypatch.chdir(tmp_path)
    judge = ScriptedModel(script=lambda stage, messages: "A")
    Path("page.py").write_text("\n\n".join(recipe()), encoding="utf-8")
    tiny = tiny_model(tmp_path / "tiny")
    page = runpy.run_path("page.py", init_globals={"store": stored(), "tiny": tiny, "judge": judge})
    exported, trainer, verdicts = page["exported"], page["trainer"], page["verdicts"]
    assert exported.train + exported.test == len(QUESTIONS)
    for said in counted(trainer):
        assert said == "It is {a}:\nright.</s>"
    told = {key: one[key] for one in trainer.state.log_history for key in one if "loss" in key}
    assert told.keys() >= {"train_loss", "eval_loss"}
    assert all(map(math.isfinite, told.values()))
    before, after = (load_file(Path(one) / "model.safetensors") for one in (tiny, "tuned"))
    assert before.keys() == after.keys()
    assert any(not before[key].equal(after[key]) for key in before)
    # A judge that always says A shows only the effect of the order, so it decides nothing.
    assert len(page["prompts"]) == len(verdicts) == exported.test
    assert {one.reason for one in verdicts} <= {"inconsistent", "undetermined", "same"}


def counted(trainer: Any) -> list[str]:
    """Return the text of each row that the loss counts: it has nothing of the question."""
    read_back = trainer.processing_class.decode
    return [
        read_back([label for label in row["labels"] if label != -100])
        for row in trainer.train_dataset
    ]


@pytest.mark.documentation
@pytest.mark.usefixtures("one_thread")
def test_the_trainer_takes_texts_without_a_chat_template(tmp_path: Path) -> None:
    from trl import SFTConfig, SFTTrainer

    from datasets import Dataset

    pool = [entry(f"When was {n}?", (f"1969-07-{n:02}", 1.0)) for n in range(1, 31)]
    export_finetuning(pool, tmp_path, form="text-prompt-completion")
    settings = SFTConfig(str(tmp_path / "out"), completion_only_loss=True, bf16=False)
    trainer = SFTTrainer(
        tiny_model(tmp_path / "tiny"),
        settings,
        train_dataset=Dataset.from_list(read(tmp_path / "train.jsonl")),
    )
    assert all(re.fullmatch(r" 1969-07-\d\d</s>", said) for said in counted(trainer))
