"""Provide a chat engine whose answers are checked before anyone reads them."""

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
from demur.guard import Budget, Cite, OnError, OnFail, Streaming
from demur.schema import OnAbstain
from llama_index.evaluation.demur._answer import Answer, End
from llama_index.evaluation.demur._asking import (
    Ask,
    Asks,
    Call,
    Opened,
    distinct_nodes,
    retry_text,
    sources_of,
)
from llama_index.evaluation.demur._guarding import Guarding
from llama_index.evaluation.demur._nodes import as_documents
from llama_index.evaluation.demur._reply import Reply, changed, read
from llama_index.evaluation.demur._runnables import EvaluatorLike

History = list[ChatMessage]


class GuardedChatEngine(BaseChatEngine):
    """Check every answer of a chat engine, and recover when an answer fails.

    A guarded engine is used like the engine inside it. The question is the user's message. The
    contexts of an answer are the response's source nodes. The metadata of a response has a
    `GuardResult` under "demur".

    If an answer fails, the engine is sent the message again, with the problems, the sources of the
    failed answer, and what the retriever of a `Retrieve` finds for the failed claims. Neither this
    message nor a rejected answer is part of the conversation afterwards. From then on the guarded
    engine keeps the history itself and gives it to the engine with each message. A message whose
    call raised is not part of the conversation either.

    Like the engine, a guarded engine holds one conversation and takes one message at a time. A
    stream that is not read to its end is not part of the conversation.

    Do not guard an engine whose memory keeps more than the conversation, such as the secondary
    memories of a SimpleComposableMemory. Such a memory keeps rejected answers too. It loses
    everything it has if the first answer of a conversation fails, because the engine is then reset.

    Examples:
        >>> guarded = GuardedChatEngine(index.as_chat_engine(), RefCheckerEvaluator())
        >>> guarded.chat("How tall is the tower?").metadata["demur"]["outcome"]

    Args:
        chat_engine: Any chat engine.
        on_fail: What to do about an answer that fails. This argument, and those not described here,
            are as `GuardedQueryEngine` takes them. A chat engine does not show its retriever, so
            name one to have failed claims searched for:
            `on_fail={"neutral": Retrieve(index.as_retriever()), "any": Regenerate()}`.
        on_pass: What to do to an answer that passes, as `GuardedQueryEngine` takes it.
            `chat_history` has the answer with its marks, as the user has read it. The numbers begin
            at 1 in each answer.
        streaming: When the text of `stream_chat` leaves. At the end, the response's `response` is
            the answer that holds.
        conversation: Whether the conversation supports the answer too. The user's statements then
            count as sources and are believed ("My name is Ann."). So do results of tools in the
            history, and source nodes of earlier answers of this guarded engine. These nodes are
            kept until `reset`, or until a message comes with its own history.

    Raises:
        ValueError, TypeError: For the same reasons as in `GuardedQueryEngine`.
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
        streaming: Streaming = "buffer",
        conversation: bool = False,
        model: LLM | BaseChatModel | str | None = None,
    ) -> None:
        """Make the guarded engine; the class describes the arguments."""
        if not isinstance(chat_engine, BaseChatEngine):
            raise TypeError(
                f"expected a LlamaIndex chat engine, such as index.as_chat_engine(), got "
                f"{type(chat_engine).__name__}"
            )
        self._chat_engine = chat_engine
        self._history: History | None = None
        """The conversation, if the engine's own memory of it may be wrong."""
        self._turn: _Turn | None = None
        """The turn that has not ended. The engine may remember rejected answers of it."""
        self._nodes: list[NodeWithScore] = []
        """The source nodes of earlier answers of this conversation, if they count as sources."""
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
        """Return the conversation without rejected answers and without an unfinished turn."""
        if self._turn is not None:
            return [*self._turn.before]
        return self._chat_engine.chat_history if self._history is None else [*self._history]

    def reset(self) -> None:
        """Begin a new conversation."""
        self._chat_engine.reset()
        # The engine will remember an answer that it is still streaming.
        self._history = None if self._turn is None else []
        self._turn = None
        self._nodes = []

    def chat(self, message: str, chat_history: History | None = None) -> AgentChatResponse:
        """Return a checked answer of the engine.

        Args:
            message: The user's message.
            chat_history: The conversation before it. None: the one so far.

        Raises:
            AnswerRejected: No answer was let through.
            EvaluatorFailed: An evaluator could not decide, and `on_error` is "raise".
            DemurError: The engine returned no response, an evaluator gives no verdict, or the
                engine's conversation cannot be read.
        """
        turn = self._begin(message, chat_history)
        with self._forgetting(turn):
            answer = self._guarding.answer(turn.ask(streams=False))
        assert isinstance(answer, Answer)  # `streams=False` allows no stream
        self._remember(turn, answer)
        return _response(answer)

    async def achat(self, message: str, chat_history: History | None = None) -> AgentChatResponse:
        """Do the same as `chat`, natively asynchronous."""
        turn = await asyncio.to_thread(self._begin, message, chat_history)
        with self._forgetting(turn):
            answer = await self._guarding.aanswer(turn.ask(streams=False))
        assert isinstance(answer, Answer)  # as above
        self._remember(turn, answer)
        return _response(answer)

    def stream_chat(
        self, message: str, chat_history: History | None = None
    ) -> StreamingAgentChatResponse:
        """Do the same as `chat`, with the answer in checked pieces."""
        turn = self._begin(message, chat_history)
        ask = turn.ask(streams=True)
        with self._forgetting(turn):
            answer = self._guarding.answer(ask)
        end = End.of(answer.reply)
        if isinstance(answer, Opened):
            pieces = self._guarding.stream(ask, answer, self._done(turn, end))
            return _streaming(end, chat_stream=self._responses(turn, pieces))
        self._done(turn, end)(answer)  # the engine does not stream
        return _streaming(end, chat_stream=iter([_said(answer.text, answer.text)]))

    async def astream_chat(
        self, message: str, chat_history: History | None = None
    ) -> StreamingAgentChatResponse:
        """Do the same as `stream_chat`, natively asynchronous."""
        turn = await asyncio.to_thread(self._begin, message, chat_history)
        ask = turn.ask(streams=True)
        with self._forgetting(turn):
            answer = await self._guarding.aanswer(ask)
        end = End.of(answer.reply)
        if isinstance(answer, Opened):
            pieces = self._guarding.astream(ask, answer, self._done(turn, end))
            return _streaming(end, achat_stream=self._aresponses(turn, pieces))
        self._done(turn, end)(answer)
        return _streaming(end, achat_stream=_only(_said(answer.text, answer.text)))

    # --- The conversation ----------------------------------------------------------------------

    def _begin(self, message: str, given: History | None) -> _Turn:
        before = [*(self._read_history() if given is None else given)]
        if self._turn is not None:  # nobody has read its stream to the end
            self._history = self._turn.before
        if given is not None:  # it may be another conversation
            self._nodes = []
        own = self._history if given is None else given
        self._turn = _Turn(message, before, own, (*self._nodes,))
        return self._turn

    def _read_history(self) -> History:
        try:
            return self.chat_history
        except Exception as error:
            raise DemurError(
                "the engine's conversation cannot be read, so demur cannot keep rejected answers "
                f"out of it: {error} Give the engine a memory that lists its messages, such as "
                "Memory or ChatMemoryBuffer."
            ) from error

    @contextmanager
    def _forgetting(self, turn: _Turn) -> Iterator[None]:
        """Forget a turn that raises, because the engine's memory may hold a rejected answer."""
        try:
            yield
        except BaseException:
            self._remember(turn, None)
            raise

    def _remember(self, turn: _Turn, answer: Answer | None) -> None:
        """Add a turn to the conversation, with the answer that left.

        Args:
            turn: The turn.
            answer: The answer. None: the call raised or nobody read the answer to its end, so the
                turn is left out.
        """
        if turn is not self._turn:
            return  # it has ended, or a later turn has begun
        self._turn = None
        if answer is None:
            self._history = turn.before
            return
        if self._keeps_nodes:
            self._nodes = distinct_nodes([*self._nodes, *answer.nodes])
        if self._history is None and answer.first and answer.reply.text == answer.text:
            return  # the engine's own memory is right
        user = ChatMessage(content=turn.message, role=MessageRole.USER)
        self._history = [*turn.before, user, _spoken(answer.text)]

    def _done(self, turn: _Turn, end: End) -> Callable[[Answer], None]:
        def done(answer: Answer) -> None:
            end.reached(answer)
            self._remember(turn, answer)

        return done

    def _responses(self, turn: _Turn, pieces: Iterator[str]) -> Iterator[ChatResponse]:
        text = ""
        try:
            for piece in pieces:
                text += piece
                yield _said(text, piece)
        finally:
            self._remember(turn, None)  # unless it is done

    async def _aresponses(
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
    """Hold a message and the conversation before it."""

    message: str
    before: History
    given: History | None
    """The history that the engine is given. None: the engine uses its own memory."""
    nodes: Sequence[NodeWithScore] = ()
    """The source nodes of earlier answers."""

    def ask(self, *, streams: bool) -> Ask:
        return Ask(self.message, self, Call(may_stream=streams))


@dataclass(frozen=True)
class _Asks(Asks):
    """Ask a chat engine."""

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
        """Return the message, the history, and the sources that the message shows."""
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
            return [*history]  # some memories keep the list and write into it
        self.engine.reset()  # some engines use their memory if the history is empty
        return None


def _said_before(ask: Ask) -> list[BaseMessage]:
    """Return what the user and the tools said before a message, as LangChain messages."""
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
    """Return the response with the answer and its result.

    If the engine gave the answer, it is a copy of the engine's own response.
    """
    given = answer.reply.response
    if answer.unedited and isinstance(given, AgentChatResponse):
        as_given = answer.first and answer.verbatim
        nodes = given.source_nodes if as_given else answer.source_nodes
        copied: AgentChatResponse = changed(
            given,
            response=answer.text,
            sources=answer.sources,
            source_nodes=nodes,
            metadata=answer.metadata,
        )
        return copied
    return AgentChatResponse(
        answer.text, answer.sources, answer.source_nodes, metadata=answer.metadata
    )


@dataclass
class GuardedStreamingChatResponse(StreamingAgentChatResponse):
    """Stream text that was checked; the metadata is complete when the stream has ended."""

    metadata: dict[str, Any] = field(default_factory=dict)
    end: InitVar[End | None] = None

    def __post_init__(self, end: End | None) -> None:
        super().__post_init__()
        self._end = end

    @property
    def response_gen(self) -> Generator[str, None, None]:
        """Yield the text in pieces. At the end, `response` is the answer that holds."""
        yield from super().response_gen
        self._conclude()

    async def async_response_gen(self) -> AsyncGenerator[str, None]:
        """Do the same as `response_gen`, natively asynchronous."""
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
