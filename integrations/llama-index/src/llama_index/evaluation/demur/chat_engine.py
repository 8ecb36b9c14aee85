"""GuardedChatEngine: a chat engine whose answers are checked before anyone reads them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import InitVar, dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole
from llama_index.core.chat_engine.types import (
    AgentChatResponse,
    BaseChatEngine,
    StreamingAgentChatResponse,
)
from llama_index.core.llms import LLM
from llama_index.core.schema import NodeWithScore

from demur import DemurError
from demur.guard import Budget, Cite, OnError, OnFail
from demur.schema import OnAbstain
from llama_index.evaluation.demur._asking import (
    Ask,
    Asks,
    Call,
    Opened,
    distinct_nodes,
    retry_text,
    sources_of,
)
from llama_index.evaluation.demur._guarding import (
    Answer,
    End,
    Guarding,
    StreamingMode,
)
from llama_index.evaluation.demur._nodes import KEY, as_documents
from llama_index.evaluation.demur._reply import Reply, changed, read
from llama_index.evaluation.demur._result import GuardResult
from llama_index.evaluation.demur._runnables import EvaluatorLike

History = list[ChatMessage]


class GuardedChatEngine(BaseChatEngine):
    """Check every answer of a chat engine, and recover when it fails.

    It is used as the engine is. The result of a message is in the response's metadata under "demur"
    (a `GuardResult`); contexts of an answer are the response's source nodes, and the question is
    the message.

    An answer that fails is answered again by the engine: it is sent the message once more, with
    what was wrong, the sources of that answer, and what `retriever` finds for the failed claims.
    Neither that nor a rejected answer is part of the conversation afterwards: from then on the
    guarded engine keeps the history itself, and gives it to the engine with each message. A message
    whose call raised is not part of it either.

    It holds one conversation, as the engine does: one message at a time. A stream that is not read
    to its end is no part of it. Memories that keep more than the conversation, as the secondary
    ones of a SimpleComposableMemory do, are for engines without a guard: they keep what the engine
    said, rejected or not, and lose all they have when a first answer fails and the engine is reset.

    Examples:
        >>> guarded = GuardedChatEngine(index.as_chat_engine(), RefCheckerEvaluator())
        >>> guarded.chat("How tall is the tower?").metadata["demur"]["outcome"]

    Args:
        chat_engine: Any chat engine.
        on_fail: As `GuardedQueryEngine` takes it, like what is not named here. Chat engines show
            their retrievers to nobody: name one to have what failed searched for,
            `on_fail={"neutral": Retrieve(index.as_retriever()), "any": Regenerate()}`.
        on_pass: As `GuardedQueryEngine` takes it. `chat_history` has the answer with its marks, as
            the user has read it. Numbers begin at 1 with each answer.
        streaming: When the text of `stream_chat` leaves. The response's `response` is the answer
            that holds in the end.
        conversation: Whether the conversation supports an answer too: what the user stated in it
            ("My name is Ann."), what tools returned that stands in the history, and the source
            nodes of earlier answers of this guarded engine. The user is a source then, and is
            believed. Nodes are kept until `reset`, or until a message comes with a history of its
            own.

    Raises:
        ValueError, TypeError: As `GuardedQueryEngine` does.
    """

    def __init__(
        self,
        chat_engine: BaseChatEngine,
        *evaluators: EvaluatorLike | Sequence[EvaluatorLike],
        on_fail: OnFail = None,
        on_pass: Cite | None = None,
        budget: Budget | None = None,
        on_error: OnError = "closed",
        on_abstain: OnAbstain = "pass",
        streaming: StreamingMode = "buffer",
        conversation: bool = False,
        model: LLM | BaseChatModel | str | None = None,
    ) -> None:
        """See the class."""
        if not isinstance(chat_engine, BaseChatEngine):
            raise TypeError(
                f"expected a LlamaIndex chat engine, such as index.as_chat_engine(), got "
                f"{type(chat_engine).__name__}"
            )
        self._chat_engine = chat_engine
        self._history: History | None = None
        """The conversation, where the engine's own memory of it is not to be trusted."""
        self._turn: _Turn | None = None
        """The one that is not over. The engine may remember of it what was not let through."""
        self._nodes: list[NodeWithScore] = []
        """What the earlier answers of this conversation were given from, if that is to count."""
        self._keeps_nodes = conversation
        self._guarding = Guarding(
            _Asks(chat_engine),
            evaluators,
            on_fail=on_fail,
            on_pass=on_pass,
            budget=budget,
            on_error=on_error,
            on_abstain=on_abstain,
            streaming=streaming,
            model=model,
            conversation=_said_before if conversation else None,
        )

    @property
    def chat_history(self) -> History:
        """The conversation, without rejected answers, and without one that is not over."""
        if self._turn is not None:
            return [*self._turn.before]
        return self._chat_engine.chat_history if self._history is None else [*self._history]

    def reset(self) -> None:
        """Begin a new conversation."""
        self._chat_engine.reset()
        # What the engine is still saying, it will remember.
        self._history = None if self._turn is None else []
        self._turn = None
        self._nodes = []

    def chat(self, message: str, chat_history: History | None = None) -> AgentChatResponse:
        """Answer, checked.

        Raises:
            AnswerRejected: No answer was let through.
            EvaluatorFailed: An evaluator could not decide, and `on_error` is "raise".
            DemurError: The engine returned no response, or an evaluator gives no verdict.
        """
        turn = self._begin(message, chat_history)
        with self._forgetting(turn):
            answer = self._guarding.answer(turn.ask(streams=False))
        assert isinstance(answer, Answer)  # it may open no stream
        self._remember(turn, answer)
        return _response(answer)

    async def achat(self, message: str, chat_history: History | None = None) -> AgentChatResponse:
        """As `chat`, natively asynchronous."""
        turn = await asyncio.to_thread(self._begin, message, chat_history)
        with self._forgetting(turn):
            answer = await self._guarding.aanswer(turn.ask(streams=False))
        assert isinstance(answer, Answer)  # as above
        self._remember(turn, answer)
        return _response(answer)

    def stream_chat(
        self, message: str, chat_history: History | None = None
    ) -> StreamingAgentChatResponse:
        """As `chat`, with the answer in pieces that were checked."""
        turn = self._begin(message, chat_history)
        ask = turn.ask(streams=True)
        with self._forgetting(turn):
            answer = self._guarding.answer(ask)
        end = End.of(answer.reply)
        if isinstance(answer, Opened):
            pieces = self._guarding.stream(ask, answer, self._done(turn, end))
            return _streaming(end, chat_stream=self._spoken(turn, pieces))
        self._done(turn, end)(answer)  # the engine does not stream
        return _streaming(end, chat_stream=iter([_said(answer.text, answer.text)]))

    async def astream_chat(
        self, message: str, chat_history: History | None = None
    ) -> StreamingAgentChatResponse:
        """As `stream_chat`, natively asynchronous."""
        turn = await asyncio.to_thread(self._begin, message, chat_history)
        ask = turn.ask(streams=True)
        with self._forgetting(turn):
            answer = await self._guarding.aanswer(ask)
        end = End.of(answer.reply)
        if isinstance(answer, Opened):
            pieces = self._guarding.astream(ask, answer, self._done(turn, end))
            return _streaming(end, achat_stream=self._aspoken(turn, pieces))
        self._done(turn, end)(answer)
        return _streaming(end, achat_stream=_only(_said(answer.text, answer.text)))

    # --- The conversation ----------------------------------------------------------------------

    def _begin(self, message: str, given: History | None) -> _Turn:
        before = [*(self._read_history() if given is None else given)]
        if self._turn is not None:  # a stream that nobody has read to its end
            self._history = self._turn.before
        if given is not None:  # another conversation, for all that is known
            self._nodes = []
        own = self._history if given is None else given
        self._turn = _Turn(message, before, own, (*self._nodes,))
        return self._turn

    def _read_history(self) -> History:
        try:
            return self.chat_history
        except Exception as error:
            raise DemurError(
                "the engine's conversation cannot be read, and so not be rid of rejected answers: "
                f"{error} Give the engine a memory that lists its messages, such as Memory or "
                "ChatMemoryBuffer."
            ) from error

    @contextmanager
    def _forgetting(self, turn: _Turn) -> Iterator[None]:
        """Forget a turn that raises: the engine's memory may hold what was rejected."""
        try:
            yield
        except BaseException:
            self._remember(turn, None)
            raise

    def _remember(self, turn: _Turn, answer: Answer | None) -> None:
        """Have the conversation hold the answer that left; none, if nobody read it to its end."""
        if turn is not self._turn:
            return  # over, or left behind by a later one
        self._turn = None
        if answer is None:
            self._history = turn.before
            return
        if self._keeps_nodes:
            self._nodes = distinct_nodes([*self._nodes, *answer.nodes])
        if self._history is None and answer.first and answer.reply.text == answer.text:
            return  # the engine remembers that
        user = ChatMessage(content=turn.message, role=MessageRole.USER)
        self._history = [*turn.before, user, _spoken(answer.text)]

    def _done(self, turn: _Turn, end: End) -> Callable[[Answer], None]:
        def done(answer: Answer) -> None:
            end.reached(answer)
            self._remember(turn, answer)

        return done

    def _spoken(self, turn: _Turn, pieces: Iterator[str]) -> Iterator[ChatResponse]:
        text = ""
        try:
            for piece in pieces:
                text += piece
                yield _said(text, piece)
        finally:
            self._remember(turn, None)  # unless it is done

    async def _aspoken(
        self, turn: _Turn, pieces: AsyncGenerator[str, None]
    ) -> AsyncIterator[ChatResponse]:
        text = ""
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    text += piece
                    yield _said(text, piece)
        finally:
            self._remember(turn, None)  # unless it is done


@dataclass(frozen=True, eq=False)
class _Turn:
    """One message, and the conversation before it."""

    message: str
    before: History
    given: History | None
    """What the engine is given as the history; None for its own memory."""
    nodes: Sequence[NodeWithScore] = ()
    """What earlier answers were given from."""

    def ask(self, *, streams: bool) -> Ask:
        return Ask(self.message, self, Call(may_stream=streams))


@dataclass(frozen=True)
class _Asks(Asks):
    """How a chat engine is asked."""

    engine: BaseChatEngine

    def ask(self, ask: Ask) -> Reply:
        message, history, sources = self._next(ask)
        if ask.call.may_stream and ask.feedback is None:
            return read(self.engine.stream_chat(message, history))
        return read(self.engine.chat(message, history), sources)

    async def aask(self, ask: Ask) -> Reply:
        message, history, sources = await asyncio.to_thread(self._next, ask)
        if ask.call.may_stream and ask.feedback is None:
            return read(await self.engine.astream_chat(message, history))
        return read(await self.engine.achat(message, history), sources)

    def _next(self, ask: Ask) -> tuple[str, History | None, list[NodeWithScore]]:
        """The message, the history, and the sources that are told in the message."""
        turn: _Turn = ask.given
        if ask.feedback is None:
            return turn.message, self._starting(turn.given), []
        history = self._starting(turn.before)
        if ask.tell is not None:
            return ask.tell(turn.message, ask.feedback), history, []
        sources = sources_of(ask)
        return retry_text(turn.message, ask.feedback, sources), history, sources

    def _starting(self, history: History | None) -> History | None:
        if history is None:
            return None
        if history:
            return [*history]  # some memories keep the list, and write into it
        self.engine.reset()  # some take an empty history for none, and look into their memory
        return None


def _said_before(ask: Ask) -> list[BaseMessage]:
    """The conversation before a message, as demur reads it: what the user and tools said."""
    turn: _Turn = ask.given
    read: list[BaseMessage] = [
        HumanMessage(message.content)
        if message.role is MessageRole.USER
        else ToolMessage(message.content, tool_call_id="history")
        for message in turn.before
        if message.role in (MessageRole.USER, MessageRole.TOOL) and message.content
    ]
    earlier = ToolMessage("", artifact=[*as_documents(turn.nodes)], tool_call_id="nodes")
    return [earlier, *read]


# --- What leaves ---------------------------------------------------------------------------------


def _response(answer: Answer) -> AgentChatResponse:
    """The engine's own response where the answer is its; with the result in a copy of it."""
    given = answer.reply.response
    metadata = {**answer.metadata, KEY: GuardResult.of(answer.trace)}
    if answer.unedited and isinstance(given, AgentChatResponse):
        as_given = answer.first and answer.verbatim
        nodes = given.source_nodes if as_given else answer.source_nodes
        changes = {"sources": answer.sources, "source_nodes": nodes, "metadata": metadata}
        copied: AgentChatResponse = changed(given, response=answer.text, **changes)
        return copied
    return AgentChatResponse(answer.text, answer.sources, answer.source_nodes, metadata=metadata)


@dataclass
class GuardedStreamingChatResponse(StreamingAgentChatResponse):
    """A stream of text that was checked. Its metadata is complete when it has ended."""

    metadata: dict[str, Any] = field(default_factory=dict)
    end: InitVar[End | None] = None

    def __post_init__(self, end: End | None) -> None:
        super().__post_init__()
        self._end = end

    @property
    def response_gen(self) -> Generator[str, None, None]:
        """The text in pieces. `response` is then the answer that holds."""
        yield from super().response_gen
        self._conclude()

    async def async_response_gen(self) -> AsyncGenerator[str, None]:
        """As `response_gen`, natively asynchronous."""
        async for piece in super().async_response_gen():
            yield piece
        self._conclude()

    def _conclude(self) -> None:
        if self._end is not None and self._end.text is not None:
            self.response = self._end.text


def _streaming(end: End, **stream: Any) -> GuardedStreamingChatResponse:
    return GuardedStreamingChatResponse(
        sources=end.sources,
        source_nodes=end.nodes,
        is_writing_to_memory=False,
        metadata=end.metadata,
        end=end,
        **stream,
    )


def _spoken(text: str) -> ChatMessage:
    return ChatMessage(content=text, role=MessageRole.ASSISTANT)


def _said(text: str, piece: str) -> ChatResponse:
    return ChatResponse(message=_spoken(text), delta=piece)


async def _only(response: ChatResponse) -> AsyncIterator[ChatResponse]:
    yield response
