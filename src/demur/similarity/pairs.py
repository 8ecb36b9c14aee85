"""Score pairs of texts once: within a call, across calls for a while, and for all threads."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur._system import Recent, renewed
from demur._text import replace_surrogates
from demur.errors import DemurError
from demur.similarity.scorers import Pair, PairScorer

_BLOCK = 8192
"""The number of pairs that are processed together, from one caller or several."""
_SLACK = 1e-6
"""How far outside [0, 1] a score may lie because of rounding."""


@dataclass(eq=False)
class _Request:
    """Hold the pairs that a thread waits for."""

    pairs: list[Pair]
    scores: list[float] = field(default_factory=list)
    error: Exception | None = None
    done: bool = False


class Similarity:
    """Score pairs of texts with one scorer.

    A similarity is safe to use from several threads; one thread at a time scores. Pairs that
    callers ask for while others are served are put together, so that batches are full. An error
    reaches only the callers whose pairs were in the batch that failed. Scores of a neural model may
    differ in the seventh digit, depending on the other pairs in the batch.

    Args:
        score: A function from a list of pairs to as many numbers in [0, 1].
        name: The name that users give it.
        fingerprint: A text that identifies the model and its version, to distinguish its scores
            from those of another similarity.
        batch_size: The largest number of pairs that `score` gets at once.
        kept: The number of scores that are remembered. The least recently used are dropped.
        symmetric: Whether (a, b) and (b, a) have the same score.

    Raises:
        ValueError: `batch_size` or `kept` is too small.
    """

    def __init__(
        self,
        score: PairScorer,
        name: str,
        fingerprint: str,
        batch_size: int = 64,
        kept: int = 1 << 17,
        symmetric: bool = False,
    ) -> None:
        """Make a similarity; the class describes the arguments."""
        if batch_size < 1 or kept < 0:
            raise ValueError(
                "expected a batch_size of at least 1 and kept of at least 0, "
                f"got batch_size={batch_size} and kept={kept}"
            )
        self.name = name
        self.fingerprint = fingerprint
        self.asked = 0
        """The number of pairs that callers asked for so far."""
        self.evaluated = 0
        """The number of pairs that the scorer has scored so far."""
        self.given = score, name, fingerprint, batch_size, kept, symmetric
        """The arguments that it was made from."""
        # Scores are kept by hash, so that each takes the same memory, however long its texts are.
        self._kept: Recent[float] = Recent(kept)
        self._turn = threading.Condition()
        self._waiting: dict[_Request, None] = {}
        self._leader: _Request | None = None
        renewed(self, Similarity._forked)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without the remembered scores."""
        return Similarity, self.given

    def _forked(self) -> None:
        """Forget the waiting threads of the parent process."""
        self._turn = threading.Condition()
        self._waiting.clear()
        self._leader = None

    def scores(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """Return the score of each (premise, hypothesis), in [0, 1].

        Raises:
            TypeError: An item is not a pair of texts.
            DemurError: The scorer did not return one number in [0, 1] for each pair.
            Exception: Any exception that the scorer raised.
        """
        scores = np.empty(len(pairs))
        first: dict[Pair, int] = {}
        for start in range(0, len(pairs), _BLOCK):
            block = [self._checked(pair) for pair in pairs[start : start + _BLOCK]]
            places = [first.setdefault(pair, at) for at, pair in enumerate(block, start)]
            new = [at for at, place in enumerate(places, start) if at == place]
            if new:
                scores[new] = self._request([block[at - start] for at in new])
            scores[start : start + len(block)] = scores[places]
        with self._turn:
            self.asked += len(pairs)
        return scores

    def _checked(self, pair: Any) -> Pair:
        two = isinstance(pair, (tuple, list)) and len(pair) == 2
        premise, hypothesis = pair if two else (None, None)
        if not (isinstance(premise, str) and isinstance(hypothesis, str)):
            raise TypeError(
                f"expected pairs of texts (premise, hypothesis), got {repr(pair)[:200]}"
            )
        premise, hypothesis = replace_surrogates(premise), replace_surrogates(hypothesis)
        if self.given[-1] and hypothesis < premise:  # the score has no direction
            return hypothesis, premise
        return premise, hypothesis

    def _request(self, pairs: list[Pair]) -> list[float]:
        """Wait until another thread has scored the pairs, or score them and others' pairs."""
        request = _Request(pairs)
        try:
            with self._turn:
                self._waiting[request] = None
                self._turn.wait_for(lambda: request.done or self._leader is None)
                if not request.done:
                    self._leader = request
                    company = self._company(request)
            if not request.done:
                self._settle(company)
        finally:
            # This runs after an interrupt too: other requests still wait, and one has to lead.
            with self._turn:
                self._waiting.pop(request, None)
                if self._leader is request:
                    self._leader = None
                    self._turn.notify_all()
        if request.error is not None:
            raise request.error
        return request.scores

    def _company(self, request: _Request) -> list[_Request]:
        """Return the request and other waiting requests, as long as they fit into a block."""
        company, size = [request], len(request.pairs)
        for waiting in self._waiting:
            if waiting is not request and not waiting.done and size + len(waiting.pairs) <= _BLOCK:
                company.append(waiting)
                size += len(waiting.pairs)
        return company

    def _settle(self, requests: list[_Request]) -> None:
        """Give each request its scores, or the error of the first of its batches that failed."""
        score, _, _, batch_size, kept, _ = self.given
        pairs = dict.fromkeys(chain.from_iterable(request.pairs for request in requests))
        keys = {pair: _key(pair) for pair in pairs} if kept else {}
        remembered = self._kept.get(keys.values())
        known = {pair: remembered[key] for pair, key in keys.items() if key in remembered}
        # Pairs of similar length are scored together, so that there is little padding.
        new = [pair for pair in pairs if pair not in known]
        new.sort(key=lambda pair: len(pair[0]) + len(pair[1]))
        while new:
            batch, new = new[:batch_size], new[batch_size:]
            try:
                scores = _validated(score(batch), batch)
            except Exception as error:
                for request in requests:
                    if request.error is None and not set(batch).isdisjoint(request.pairs):
                        request.error = error
                # The scorer is not asked again for requests that get an error anyway.
                wanted = {
                    pair for request in requests if request.error is None for pair in request.pairs
                }
                new = [pair for pair in new if pair in wanted]
            else:
                self.evaluated += len(batch)
                known.update(zip(batch, scores, strict=True))
                for pair in batch if kept else ():
                    self._kept.put(keys[pair], known[pair], weight=1)
        for request in requests:
            if request.error is None:
                request.scores = [known[pair] for pair in request.pairs]
            request.done = True


def _key(pair: Pair) -> str:
    premise, hypothesis = pair
    text = f"{len(premise)} {premise}{hypothesis}"
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _validated(returned: Any, pairs: list[Pair]) -> list[float]:
    """Return a scorer's result as numbers in [0, 1], one for each pair."""
    if hasattr(returned, "detach"):
        returned = returned.detach().cpu()  # a tensor, perhaps on another device
    try:
        scores = np.asarray(returned, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DemurError(
            f"the similarity returned {repr(returned)[:200]} for {len(pairs)} pairs; expected one "
            "number in [0, 1] for each"
        ) from error
    if scores.shape != (len(pairs),):
        raise DemurError(
            f"the similarity returned an array of shape {scores.shape} for {len(pairs)} pairs; "
            "expected one number in [0, 1] for each"
        )
    outside = ~((scores >= -_SLACK) & (scores <= 1 + _SLACK))  # true for NaN too
    if outside.any():
        at = int(np.argmax(outside))
        raise DemurError(
            f"the similarity returned {scores[at]} for the pair {repr(pairs[at])[:300]}; expected "
            "a number in [0, 1]"
        )
    kept: list[float] = np.clip(scores, 0, 1).tolist()
    return kept
