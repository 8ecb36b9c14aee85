"""Provide chains of every shape that follow a script, and judges that know what is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import (
    Runnable,
    RunnableGenerator,
    RunnableLambda,
    RunnablePassthrough,
)
from langchain_core.runnables.utils import AddableDict
from pydantic import BaseModel, Field

from demur import Claim, ClaimLabel, Evaluation, Sample
from demur.evaluators import Evaluator
from demur.runtime import Steps
from demur.schema import ABSTAIN

from .truth import DOCUMENT, RIGHT, is_wrong


class ChainError(Exception):
    """Report an error that a script asked for."""


Say = Callable[[], str]
"""A function that returns the next text of a script, or raises `ChainError` where the script says
so."""


class Script:
    """Return texts in order, and repeat the last one; None raises an error."""

    def __init__(self, *texts: str | None) -> None:
        self.texts = texts
        self.said = 0

    def __call__(self) -> str:
        """Return the next text."""
        text = self.texts[min(self.said, len(self.texts) - 1)]
        self.said += 1
        if text is None:
            raise ChainError("the chain is told to raise")
        return text


class Speaker(BaseChatModel):
    """Reply by a script, token by token if the reply is streamed."""

    say: Callable[[], str | AIMessage] = Field(exclude=True)
    asked: list[list[BaseMessage]] = Field(default_factory=list, exclude=True)
    """The messages of each request."""

    @property
    def _llm_type(self) -> str:
        return "speaker"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Runnable[Any, Any]:
        """Return this model itself, because its script contains the tool calls."""
        return self

    def _reply(self, messages: list[BaseMessage]) -> tuple[AIMessage, str]:
        self.asked.append(messages)
        reply = self.say()
        return (AIMessage(str(reply)), reply) if isinstance(reply, str) else (reply, reply.text)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        reply, text = self._reply(messages)
        finished(text)
        return ChatResult(generations=[ChatGeneration(message=reply)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        reply, text = self._reply(messages)
        for piece in pieces(text):
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=piece))
            if run_manager is not None:
                run_manager.on_llm_new_token(piece, chunk=chunk)
            yield chunk
        last = AIMessageChunk(
            content="",
            tool_calls=reply.tool_calls,
            invalid_tool_calls=reply.invalid_tool_calls,
            chunk_position="last",
        )
        yield ChatGenerationChunk(message=last)


class Broken(str):
    """Hold a text after which the chain raises. A chain that does not stream shows none of it."""


def pieces(text: str) -> Iterator[str]:
    """Yield words with the white space before them, as models stream them."""
    yield from re.findall(r"\s*\S+\s*$|\s*\S+", text)
    finished(text)


def finished(text: str) -> str:
    """Return the text, unless the chain is to break off in it."""
    if isinstance(text, Broken):
        raise ChainError("the chain breaks off")
    return text


# --- Judges ---------------------------------------------------------------------------------------


class Judge(Evaluator):
    """Know what is wrong, and quote it in every text field, as real judges do."""

    kind: str = "quotes"
    """What the judge does about a wrong answer; see `JUDGES`."""

    @property
    def claim_level(self) -> bool:
        """Return True: this evaluator can judge single sentences."""
        return True

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        yield from ()
        name, said = self.kind, f"of {sample.answer!r} nothing is known"
        if self.kind == "passes" or not is_wrong(sample.answer):
            return Evaluation(name=name, score=1.0, passed=True)
        if self.kind == "raises":
            raise RuntimeError(said)
        if self.kind == "undetermined":
            return Evaluation(name=name, error=said, explanation=said)
        if self.kind == "nothing":
            return Evaluation(name=name, label=ABSTAIN, explanation=said)
        claim = Claim(text=sample.answer, label=ClaimLabel.CONTRADICTION)
        claims = (claim,) if self.kind == "claims" else ()
        return Evaluation(name=name, score=0.0, passed=False, explanation=said, claims=claims)


JUDGES: dict[str, Sequence[str]] = {
    "rejects": ("quotes",),
    "rejects claims": ("claims",),
    "cannot decide": ("undetermined",),
    "raises": ("raises",),
    "nothing to check": ("nothing",),
    "rejects, and cannot decide": ("claims", "undetermined"),
    "passes, and cannot decide": ("passes", "undetermined"),
}
"""The judges of a guard, by what they find together in a wrong answer."""


def judges(name: str) -> list[Judge]:
    """Return the judges of this name."""
    return [Judge(kind=kind) for kind in JUDGES[name]]


# --- Chains ---------------------------------------------------------------------------------------


class Reply(BaseModel):
    """An output that is no mapping."""

    text: str


class Said(BaseModel):
    """A structured answer, with the same words beside it."""

    answer: str
    beside: list[str] | None = None


@dataclass(frozen=True)
class Shape:
    """Describe the form in which a chain answers."""

    build: Callable[[Say], Runnable[Any, Any]]
    text: Callable[[Any], str]
    """A function that returns the answer's text from an output."""
    answer: Callable[[Any], Any] | None = None
    """The guard's argument `answer`."""
    editable: bool = True
    """Whether a refusal can take the answer's place."""
    written: Callable[[str], str] = str
    """A function that returns how a model writes another answer of this shape."""


def _whole(make: Callable[[str], Any]) -> Callable[[Say], Runnable[Any, Any]]:
    def build(say: Say) -> Runnable[Any, Any]:
        def answer(given: Any) -> Any:
            return make(finished(say()))

        async def aanswer(given: Any) -> Any:
            return make(finished(say()))

        return RunnableLambda(answer, aanswer, name="chain")

    return build


def _streamed(make: Callable[[str], Any], *first: Any) -> Callable[[Say], Runnable[Any, Any]]:
    def build(say: Say) -> Runnable[Any, Any]:
        def answer(given: Iterator[Any]) -> Iterator[Any]:
            list(given)
            yield from first
            yield from map(make, pieces(say()))

        async def aanswer(given: AsyncIterator[Any]) -> AsyncIterator[Any]:
            [_ async for _ in given]
            for one in first:
                yield one
            for piece in pieces(say()):
                yield make(piece)

        return RunnableGenerator(answer, aanswer, name="chain")

    return build


_PROMPT = ChatPromptTemplate.from_template("{input}")
_CONTEXT = [Document(DOCUMENT)]


def _model(say: Say) -> Runnable[Any, Any]:
    return _PROMPT | Speaker(say=say)


def _message(text: str) -> AIMessage:
    """Return a message that repeats the text in the fields beside it."""
    beside = {"said": text}
    return AIMessage(text, id="m-1", additional_kwargs=beside, response_metadata=beside)


def _blocks(text: str) -> AIMessage:
    return AIMessage([{"type": "text", "text": text}, {"type": "reasoning", "reasoning": RIGHT}])


def _said(text: str) -> dict[str, Any]:
    return {"answer": text, "beside": [text]}


def _as_json(text: str) -> str:
    return json.dumps(_said(text))


def _text_of(output: Any) -> str:
    value = output.get("answer", "") if isinstance(output, dict) else output
    value = value.answer if isinstance(value, Said) else value
    return str(value.text) if isinstance(value, BaseMessage) else str(value)


SHAPES: dict[str, Shape] = {
    "string": Shape(_whole(str), str),
    "string, streamed": Shape(_streamed(str), str),
    "message": Shape(_whole(_message), _text_of),
    "message, streamed": Shape(_streamed(lambda t: AIMessageChunk(t, id="m-1")), _text_of),
    "content blocks": Shape(_whole(_blocks), _text_of),
    "prompt | model": Shape(_model, _text_of),
    "prompt | model | parser": Shape(lambda say: _model(say) | StrOutputParser(), str),
    "mapping": Shape(_whole(lambda t: {"context": _CONTEXT, "answer": t}), _text_of),
    "mapping of a message": Shape(
        _whole(lambda t: {"context": _CONTEXT, "answer": _message(t)}), _text_of
    ),
    "AddableDict, streamed": Shape(
        _streamed(lambda t: AddableDict(answer=t), AddableDict(context=_CONTEXT)), _text_of
    ),
    "assign": Shape(
        lambda say: RunnablePassthrough.assign(answer=_model(say) | StrOutputParser()), _text_of
    ),
    "data": Shape(_whole(_said), _text_of, written=_as_json),
    "data in a pydantic object": Shape(
        _whole(lambda t: Said(**_said(t))), _text_of, written=_as_json
    ),
    "mapping with more beside": Shape(
        _whole(lambda t: {"context": _CONTEXT, "beside": _message(t), **_said(t)}), _text_of
    ),
    "AddableDict with more beside, streamed": Shape(
        _streamed(lambda t: AddableDict(beside=t, answer=t), AddableDict(context=_CONTEXT)),
        _text_of,
    ),
    "pydantic": Shape(
        _whole(lambda t: Reply(text=t)), attrgetter("text"), attrgetter("text"), editable=False
    ),
}
"""The chains, by the shape of their output. Each answers what its script says."""
