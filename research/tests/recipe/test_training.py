"""Test the training at toy size: the loss falls, and the files say what PyTorch says."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from statistics import fmean

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from demur.local import ADAPTED, SmallJudge
from demur.runtime.prompting import as_shown
from demur_research.commands import run
from demur_research.recipe import adapter, encoder, exporting
from demur_research.recipe.drawing import Item
from demur_research.recipe.prompting import WORDS, label_tokens, messages, prompt_tokens
from demur_research.recipe.rows import LABELS, TrainingRow, read_rows, write_rows
from demur_research.recipe.sharing import alike, joined
from demur_research.recipe.training import Schedule, loss, train, train_judge

USAGE = 64
ENDLESS = 1e9
"""A budget that no test spends, however slow the machine is."""


@pytest.fixture(scope="session")
def few(rows: list[TrainingRow]) -> list[TrainingRow]:
    """Return so few rows that a tiny model learns them by heart."""
    return rows[::8][:10]


@pytest.fixture(scope="session")
def adapted(language_model: Path, few: list[TrainingRow]) -> tuple[adapter.Judge, list[float]]:
    """Return a language model with a trained adapter, and the losses of the training."""
    judge = adapter.load(language_model)
    schedule = Schedule(seconds=ENDLESS, rate=5e-3, passes=30, batch_tokens=8192)
    return judge, [*train_judge(judge, few, schedule).losses]


@pytest.fixture(scope="session")
def encoded(encoder_folder: Path, few: list[TrainingRow]) -> tuple[encoder.PairJudge, list[float]]:
    """Return a trained encoder with a cut vocabulary, and the losses of the training."""
    judge = encoder.cut_vocabulary(encoder.load(encoder_folder), few, 150)
    schedule = Schedule(seconds=ENDLESS, rate=3e-3, passes=60, batch_tokens=4096)
    return judge, [*train_judge(judge, few, schedule).losses]


def assert_fell(losses: list[float]) -> None:
    fifth = len(losses) // 5
    assert fmean(losses[-fifth:]) < 0.6 * fmean(losses[:fifth]), losses


# -- the loop --------------------------------------------------------------------------------------


def test_the_budget_ends_the_training_and_the_rate_follows_it(few: list[TrainingRow]) -> None:
    weight = torch.zeros(3, requires_grad=True)
    seconds = itertools.count(step=2.0)  # each look at the clock is two seconds later
    schedule = Schedule(
        seconds=100, rate=0.1, passes=1000, batch_tokens=1, clock=lambda: next(seconds)
    )
    told: list[float] = []
    done = train(
        few,
        lambda row: Item([1], row.label),
        lambda batch: weight.expand(len(batch), 3),
        [weight],
        schedule,
        0,
        lambda steps, share, loss: told.append(share),
    )
    assert len(done.losses) == 49
    assert done.rows == 49
    assert told == sorted(told)
    assert told[-1] == pytest.approx(0.98)
    rates = [schedule.rate_at(share) for share in told]
    assert rates.index(max(rates)) < 4
    assert rates[-1] < 0.1 * max(rates)


def test_rows_that_are_too_long_are_counted_and_none_is_an_error(few: list[TrainingRow]) -> None:
    weight = torch.zeros(3, requires_grad=True)

    def fits(row: TrainingRow) -> Item | None:
        return Item([1], row.label) if row.claim == few[0].claim else None

    arguments = (lambda batch: weight.expand(len(batch), 3), [weight], Schedule(ENDLESS, 0.1), 0)
    done = train(few, fits, *arguments)
    assert (done.rows, done.left_out) == (1, len(few) - 1)
    with pytest.raises(ValueError, match="too long"):
        train(few[1:], fits, *arguments)


@given(
    st.lists(st.tuples(*[st.floats(-5, 5)] * 3, st.sampled_from(LABELS)), min_size=1, max_size=5)
)
def test_the_loss_is_that_of_the_probability_of_the_label(
    rows: list[tuple[float, float, float, str]],
) -> None:
    logits = torch.tensor([row[:3] for row in rows], dtype=torch.float64)
    shares = torch.softmax(logits, -1).numpy()
    expected = fmean(
        -np.log(1 - share[0] if row[3] == "unsupported" else share[LABELS.index(row[3])])
        for row, share in zip(rows, shares, strict=True)
    )
    assert float(loss(logits, [row[3] for row in rows])) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("name", ["seconds", "rate", "passes", "batch_tokens"])
def test_a_schedule_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        Schedule(**{"seconds": 1, "rate": 1, name: 0})


# -- the adapter -----------------------------------------------------------------------------------


def test_what_requests_have_in_common_is_read_once_and_changes_no_logit(
    adapted: tuple[adapter.Judge, list[float]], rows: list[TrainingRow]
) -> None:
    judge, _ = adapted
    about_one = [row for row in rows if row.passages == rows[0].passages]
    items = [judge.encoded(row) for row in (*rows[-2:], *about_one[::-1], rows[-2])]
    batch = [item for item in items if item is not None]
    assert len(batch) == len(items)
    groups = alike(batch)
    assert sorted(at for group in groups for at in group) == [*range(len(batch))]
    assert max(map(len, groups)) == len(about_one) > 2
    read = sum(joined([batch[at] for at in group]).tokens.numel() for group in groups)
    assert read < 0.8 * sum(len(item.tokens) for item in batch)
    with torch.no_grad():
        together = judge.logits(batch)
        alone = torch.cat([judge.logits([item]) for item in batch])
    assert torch.allclose(together, alone, atol=1e-4)


def test_the_adapter_is_trained_with_the_prompt_that_demur_asks_with(
    adapted: tuple[adapter.Judge, list[float]], rows: list[TrainingRow]
) -> None:
    tokenizer = adapted[0].tokenizer
    for row in (rows[0], TrainingRow("A text. <|im_end|>", "In 1912.", "neutral", "x", "When?")):
        system, user = ADAPTED.messages(reference=row.passages, claim=row.shown)
        assert messages(row) == [
            {"role": "system", "content": system.content},
            {"role": "user", "content": user.content},
        ]
        text = tokenizer.decode(prompt_tokens(tokenizer, row))
        assert text == (
            f"<|im_start|>system\n{system.content}<|im_end|>\n"
            f"<|im_start|>user\n{user.content}<|im_end|>\n<|im_start|>assistant\n"
        )


def test_a_label_is_its_first_token_and_labels_that_begin_alike_are_refused(
    adapted: tuple[adapter.Judge, list[float]],
) -> None:
    tokenizer = adapted[0].tokenizer
    begun = [tokenizer.decode([token]) for token in label_tokens(tokenizer)]
    for word, start in zip(("Entailment", "Contradiction", "Neutral"), begun, strict=True):
        assert start
        assert word.startswith(start)
    with pytest.raises(ValueError, match="same token"):
        label_tokens(lambda text, add_special_tokens: {"input_ids": [7, len(text)]})


def test_the_loss_of_the_adapter_falls(adapted: tuple[adapter.Judge, list[float]]) -> None:
    assert_fell(adapted[1])


def test_llama_cpp_says_with_the_adapter_what_pytorch_says(
    adapted: tuple[adapter.Judge, list[float]],
    language_model: Path,
    rows: list[TrainingRow],
    tmp_path: Path,
) -> None:
    judge, _ = adapted
    adapter.save(judge, tmp_path / "judge.gguf")
    assert exporting.check_adapter(language_model, tmp_path / "judge.gguf", judge, rows[:6]) < 0.01
    new = adapter.load(language_model)
    adapter.save(new, tmp_path / "new.gguf")
    with pytest.raises(ValueError, match="differs from PyTorch"):
        exporting.check_adapter(language_model, tmp_path / "new.gguf", judge, rows[:6])


def test_a_saved_adapter_is_loaded_as_it_was(
    adapted: tuple[adapter.Judge, list[float]],
    language_model: Path,
    rows: list[TrainingRow],
    tmp_path: Path,
) -> None:
    judge, _ = adapted
    path = tmp_path / "judge.gguf"
    adapter.save(judge, path)
    again = adapter.load(language_model, path)
    for one, other in zip(judge.parameters, again.parameters, strict=True):
        assert torch.equal(one.half(), other.half())
    read = adapter.read(path)
    assert len(read) == len(judge.parameters) == 2 * 2 * 7  # layers, matrices, linear layers
    assert read["blk.0.attn_q.weight.lora_a"].shape == (adapter.RANK, 64)
    expected, found = (exporting.torch_probabilities(one, rows[:6]) for one in (judge, again))
    assert np.abs(expected - found).max() < 0.01


def test_files_of_another_kind_are_refused(
    adapted: tuple[adapter.Judge, list[float]], language_model: Path, tmp_path: Path
) -> None:
    adapter.save(adapted[0], tmp_path / "judge.gguf")
    (tmp_path / "text.gguf").write_text("no GGUF")
    with pytest.raises(ValueError, match="got the adapter of qwen2"):
        adapter.load(tmp_path / "judge.gguf")
    with pytest.raises(ValueError, match="no LoRA adapter"):
        adapter.load(language_model, language_model)
    for name in ("text.gguf", "none.gguf"):
        with pytest.raises(ValueError, match="no GGUF file"):
            adapter.load(tmp_path / name)


# -- the encoder -----------------------------------------------------------------------------------


def test_the_encoder_reads_what_the_small_judge_reads(
    encoded: tuple[encoder.PairJudge, list[float]],
) -> None:
    judge, _ = encoded
    row = TrainingRow(" A <s> text\x00 of Brevik. ", "In 1912.", "neutral", "x", "When?")
    item = judge.encoded(row)
    assert item is not None
    claim, passages = (
        judge.tokenizer.encode(as_shown(text).strip(), add_special_tokens=False).ids
        for text in (row.shown, row.passages)
    )
    assert [*item.tokens] == [0, *claim, 2, *passages, 2]
    assert item.claim == len(claim) + 2
    inputs = judge.inputs([item])
    assert inputs["token_type_ids"][0].tolist() == [0] * item.claim + [1] * (len(passages) + 1)


def test_a_cut_vocabulary_changes_no_text_of_its_pieces(
    encoder_folder: Path, rows: list[TrainingRow]
) -> None:
    whole = encoder.load(encoder_folder)
    pieces = whole.tokenizer.get_vocab_size()
    tokens = {row: whole.tokenizer.encode(row.passages + row.shown).tokens for row in rows}
    expected = exporting.torch_probabilities(whole, rows)
    cut = encoder.cut_vocabulary(whole, rows, 10)
    known = cut.tokenizer.get_vocab()
    assert 10 < len(known) < pieces
    assert [cut.tokenizer.id_to_token(at) for at in range(4)] == ["<s>", "<pad>", "</s>", "<unk>"]
    assert "<mask>" not in known
    whole_texts = [row for row in rows if known.keys() >= set(tokens[row])]
    assert len(whole_texts) > 10
    found = exporting.torch_probabilities(cut, rows)
    for at, row in enumerate(rows):
        if row in whole_texts:
            assert cut.tokenizer.encode(row.passages + row.shown).tokens == tokens[row]
            assert found[at] == pytest.approx(expected[at], abs=1e-6)


def test_the_loss_of_the_encoder_falls(encoded: tuple[encoder.PairJudge, list[float]]) -> None:
    assert_fell(encoded[1])


def test_a_saved_encoder_is_loaded_as_it_was(
    encoded: tuple[encoder.PairJudge, list[float]], few: list[TrainingRow], tmp_path: Path
) -> None:
    judge, _ = encoded
    encoder.save(judge, tmp_path / "encoder")
    again = encoder.load(tmp_path / "encoder", seed=5)
    expected = exporting.torch_probabilities(judge, few)
    assert exporting.torch_probabilities(again, few) == pytest.approx(expected, abs=1e-6)


def test_the_onnx_file_says_what_pytorch_says_and_the_small_judge_reads_it(
    encoded: tuple[encoder.PairJudge, list[float]],
    few: list[TrainingRow],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judge, _ = encoded
    assert exporting.export_encoder(judge, few, tmp_path) < exporting.ROUNDED
    files = tmp_path / exporting.TOKENIZER, tmp_path / exporting.ENCODER
    monkeypatch.setattr("demur.local.small_judge._files", lambda: files)
    monkeypatch.setattr("demur_judge.TEMPERATURE", 1.0)  # they are fitted to demur's own judge
    monkeypatch.setattr("demur_judge.SHIFT", 0.0)
    judged = SmallJudge().predict([(row.passages, row.shown) for row in few])
    expected = exporting.onnx_probabilities(tmp_path / exporting.ENCODER, judge, few)
    for found, shares in zip(judged, expected, strict=True):
        assert isinstance(found, dict)
        assert [found[word] for word in WORDS] == pytest.approx(shares, abs=1e-4)
    tokenizer = Tokenizer.from_file(str(tmp_path / exporting.TOKENIZER))
    assert tokenizer.get_vocab() == judge.tokenizer.get_vocab()
    session = onnxruntime.InferenceSession(str(tmp_path / exporting.ENCODER))
    assert [one.name for one in session.get_inputs()] == [
        "input_ids",
        "attention_mask",
        "token_type_ids",
    ]
    weights = [
        onnx.numpy_helper.to_array(one)
        for one in onnx.load(tmp_path / exporting.ENCODER).graph.initializer
        if one.data_type == onnx.TensorProto.INT8 and len(one.dims) > 1
    ]
    assert len(weights) > 2 * 6  # the linear maps of each layer
    # With the eighth bit, sums would saturate on some CPUs.
    assert max(np.abs(one.astype(int)).max() for one in weights) <= 64
    for length in (8, 512):
        ids = np.full((1, length), 5, np.int64)
        types = np.ones_like(ids)
        types[0, :4] = 0
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": types}
        assert session.run(None, feed)[0].shape == (1, 3)


def test_a_folder_without_such_an_encoder_is_refused(encoder_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no encoder"):
        encoder.load(tmp_path)
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((encoder_folder / name).read_bytes())
    described = (encoder_folder / "tokenizer.json").read_text().replace("<pad>", "<filler>")
    (tmp_path / "tokenizer.json").write_text(described)
    with pytest.raises(ValueError, match="special tokens"):
        encoder.load(tmp_path)


# -- the command -----------------------------------------------------------------------------------


def test_the_commands_go_from_own_lines_to_both_files(
    language_model: Path,
    encoder_folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    own, made, apart = (tmp_path / f"{name}.jsonl" for name in ("own", "rows", "apart"))
    line = {"passages": "The mill is old.", "claim": "The mill is by the sea.", "label": "neutral"}
    own.write_text(json.dumps(line))
    apart.write_text(
        json.dumps({"passages": "-", "claim": "The mill is by the sea.", "supported": False})
    )
    told = ["--worlds", "6", "--own", str(own), "--apart", str(apart)]
    assert run(["train", "rows", "-o", str(made), *told]) == 0
    assert "dropped: the claim is evaluated\t-\t1" in capsys.readouterr().out
    short = [row for row in read_rows(made) if len(row.passages) < 150]
    write_rows(made, short)
    for name, base, file in (
        ("adapter", language_model, "judge.gguf"),
        ("encoder", encoder_folder, "encoder"),
    ):
        to = tmp_path / file
        arguments = [str(made), "--base", str(base), "-o", str(to), "--seconds", "1"]
        assert run(["train", name, *arguments]) == 0, capsys.readouterr().err
        out = capsys.readouterr().out
        assert "differs from PyTorch by 0.0" in out
        assert run(["train", name, *arguments]) == USAGE
        assert "exists already" in capsys.readouterr().err
    assert (tmp_path / "encoder" / exporting.ENCODER).is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--source", "snli"], "name the folder of checkouts"),
        (["--source", "none"], "expected one of"),
        (["--checkouts", "."], "git clone"),
        (["--worlds", "0"], "nothing to make rows from"),
        (["--own", "none.jsonl"], "none.jsonl"),
    ],
)
def test_a_mistake_is_told_before_anything_is_written(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["train", "rows", "-o", "rows.jsonl", *arguments]) == USAGE
    assert said in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())
