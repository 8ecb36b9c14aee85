"""Train a small cross-encoder, which reads a claim and passages together.

The base is a multilingual encoder whose vocabulary is cut to the pieces that the rows use, since
most of its weights are the vectors of pieces.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import BertModel

from demur_research.recipe.drawing import Item
from demur_research.recipe.prompting import pair_texts
from demur_research.recipe.rows import TrainingRow
from demur_research.recipe.training import Schedule, device, filled_up

BEGIN, PADDING, SEPARATOR, UNKNOWN = 0, 1, 2, 3
"""The tokens of the base that are no text. demur's small judge counts on these numbers."""
MOST_OF_CLAIM, MOST_TOKENS = 120, 512
"""The most tokens of a claim, and of a claim with its passages, as demur's small judge reads them.
Longer rows are not trained on: in a part of the passages, the label may not hold."""
SCHEDULE = Schedule(
    seconds=1800,
    rate=2e-4,
    passes=8,
    batch_tokens=8192,
    smoothing=0.05,
    weight_decay=0.01,
)
_HEAD = "head.safetensors"


class Encoder(torch.nn.Module):  # type: ignore[misc]  # torch is skipped by mypy
    """Give the logits of support, contradict and neutral for claims and passages."""

    def __init__(self, bert: Any) -> None:
        super().__init__()
        size = bert.config.hidden_size
        self.bert = bert
        self.head = torch.nn.Sequential(
            torch.nn.Linear(2 * size, size),
            torch.nn.GELU(),
            torch.nn.Dropout(0.1),
            torch.nn.Linear(size, 3),
        )

    def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
        """Return the logits of a batch, of shape (pairs, 3).

        All arguments have the shape (pairs, tokens). The type of a token is 0 in the claim's part
        and 1 in the passages' part.
        """
        states = self.bert(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state
        # The first token, and the mean over the claim, whose tokens have looked for themselves in
        # the passages.
        of_claim = (attention_mask * (1 - token_type_ids)).unsqueeze(-1).to(states.dtype)
        mean = (states * of_claim).sum(dim=1) / of_claim.sum(dim=1)
        return self.head(torch.cat([states[:, 0], mean], dim=-1))


@dataclass(frozen=True)
class PairJudge:
    """Hold an encoder and its tokenizer."""

    net: Encoder
    tokenizer: Tokenizer

    @property
    def parameters(self) -> list[Any]:
        """Return the tensors that are trained: all but the vectors of pieces.

        The rows use only some pieces often, and the others would be left behind.
        """
        return [one for one in self.net.parameters() if one.requires_grad]

    def encoded(self, row: TrainingRow) -> Item | None:
        """Return the tokens of a row, or None if it has too many tokens."""
        claim, passages = (
            encoding.ids
            for encoding in self.tokenizer.encode_batch(
                [*pair_texts(row)], add_special_tokens=False
            )
        )
        tokens = [BEGIN, *claim, SEPARATOR, *passages, SEPARATOR]
        if len(claim) > MOST_OF_CLAIM or len(tokens) > MOST_TOKENS:
            return None
        return Item(tokens, row.label, claim=len(claim) + 2)

    def inputs(self, batch: Sequence[Item]) -> dict[str, Any]:
        """Return the inputs of the encoder for a batch."""
        tokens, mask = filled_up(batch, PADDING, next(self.net.parameters()).device)
        types = torch.ones_like(tokens)
        for at, item in enumerate(batch):
            types[at, : item.claim] = 0
        return {"input_ids": tokens, "attention_mask": mask, "token_type_ids": types}

    def logits(self, batch: Sequence[Item]) -> Any:
        """Return the logits of the three labels for each item, of shape (items, 3)."""
        inputs = self.inputs(batch)
        kind = inputs["input_ids"].device.type
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=kind == "cuda"):
            return self.net(**inputs)


def load(folder: Path, seed: int = 0) -> PairJudge:
    """Return the encoder in a folder: a base of the kind of BERT, or what `save` wrote.

    Args:
        folder: A folder with config.json, model.safetensors and tokenizer.json.
        seed: The seed of the weights of a new head.

    Raises:
        ValueError: A file is missing, cannot be read, or has other special tokens.
    """
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        bert = BertModel.from_pretrained(folder, add_pooling_layer=False, local_files_only=True)
    except Exception as error:  # the libraries raise plain exceptions
        raise ValueError(f"{folder} holds no encoder that can be read: {error}") from error
    special = {"<s>": BEGIN, "<pad>": PADDING, "</s>": SEPARATOR, "<unk>": UNKNOWN}
    found = {token: tokenizer.token_to_id(token) for token in special}
    if found != special:
        raise ValueError(f"{folder}: expected the special tokens {special}, got {found}")
    tokenizer.no_truncation()
    tokenizer.no_padding()
    bert.embeddings.word_embeddings.weight.requires_grad_(False)
    torch.manual_seed(seed)
    net = Encoder(bert)
    if (folder / _HEAD).exists():
        net.head.load_state_dict(load_file(folder / _HEAD))
    return PairJudge(net.to(device()).eval(), tokenizer)


def save(judge: PairJudge, folder: Path) -> None:
    """Write an encoder to a folder, from which `load` reads it again.

    Raises:
        ValueError: The folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        judge.net.bert.save_pretrained(folder)
        judge.tokenizer.save(str(folder / "tokenizer.json"))
        save_file(
            {name: tensor.contiguous() for name, tensor in judge.net.head.state_dict().items()},
            folder / _HEAD,
        )
    except OSError as error:
        raise ValueError(f"cannot write {folder}: {error.strerror or error}") from error


def cut_vocabulary(judge: PairJudge, rows: Iterable[TrainingRow], pieces: int) -> PairJudge:
    """Return an encoder that knows only some pieces, and reads texts of those as before.

    Kept are the special tokens, single characters, the pieces that the rows use at least twice,
    and then the most likely others up to the number.

    Args:
        judge: An encoder whose tokenizer is a unigram model, as of XLM-RoBERTa and its kin.
        rows: The rows that it will be trained on.
        pieces: The number of pieces to keep. More are kept if the first three kinds have more.

    Raises:
        ValueError: The tokenizer is of another kind.
    """
    described = json.loads(judge.tokenizer.to_str())
    if described["model"]["type"] != "Unigram":
        raise ValueError(f"expected a unigram tokenizer, got {described['model']['type']}")
    vocabulary = described["model"]["vocab"]
    texts = list(dict.fromkeys(chain.from_iterable(map(pair_texts, rows))))
    counts: Counter[int] = Counter()
    for encoding in judge.tokenizer.encode_batch(texts, add_special_tokens=False):
        counts.update(encoding.ids)
    characters = (at for at, (piece, _) in enumerate(vocabulary) if len(piece.strip("▁")) <= 1)
    used = (at for at, count in counts.items() if count >= 2)
    kept = {BEGIN, PADDING, SEPARATOR, UNKNOWN, *characters, *used} & {*range(len(vocabulary))}
    likely = sorted(range(len(vocabulary)), key=lambda at: vocabulary[at][1], reverse=True)
    kept.update(islice((at for at in likely if at not in kept), max(0, pieces - len(kept))))
    places = sorted(kept)
    described["model"]["vocab"] = [vocabulary[at] for at in places]
    # demur puts the special tokens around texts itself, and a mask is not needed.
    described["added_tokens"] = [one for one in described["added_tokens"] if one["id"] <= UNKNOWN]
    described["post_processor"] = None
    tokenizer = Tokenizer.from_str(json.dumps(described, ensure_ascii=False))
    bert = judge.net.bert
    vectors = bert.embeddings.word_embeddings.weight.detach()[places]
    bert.resize_token_embeddings(len(places))
    bert.embeddings.word_embeddings.weight.data = vectors.clone()
    bert.embeddings.word_embeddings.weight.requires_grad_(False)
    return PairJudge(judge.net, tokenizer)
