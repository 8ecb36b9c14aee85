"""Train until a budget of seconds is spent. The adapter and the encoder share this loop.

This module and those that train and export need the extra `train`.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from demur_research.recipe.drawing import SORTED, Item, batches, drawn
from demur_research.recipe.rows import LABELS, TrainingRow


@dataclass(frozen=True)
class Schedule:
    """Say how long to train, and how fast.

    Raises:
        ValueError: A number is not above 0.
    """

    seconds: float
    """The budget. The last step begins before it is spent."""
    rate: float
    """The highest learning rate. It rises to it in the first 4 % and falls along a cosine."""
    passes: int = 1
    """The most passes over all rows. Training ends before the budget is spent if they are done."""
    batch_tokens: int = 16_384
    """The most tokens of a batch."""
    smoothing: float = 0.0
    """How far labels are smoothed, from 0 to 1."""
    weight_decay: float = 0.0
    clock: Callable[[], float] = time.monotonic
    """The clock by which seconds are counted."""

    def __post_init__(self) -> None:
        for name in ("seconds", "rate", "passes", "batch_tokens"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")

    def rate_at(self, done: float) -> float:
        """Return the learning rate when this share of the training is done, from 0 to 1."""
        warm = min(1.0, done / 0.04 + 0.02)
        return self.rate * warm * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * min(1.0, done))))


@dataclass(frozen=True)
class Trained:
    """Tell how a training went."""

    losses: tuple[float, ...]
    """The mean loss of each step's batch."""
    rows: int
    """The number of rows that were shown."""
    left_out: int
    """The number of rows, among those drawn, that were too long to be shown."""
    seconds: float


class Learner(Protocol):
    """Describe a judge that can be trained: the adapter's, or the encoder's."""

    @property
    def net(self) -> Any:
        """Return the network, a module of PyTorch."""

    @property
    def parameters(self) -> Sequence[Any]:
        """Return the tensors that are trained."""

    def encoded(self, row: TrainingRow, /) -> Item | None:
        """Return the tokens of a row, or None if it is too long."""

    def logits(self, batch: Sequence[Item], /) -> Any:
        """Return the logits of the three labels for each item, of shape (items, 3)."""


def train_judge(
    judge: Learner,
    rows: Sequence[TrainingRow],
    schedule: Schedule,
    seed: int = 0,
    report: Callable[[int, float, float], None] = lambda *_: None,
) -> Trained:
    """Train a judge in place. The other arguments, and the errors, are those of `train`."""
    torch.manual_seed(seed)
    judge.net.train()
    done = train(rows, judge.encoded, judge.logits, judge.parameters, schedule, seed, report)
    judge.net.eval()
    return done


def train(
    rows: Sequence[TrainingRow],
    encoded: Callable[[TrainingRow], Item | None],
    logits: Callable[[Sequence[Item]], Any],
    parameters: Sequence[Any],
    schedule: Schedule,
    seed: int,
    report: Callable[[int, float, float], None] = lambda *_: None,
) -> Trained:
    """Train parameters on rows, until the budget is spent or the passes are done.

    Args:
        rows: The rows; each pass draws from them anew.
        encoded: A function from a row to its tokens, or to None if it is too long.
        logits: A function from a batch to a tensor of its logits: one row for each item, one column
            for each of the three labels.
        parameters: The tensors that are trained.
        schedule: How long, and how fast.
        seed: The seed of every choice in drawing. PyTorch's own seed is the caller's.
        report: A function that is told the number of steps, the share of the training that is done,
            and the loss.

    Raises:
        ValueError: No row can be shown.
    """
    rng = random.Random(seed)
    # Norms and biases are not pulled towards 0.
    groups: list[dict[str, Any]] = [
        {"params": [one for one in parameters if one.dim() > 1]},
        {"params": [one for one in parameters if one.dim() <= 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=schedule.rate,
        weight_decay=schedule.weight_decay,
        betas=(0.9, 0.99),
    )
    losses: list[float] = []
    shown = left_out = 0
    start = schedule.clock()
    for at in range(schedule.passes):
        order = drawn(rows, rng)
        for first in range(0, len(order), SORTED):
            tried = [encoded(row) for row in order[first : first + SORTED]]
            items = [item for item in tried if item is not None]
            left_out += len(tried) - len(items)
            for batch in batches(items, schedule.batch_tokens, rng):
                seconds = schedule.clock() - start
                if seconds >= schedule.seconds:
                    return Trained(tuple(losses), shown, left_out, seconds)
                of_passes = (at + first / len(order)) / schedule.passes
                done = max(seconds / schedule.seconds, of_passes)
                for group in optimizer.param_groups:
                    group["lr"] = schedule.rate_at(done)
                error = loss(logits(batch), [item.label for item in batch], schedule.smoothing)
                optimizer.zero_grad(set_to_none=True)
                error.backward()
                torch.nn.utils.clip_grad_norm_(parameters, 1.0)
                optimizer.step()
                losses.append(float(error.detach()))
                shown += len(batch)
                report(len(losses), done, losses[-1])
    if not losses:
        raise ValueError("every row is too long to be shown, or none was drawn")
    return Trained(tuple(losses), shown, left_out, schedule.clock() - start)


def loss(logits: Any, labels: Sequence[str], smoothing: float = 0.0) -> Any:
    """Return the mean loss of a batch, a tensor without dimensions.

    It is the negative logarithm of the probability of the label; for "unsupported", of the sum of
    the probabilities of "contradict" and "neutral".

    Args:
        logits: A tensor of shape (rows, 3).
        labels: The label of each row.
        smoothing: The share of the target that is spread evenly over the three outputs.
    """
    chances = torch.log_softmax(logits.float(), dim=-1)
    targets = torch.tensor([LABELS.index(label) for label in labels], device=logits.device)
    unsupported = -torch.logsumexp(chances[:, 1:], dim=-1)
    labelled = -chances.gather(1, targets.clamp(max=2)[:, None])[:, 0]
    hard = torch.where(targets == LABELS.index("unsupported"), unsupported, labelled)
    return ((1 - smoothing) * hard - smoothing * chances.mean(dim=-1)).mean()


def filled_up(batch: Sequence[Item], padding: int, device: Any) -> tuple[Any, Any]:
    """Return the tokens of a batch and which of them are no padding, of shape (items, longest)."""
    longest = max(len(item.tokens) for item in batch)
    tokens = torch.full((len(batch), longest), padding, dtype=torch.long)
    mask = torch.zeros_like(tokens)
    for at, item in enumerate(batch):
        tokens[at, : len(item.tokens)] = torch.tensor(item.tokens)
        mask[at, : len(item.tokens)] = 1
    return tokens.to(device), mask.to(device)


def device() -> Any:
    """Return the first GPU, or the CPU if there is none."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
