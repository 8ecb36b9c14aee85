"""Know what of a streamed answer is to be judged, and what of it may leave.

Nothing here waits: `demur.guard.streams` tells a `StreamedAnswer` what happened.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables.utils import AddableDict

from demur.errors import DemurError
from demur.guard.call import Answered, GuardedCall
from demur.guard.events import REPLACE, Announcement
from demur.guard.leaving import LeavingText
from demur.guard.policies import fitting
from demur.guard.recoveries import Annotate, Cite, Strip
from demur.guard.sentences import Sentences
from demur.guard.stripping import failing_claims
from demur.guard.trace import Guarded
from demur.guard.verdicts import accepts
from demur.runtime import Steps
from demur.schema import Claim, Evaluation, Sample, Span
from demur.shapes import (
    Form,
    added,
    alike,
    fits,
    last_chunks,
    others_in,
    read_chunk,
    stays,
    streamed_in,
)

_AT_ONCE = 16
"""The number of sentences that are judged at a time."""
_BREAK = "\n\n"
"""The text between what was streamed and its correction, for clients that do not know the event."""


@dataclass(frozen=True)
class Leaving:
    """Hold a chunk that leaves."""

    chunk: Any


class StreamedAnswer:
    """Hold the first answer of a call while it is generated, judged and sent by sentences."""

    def __init__(self, call: GuardedCall) -> None:
        """Prepare the chain's first run, which has not started."""
        self.call = call
        self.chain = call.chain_call(call.input)
        self.over = False
        """Whether nobody needs the results of work that is still running."""
        self._reader = call.guard.answer
        recoveries = call.guard.on_fail.values()
        # `Annotate` returns the whole answer, so the chain must go on after a sentence has failed.
        self._cuts = not any(isinstance(recovery, Annotate) for recovery in recoveries)
        on_pass = call.guard.on_pass
        self._sent = LeavingText(
            on_pass,
            any(isinstance(recovery, Strip) for recovery in recoveries),
        )
        self._blocks = on_pass is not None and on_pass.form == "blocks"
        self._output: Any = None
        self._sentences = Sentences()
        self._form: Form | None = None
        self._whole = False
        """Whether the answer can only be judged as a whole, after the chain has ended."""
        self._answered: Answered | None = None
        """The complete answer, set when the chain has ended."""
        waits = call.guard.on_abstain == "fail"
        self._silent = set(range(len(call.guard.evaluators))) if waits else set()
        """The evaluators that have found nothing to check so far, if `on_abstain` is "fail"; else
        empty. No sentence leaves before each evaluator has found something."""
        self._asked: list[Sample] = []
        """The sentences whose judgement has begun."""
        self._by_sentence: dict[int, tuple[Evaluation, ...]] = {}
        self._failed = False
        """Whether a sentence was not accepted."""
        self._stripped: set[int] = set()
        """The numbers of the sentences that are taken out."""
        self._gone = 0
        """The number of sentences that have left or were taken out."""
        self._leaving: list[AddableDict] = []
        """Sources and the chain's own input, which leave at once."""
        self._others = AddableDict()
        """The values of other keys that have left."""

    # --- Happenings --------------------------------------------------------------------------

    def feed(self, chunk: Any) -> None:
        """Take a chunk of the chain's output."""
        if isinstance(chunk, list):
            raise DemurError(
                "the chain streams lists, and demur cannot tell whether a list continues the one "
                "before it or replaces it: stream with streaming='buffer'"
            )
        self._output = chunk if self._output is None else added(self._output, chunk)
        part = None if self._whole else read_chunk(chunk, self._reader)
        if part is None or not fits(part.form, self._form):
            self._whole = True
            return
        self._form = self._form or part.form
        # Other keys leave after the whole answer was judged.
        kept, given = self.call.kept, self.call.input
        early = {k: v for k, v in part.others.items() if stays(k, v, given, kept)}
        if early:
            self._leaving.append(AddableDict(early))
        if part.text:
            self._sentences.add(part.text)

    def end(self) -> None:
        """Note that the chain has ended."""
        self._answered = self.call.answered(self.chain, self._output, "chain")
        if self._answered.text != self._text or self._answered.abstained:
            self._whole = True
        else:
            self._sentences.end()

    def judged(self, at: int, evaluations: tuple[Evaluation, ...]) -> None:
        """Note the evaluations of a sentence."""
        self._by_sentence[at] = evaluations
        failures = {failure for evaluation in evaluations for failure in evaluation.failures}
        recoveries = [*fitting(self.call.guard.on_fail, failures)] if failures else []
        if any(isinstance(recovery, Strip | Cite) for recovery in recoveries):
            self._cuts = False  # these recoveries edit the whole answer
        if recoveries and isinstance(recoveries[0], Strip) and failing_claims(evaluations):
            self._stripped.add(at)
        elif not self._accepted(at):
            self._failed = True
        elif self._silent:
            self._silent -= {
                i for i, evaluation in enumerate(evaluations) if not evaluation.nothing_to_check
            }

    # --- Next steps ----------------------------------------------------------------------------

    @property
    def settled(self) -> bool:
        """Return whether nothing more can leave before the call is finished."""
        if self._cuts and not self._whole and self._failed:
            return True
        return self._answered is not None and (
            self._whole or len(self._by_sentence) == len(self._spans)
        )

    def to_judge(self) -> list[tuple[int, Sample]]:
        """Return the sentences whose judgement can begin, each once, with their numbers."""
        last = min(len(self._spans), len(self._by_sentence) + _AT_ONCE)
        if self._whole or self.settled or len(self._asked) >= last:
            return []
        contexts = self._contexts()
        if contexts is None:
            return []
        numbers = range(len(self._asked), last)
        self._asked += (self._sample(at, contexts) for at in numbers)
        return [(at, self._asked[at]) for at in numbers]

    def judge(self, sample: Sample) -> Steps[tuple[Evaluation, ...]]:
        """Judge a sentence."""
        evaluations = yield from self.call.evaluate(sample)
        if not self.over:
            yield from self.call.announce_evaluations(evaluations)
        return evaluations

    def leaving(self) -> Iterator[Any]:
        """Yield the chunks that can leave, each once."""
        for others in self._leaving:
            self._others = added(self._others, others)
            yield others
        self._leaving.clear()
        while self._may_leave and self._form is not None and not self._holds_up(self._gone):
            at, self._gone = self._gone, self._gone + 1
            if at in self._stripped:
                self._sent.skip(self._text, self._spans[at])
                continue
            piece, citations = self._sent.leave(
                self._text, self._spans[at], self._by_sentence[at], self._asked[at].contexts
            )
            if piece:
                yield self._form.chunk(piece, citations if self._blocks else None)

    # --- The end -------------------------------------------------------------------------------

    def finish(self) -> Steps[list[Leaving | Announcement]]:
        """Finish the guarded call: judge the answer, recover if it failed, and end.

        Returns:
            The chunks and events that are still to be sent, in order.
        """
        answered = self._answered or self.call.answered(self.chain, self._output, "chain")
        if self._whole or not self._spans:
            yield from self.call.judge(answered)
        else:
            self.call.record(answered, [*self._evaluations()])
        return list(self._rest((yield from self.call.finish())))

    def _rest(self, guarded: Guarded[Any]) -> Iterator[Leaving | Announcement]:
        output, sent = guarded.output, self._sent.text
        if not sent and not self._others:
            yield Leaving(output)
            return
        text = streamed_in(output, self._form)
        common = _in_common(sent, text)
        keep = max(end for end in self._sent.ends if end <= common)
        others = others_in(output, self._form)
        stale = [
            key
            for key, value in self._others.items()
            if key not in others or not alike(value, others[key])
        ]
        if keep < len(sent) and self._form is not None:
            yield Leaving(self._form.chunk(_BREAK, [] if self._blocks else None))
        if keep < len(sent) or stale:
            yield Announcement(((REPLACE, {"keep": keep, "keys": stale}),))
        fresh = {k: v for k, v in others.items() if k not in self._others or k in stale}
        yield from map(Leaving, last_chunks(output, self._form, text[keep:], fresh))

    # --- Sentences -----------------------------------------------------------------------------

    def _sample(self, at: int, contexts: Sequence[Document]) -> Sample:
        start, end = self._spans[at]
        return Sample(
            question=self.call.question,
            answer=self._text[start:end],
            contexts=tuple(contexts),
            known=self.call.known(self.chain.capture.instructions),
            preceding=self._text[:start],
        )

    def _contexts(self) -> Sequence[Document] | None:
        """Return the documents that sentences are checked against; None if not known yet."""
        if self._answered is not None:
            return self._answered.contexts
        if self.chain.capture.refusals:
            return None  # the answer may be such a refusal, which is not judged
        reader = self.call.guard.contexts
        try:
            documents = self.call.find_contexts(self.chain, self._output)
            known = bool(documents) or reader is not None
            return self.call.held_against(documents) if known else None
        except Exception:  # not an error yet, since an incomplete output may lack the contexts
            return None

    def _accepted(self, at: int) -> bool:
        lets_open = self.call.guard.on_error == "open"
        return at in self._by_sentence and all(
            accepts(evaluation) or (lets_open and evaluation.undetermined)
            for evaluation in self._by_sentence[at]
        )

    def _holds_up(self, at: int) -> bool:
        """Return whether a sentence that was not accepted, or not judged yet, holds up the next."""
        return at not in self._stripped and not self._accepted(at)

    def _evaluations(self) -> Iterator[Evaluation]:
        for at in sorted(self._by_sentence):
            for evaluation in self._by_sentence[at]:
                yield _moved(evaluation, self._spans[at])

    @property
    def _text(self) -> str:
        return self._sentences.text

    @property
    def _spans(self) -> list[tuple[int, int]]:
        return self._sentences.spans

    @property
    def _may_leave(self) -> bool:
        """Return whether accepted sentences may leave now."""
        return not self._whole and not self._silent and not self._sent.held


def _moved(evaluation: Evaluation, sentence: tuple[int, int]) -> Evaluation:
    """Return an evaluation of a sentence with its places in the whole answer."""
    by, end = sentence
    claims: list[Claim] = []
    for claim in evaluation.claims:
        own = claim.span or Span(start=0, end=end - by)  # without a place, the whole sentence
        span = Span(start=own.start + by, end=own.end + by)
        claims.append(claim.model_copy(update={"span": span}))
    return evaluation.model_copy(update={"claims": tuple(claims)})


def _in_common(first: str, second: str) -> int:
    """Return the number of characters that two texts have in common at their beginning."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))
