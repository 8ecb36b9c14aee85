"""Read passages once for all claims about them, so that a CPU trains several times as fast.

Requests about the same passages begin alike. A row of tokens has their beginning once, and behind
it the rest of each request, which sees the beginning and itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import torch

from demur_research.recipe.drawing import Item

_MOST = 1600
"""The most tokens of a row with several requests, since attention costs their square."""


@dataclass(frozen=True)
class SharedRow:
    """Hold requests that begin alike, as one row of tokens."""

    tokens: Any
    """The tokens, of shape (1, length)."""
    positions: Any
    """The place of each token in its own request, of the same shape."""
    mask: Any
    """What is added to the attention between tokens, of shape (1, 1, length, length)."""
    last: Sequence[int]
    """Where each request ends in the row."""


def alike(batch: Sequence[Item]) -> list[list[int]]:
    """Return the items of a batch in groups that share at least half of their tokens."""
    groups: list[list[int]] = []
    size = 0
    for at in sorted(range(len(batch)), key=lambda at: [*batch[at].tokens]):
        tokens = batch[at].tokens
        begin = _in_common(batch[groups[-1][0]].tokens, tokens) if groups else 0
        size += len(tokens) - begin
        if 2 * begin >= len(tokens) and size <= _MOST:
            groups[-1].append(at)
        else:
            groups.append([at])
            size = len(tokens)
    return groups


def joined(items: Sequence[Item]) -> SharedRow:
    """Return a group of `alike` as one row."""
    first = items[0].tokens
    begin = min(min(_in_common(first, one.tokens), len(one.tokens) - 1) for one in items)
    tokens, positions, owners = [*first[:begin]], [*range(begin)], [0] * begin
    last = []
    for owner, item in enumerate(items, start=1):
        tokens += item.tokens[begin:]
        positions += range(begin, len(item.tokens))
        owners += [owner] * (len(item.tokens) - begin)
        last.append(len(tokens) - 1)
    of, at = torch.tensor(owners), torch.arange(len(tokens))
    sees = (at[None] <= at[:, None]) & ((of[None] == 0) | (of[None] == of[:, None]))
    unseen = torch.finfo(torch.float32).min
    mask = torch.zeros(sees.shape).masked_fill(~sees, unseen)[None, None]
    return SharedRow(torch.tensor([tokens]), torch.tensor([positions]), mask, last)


def _in_common(first: Sequence[int], second: Sequence[int]) -> int:
    """Return how many tokens two requests have in common at their beginning."""
    return sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))
    )
