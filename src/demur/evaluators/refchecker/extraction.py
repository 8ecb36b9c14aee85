"""Split an answer into claims: the first stage (RefChecker, section 3.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from demur._text import count_tokens, sentences, windows, word_set
from demur.evaluators.refchecker.localization import Sentence, index_sentences, locate
from demur.evaluators.refchecker.parsing import Extracted, Triplet, parse_triplets
from demur.evaluators.refchecker.prompts import (
    UNREADABLE,
    for_small_model,
    triplet_grammar,
    with_preceding,
)
from demur.evaluators.refchecker.units import units
from demur.runtime import ChatCall, Reply, Steps, ask, ask_all, side_by_side
from demur.runtime.prompting import Prompt, as_shown
from demur.schema import Claim

# In a longer stretch a model skips facts, and its list of claims may exceed the token limit.
_STRETCH_TOKENS = 600
# The last 100 to 200 tokens of a long text before the answer are shown. That is enough for a
# pronoun, and a stream does not pay again for all of its beginning with each sentence.
_PRECEDING_TOKENS = 200


@dataclass(frozen=True)
class Extraction:
    """Hold the claims that an extractor nominates."""

    claims: tuple[Claim, ...] = ()
    """The claims, with their places in the answer if the answer has words of them."""
    ungrounded: tuple[Claim, ...] = ()
    """The claims of which no word stands in the text that the extractor was shown, each with an
    error."""
    dropped: tuple[str, ...] = ()
    """Claims that repeat the example in the prompt."""


_FAILING = "the claims could not be extracted"
UNGROUNDED = (
    "no word of this claim stands in the answer: the extractor put it in other words, or made it up"
)


@dataclass(frozen=True)
class _Known:
    """Hold the words that the extractor was shown."""

    words: frozenset[str]
    text: str

    @classmethod
    def of(cls, texts: Sequence[str]) -> _Known:
        return cls(frozenset[str]().union(*map(word_set, texts)), "\n".join(texts).casefold())

    def holds(self, word: str) -> bool:
        """Return whether a word was shown; a non-ASCII word may be part of a longer one."""
        return word in self.words or (not word.isascii() and word in self.text)


def extract(
    model: BaseChatModel,
    answer: str,
    question: str | None,
    prompt: Prompt,
    bounded: bool,
    preceding: str = "",
) -> Steps[Extraction]:
    """Ask for the claims of an answer; a long answer is asked about in stretches.

    If a text precedes the answer, the model is shown its end, so that claims can name in full what
    the answer refers to.

    If the reply about a stretch cannot be read, the stretch is asked about once more. If the reply
    was cut at the token limit, the stretch is asked about in two halves. What still cannot be read
    is skipped.

    Args:
        model: The extractor.
        answer: The answer.
        question: The question that was answered.
        prompt: The prompt that asks for triplets.
        bounded: Whether the model is a small one on llama.cpp. It is shown more examples, and a
            grammar and a length bound its reply.
        preceding: The text before the answer.

    Raises:
        UndeterminedError: A call to the extractor failed.
    """
    if bounded:
        prompt = for_small_model(prompt)
    tail = windows(preceding, _PRECEDING_TOKENS, _PRECEDING_TOKENS // 2)[-1:]
    before = "".join(preceding[start:end] for start, end in tail)
    if before:
        prompt = with_preceding(prompt)

    def call(stretch: str, *further: BaseMessage) -> ChatCall:
        messages = prompt.messages(question=question, preceding=before, answer=stretch)
        options = _bounds(stretch) if bounded else {}
        return ChatCall(model, [*messages, *further], "extraction", options)

    # Words of the question and the preceding text count too, since a claim names in full what the
    # answer may only refer to. `as_shown` gives words without invisible characters.
    known = _Known.of((answer, as_shown(answer), question or "", before))
    stretches = [answer[start:end] for start, end in windows(answer, _STRETCH_TOKENS, 0)]
    reads = yield from side_by_side([_read_stretch(one, call, known) for one in stretches])
    return _collect([*chain.from_iterable(reads)], answer, known, _example_claims(prompt))


def _read_stretch(
    stretch: str, call: Callable[..., ChatCall], known: _Known
) -> Steps[list[Extracted]]:
    """Return the claims that the extractor writes for one stretch, in one reply or in two."""
    reply = yield from ask(call(stretch), _FAILING)
    first = _read(reply)
    if _usable(first, known):
        return [first]
    if reply.truncated and (halves := _halves(stretch)):
        calls = [call(half) for half in halves]
    else:
        calls = [call(stretch, AIMessage(reply.text or "(nothing)"), HumanMessage(UNREADABLE))]
    outcomes = yield from ask_all(calls)
    second = [_read(outcome.expect(_FAILING)) for outcome in outcomes]
    return second if any(read.triplets for read in second) else [first, *second]


def _bounds(stretch: str) -> dict[str, Any]:
    # A fact takes at least 3 tokens of the answer, and its line takes about 20 of the reply.
    most = max(8, count_tokens(stretch) // 3)
    return {
        "max_tokens": min(20 * most, 1024),
        "extra_body": {"grammar": triplet_grammar(most)},
    }


def _read(reply: Reply) -> Extracted:
    read = parse_triplets(reply.text)
    if not reply.truncated:
        return read
    # The last claim was cut, and others may never have been written.
    return Extracted(read.triplets, broken=True)


def _usable(read: Extracted, known: _Known) -> bool:
    if not read.readable:
        return False
    return read.abstained or any(_grounded(triplet, known) for triplet in read.triplets)


def _halves(stretch: str) -> list[str]:
    bounds = sentences(stretch)
    if len(bounds) < 2:
        return []
    middle = bounds[len(bounds) // 2][0]
    return [stretch[:middle], stretch[middle:]]


def _text(triplet: Triplet) -> str:
    return " ".join(part for part in triplet if part)


def _grounded(triplet: Triplet, known: _Known) -> bool:
    """Return whether a word of the subject or the object stands in the extractor's input."""
    wanted = word_set(f"{triplet[0]} {triplet[2]}")
    telling = {word for word in wanted if len(word) > 3 or not word.isascii() or word.isdigit()}
    return not wanted or any(map(known.holds, telling or wanted))


def _example_claims(prompt: Prompt) -> frozenset[str]:
    """Return the claims of the prompt's examples, which small models repeat as if of the answer."""
    read = [parse_triplets(example.reply) for example in prompt.examples]
    return frozenset(
        _text(triplet).casefold() for extracted in read for triplet in extracted.triplets
    )


def _collect(
    reads: Sequence[Extracted], answer: str, known: _Known, examples: frozenset[str]
) -> Extraction:
    indexed = index_sentences(
        Sentence(None, unit.start, answer[unit.start : unit.end]) for unit in units(answer)
    )
    claims: list[Claim] = []
    ungrounded: list[Claim] = []
    dropped: list[str] = []
    for triplet in dict.fromkeys(triplet for read in reads for triplet in read.triplets):
        text = _text(triplet)
        if _grounded(triplet, known):
            claims.append(Claim(text=text, triplet=triplet, span=locate(text, indexed)))
        elif text.casefold() in examples:
            dropped.append(text)
        else:
            ungrounded.append(Claim(text=text, triplet=triplet, error=UNGROUNDED))
    return Extraction(tuple(claims), tuple(ungrounded), tuple(dropped))
