"""First stage: split an answer into claims (RefChecker, section 3.1)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from demur.evaluators.refchecker.localization import index, locate
from demur.evaluators.refchecker.parsing import Extracted, parse_statements, parse_triplets
from demur.evaluators.refchecker.prompts import (
    UNREADABLE_SENTENCES,
    UNREADABLE_TRIPLETS,
    RefCheckerPrompts,
    for_small_model,
    triplet_grammar,
    with_preceding,
)
from demur.evaluators.refchecker.references import Passage
from demur.evaluators.refchecker.remembering import Same, memory
from demur.models.calls import ChatCall, Steps, ask
from demur.models.isolation import as_shown
from demur.models.together import side_by_side
from demur.models.tries import Reply
from demur.schema import Claim
from demur.text import count_tokens, sentences, windows, word_set

ClaimForm = Literal["triplets", "sentences"]

# A longer stretch makes a model skip facts, and its list of claims may pass the token limit.
_STRETCH_TOKENS = 600
# Of a long text before the answer the last one to two hundred tokens are shown: enough for a
# pronoun, and a stream of sentences does not pay for all of its beginning with each.
_PRECEDING_TOKENS = 200
# An answer that is said to state nothing is asked about in so many parts at most.
_MOST_PARTS = 8


@dataclass(frozen=True)
class Extraction:
    """The claims of an answer."""

    claims: tuple[Claim, ...] = ()
    abstained: bool = False
    """The extractor says that the answer states nothing to check."""
    dropped: tuple[str, ...] = ()
    """What the extractor gave but the answer does not say: no word of it stands there."""
    error: str | None = None
    """Why the claims could not be had; none are then complete."""


def extract(
    model: BaseChatModel,
    answer: str,
    question: str | None,
    form: ClaimForm,
    prompts: RefCheckerPrompts,
    bounded: bool,
    preceding: str = "",
) -> Steps[Extraction]:
    """Ask for the claims of an answer, a long one stretch by stretch.

    `bounded` is for llama.cpp with a small model: it is shown more examples, and its reply is kept
    to the form and to a length. What precedes the answer is shown, the end of a long text only, so
    that the claims can name in full what the answer refers to.

    A stretch whose reply cannot be read is asked for once more; one whose reply was cut at the
    token limit is asked for in two halves. Where several sentences are said to state nothing, they
    are asked for apart. A stretch that was read before in a guarded call is not asked for again.
    """
    prompt = prompts.triplets if form == "triplets" else prompts.sentences
    if bounded:
        prompt = for_small_model(prompt)
    tail = windows(preceding, _PRECEDING_TOKENS, _PRECEDING_TOKENS // 2)[-1:]
    before = "".join(preceding[start:end] for start, end in tail)
    if before:
        prompt = with_preceding(prompt)

    def call(stretch: str, *further: BaseMessage) -> ChatCall:
        messages = prompt.messages(question=question, preceding=before, answer=stretch)
        options = _bounds(stretch, form) if bounded else {}
        return ChatCall(model, [*messages, *further], "extraction", options)

    # Not only the answer counts: a claim names in full what the answer may only refer to.
    # Words with unseen signs in them are read without.
    known = frozenset[str]().union(
        *map(word_set, (answer, as_shown(answer), question or "", before))
    )
    remembered: dict[Hashable, list[Extracted]] = memory("claims", Same(model), form, bounded)

    def read(stretch: str) -> Steps[list[Extracted] | str]:
        key = prompt, question, before, stretch
        found = remembered.get(key) or (yield from _read_stretch(stretch, call, form, known))
        if not isinstance(found, str) and all(one.readable for one in found):
            remembered[key] = found
        return found

    def read_all(stretches: Sequence[str]) -> Steps[list[Extracted] | str]:
        reads: list[Extracted] = []
        for found in (yield from side_by_side([read(stretch) for stretch in stretches])):
            if isinstance(found, str):
                return found
            reads += found
        return reads

    stretches = [answer[start:end] for start, end in windows(answer, _STRETCH_TOKENS, 0)]
    reads = yield from read_all(stretches)
    if not isinstance(reads, str) and all(one.abstained for one in reads):
        # One sentence may have told the extractor to say so of all of them.
        parts = [part for stretch in stretches for part in _parts(stretch)]
        if len(parts) > len(stretches):
            reads = yield from read_all(parts)
    return Extraction(error=reads) if isinstance(reads, str) else _collect(reads, answer, known)


def _read_stretch(
    stretch: str, call: Callable[..., ChatCall], form: ClaimForm, known: frozenset[str]
) -> Steps[list[Extracted] | str]:
    """What the extractor says of one stretch, in one reply or in two; a string says why nothing."""
    (outcome,) = yield from ask([call(stretch)])
    if outcome.error is not None:
        return f"the claims could not be extracted: {outcome.error}"
    reply: Reply = outcome.value
    first = _read(reply, form)
    if _usable(first, known):
        return [first]
    if reply.truncated and (halves := _halves(stretch)):
        calls = [call(half) for half in halves]
    else:
        asked = UNREADABLE_TRIPLETS if form == "triplets" else UNREADABLE_SENTENCES
        calls = [call(stretch, AIMessage(reply.text or "(nothing)"), HumanMessage(asked))]
    outcomes = yield from ask(calls)
    for outcome in outcomes:
        if outcome.error is not None:
            return f"the claims could not be extracted: {outcome.error}"
    second = [_read(outcome.value, form) for outcome in outcomes]
    if _takes_back(first, second):
        return (
            "the extractor began claims that could not be read, and asked again said that there "
            "are none: use another model or prompt"
        )
    return second


def _parts(stretch: str) -> list[str]:
    """The sentences of a stretch; of many, several together."""
    bounds = sentences(stretch)
    size = max(1, -(-len(bounds) // _MOST_PARTS))
    groups = [bounds[at : at + size] for at in range(0, len(bounds), size)]
    return [stretch[group[0][0] : group[-1][1]] for group in groups]


def _bounds(stretch: str, form: ClaimForm) -> dict[str, Any]:
    # A fact takes three tokens of the answer at least, and its line some twenty of the reply.
    most = max(8, count_tokens(stretch) // 3)
    options: dict[str, Any] = {"max_tokens": min(20 * most, 1024)}
    if form == "triplets":
        options["extra_body"] = {"grammar": triplet_grammar(most)}
    return options


def _read(reply: Reply, form: ClaimForm) -> Extracted:
    read = parse_triplets(reply.text) if form == "triplets" else parse_statements(reply.text)
    if not reply.truncated:
        return read
    # The last claim was cut, and others may never have been written.
    return Extracted(read.triplets, read.statements, broken=True)


def _usable(read: Extracted, known: frozenset[str]) -> bool:
    if not read.readable:
        return False
    return read.abstained or any(_grounded(claim, known) for claim in _claims(read))


def _takes_back(first: Extracted, second: Sequence[Extracted]) -> bool:
    """Whether claims that were begun are denied when asked for again.

    A small model tends to do so, and to believe it would let an unchecked answer pass as one that
    states nothing.
    """
    return first.broken and all(read.abstained for read in second)


def _halves(stretch: str) -> list[str]:
    bounds = sentences(stretch)
    if len(bounds) < 2:
        return []
    middle = bounds[len(bounds) // 2][0]
    return [stretch[:middle], stretch[middle:]]


def _claims(read: Extracted) -> Iterator[Claim]:
    for triplet in read.triplets:
        yield Claim(text=_statement(triplet), triplet=triplet)
    for statement in read.statements:
        yield Claim(text=statement)


def _statement(triplet: Sequence[str]) -> str:
    return " ".join(part for part in triplet if part)


def _grounded(claim: Claim, known: frozenset[str]) -> bool:
    """Whether a word of the claim's subject or object stands in what the extractor was shown.

    A small model sometimes repeats the lines of its prompt's example as if they were claims of the
    answer.
    """
    parts = (claim.triplet[0], claim.triplet[2]) if claim.triplet else (claim.text,)
    wanted = word_set(" ".join(parts))
    telling = {word for word in wanted if len(word) > 3 or not word.isascii() or word.isdigit()}
    return not wanted or bool((telling or wanted) & known)


def _collect(reads: Sequence[Extracted], answer: str, known: frozenset[str]) -> Extraction:
    if any(read.broken for read in reads):
        return Extraction(
            error="the extractor's list of claims ends half-way, also when asked again: raise the "
            "model's max_tokens or use another model"
        )
    if not all(read.readable for read in reads):
        return Extraction(
            error="the extractor's reply holds no claims that can be read, also when asked again: "
            "use another model or prompt"
        )
    indexed = index([Passage(None, 0, answer)])
    grounded = {claim: _grounded(claim, known) for read in reads for claim in _claims(read)}
    kept = [claim for claim, held in grounded.items() if held]
    dropped = tuple(claim.text for claim, held in grounded.items() if not held)
    if dropped and not kept:
        return Extraction(
            dropped=dropped,
            error="no word of the claims that the extractor gave stands in the answer: use another "
            "model or prompt",
        )
    return Extraction(
        claims=tuple(
            claim.model_copy(update={"span": locate(claim.text, indexed)}) for claim in kept
        ),
        abstained=not kept,
        dropped=dropped,
    )
