from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.chat_engine.types import (
    AgentChatResponse,
    BaseChatEngine,
    StreamingAgentChatResponse,
)
from llama_index.core.memory import Memory, VectorMemory
from llama_index.embeddings.langchain import LangchainEmbedding

from demur import (
    AnswerRejected,
    Block,
    Budget,
    Cite,
    DemurError,
    Retrieve,
    Strip,
)
from demur.guard import REFUSAL
from guarded_app import (
    assert_cited,
    chat_engine,
    finds,
    judge,
    llm_of,
    nodes_of,
    prompts,
    sentence_judge,
    written,
)
from llama_index.evaluation.demur._result import trace_of
from llama_index.evaluation.demur.chat_engine import GuardedChatEngine
from support.rag import FACTS, QUESTION, RIGHT, WRONG, WordEmbeddings
from support.waiting import until

CALLS = ["chat", "achat", "stream_chat", "astream_chat"]
KINDS = ["context", "condense_question", "condense_plus_context"]
PAIRS = [*zip([*KINDS, "context"], CALLS, strict=True)]
BOTH = pytest.mark.parametrize("call", ["chat", "astream_chat"])
THANKS = "You are welcome."


def say(call: str, chat: BaseChatEngine, message: str = QUESTION, history: Any = None) -> Any:
    """Send a message and return its response, after reading its stream to the end."""

    async def in_loop() -> Any:
        response: Any = await getattr(chat, call)(message, history)
        if call == "astream_chat":
            response.pieces = [one async for one in response.async_response_gen()]
        return response

    if call.startswith("a"):
        return asyncio.run(in_loop())
    response = getattr(chat, call)(message, history)
    if call == "stream_chat":
        response.pieces = list(response.response_gen)
    return response


def told(chat: BaseChatEngine) -> list[str | None]:
    return [message.content for message in chat.chat_history]


@pytest.mark.parametrize(("kind", "call"), PAIRS)
def test_a_good_answer(kind: str, call: str) -> None:
    chat = GuardedChatEngine(chat_engine(kind, RIGHT), judge())
    response = say(call, chat)
    streams = "stream" in call
    assert isinstance(response, StreamingAgentChatResponse if streams else AgentChatResponse)
    assert response.response == RIGHT
    assert not streams or "".join(response.pieces) == RIGHT
    assert response.metadata["demur"]["outcome"] == "passed"
    assert response.source_nodes
    assert response.sources
    assert told(chat) == [QUESTION, RIGHT]


@pytest.mark.smoke
@pytest.mark.parametrize(("kind", "call"), PAIRS)
def test_a_rejected_answer_is_no_part_of_the_conversation(kind: str, call: str) -> None:
    inner = chat_engine(kind, WRONG)
    model: Any = llm_of(inner)
    script = iter([WRONG, RIGHT])
    # When a condensing engine asks for a standalone question, its model gives the question.
    model.script = lambda _, messages: (
        QUESTION if _condenses(str(messages[-1].text)) else next(script, THANKS)
    )
    chat = GuardedChatEngine(inner, judge())
    response = say(call, chat)
    assert response.response == RIGHT
    assert WRONG not in str(response.sources)
    assert not any("97" in str(one.raw_input) for one in response.sources), "as it was told"
    assert response.metadata["demur"]["outcome"] == "recovered"
    assert told(chat) == [QUESTION, RIGHT]
    say(call, chat, "Thank you.")
    assert told(chat) == [QUESTION, RIGHT, "Thank you.", THANKS]
    assert not any("97" in prompt for prompt in prompts(model)[-1:])
    say(call, chat, "Bye.")
    assert not any("97" in prompt for prompt in prompts(model)[-2:])
    chat.reset()
    assert told(chat) == []


def _condenses(prompt: str) -> bool:
    return "standalone question" in prompt.lower()


@pytest.mark.parametrize("call", CALLS)
def test_no_answer_passes(call: str) -> None:
    chat = GuardedChatEngine(chat_engine("context", WRONG), judge())
    response = say(call, chat)
    assert response.response == REFUSAL
    assert response.metadata["demur"]["outcome"] == "abstained"
    assert told(chat) == [QUESTION, REFUSAL]
    assert trace_of(response).attempts[0].answer == WRONG


@BOTH
def test_a_call_that_raises_leaves_no_trace_in_the_conversation(call: str) -> None:
    inner = chat_engine("context", RIGHT, WRONG, WRONG, RIGHT)
    chat = GuardedChatEngine(inner, judge(), on_fail=Block(), budget=Budget(attempts=1))
    say(call, chat)
    with pytest.raises(AnswerRejected):
        say(call, chat, "And now?")
    assert told(chat) == [QUESTION, RIGHT]
    first = GuardedChatEngine(chat_engine("context", WRONG), judge(), on_fail=Block())
    with pytest.raises(AnswerRejected):
        say(call, first)
    assert told(first) == []


@BOTH
def test_a_history_that_is_given(call: str) -> None:
    inner = chat_engine("context", WRONG, RIGHT, RIGHT)
    given = [
        ChatMessage(role=MessageRole.USER, content="Hello."),
        ChatMessage(role=MessageRole.ASSISTANT, content="Good day."),
    ]
    chat = GuardedChatEngine(inner, judge())
    say(call, chat, QUESTION, given)
    assert told(chat) == ["Hello.", "Good day.", QUESTION, RIGHT]
    assert "Good day." in prompts(llm_of(inner))[0]
    assert len(given) == 2
    say(call, chat, QUESTION, [])
    assert told(chat) == [QUESTION, RIGHT]


@BOTH
def test_what_is_searched_for_is_told_to_the_engine(call: str) -> None:
    inner = chat_engine("context", WRONG, RIGHT)
    chat = GuardedChatEngine(inner, judge(), on_fail=Retrieve(finds(FACTS[3])))
    response = say(call, chat)
    assert response.response == RIGHT
    assert FACTS[3] in prompts(llm_of(inner))[-1]
    contexts = trace_of(response).attempts[-1].contexts
    assert FACTS[3] in [one.page_content for one in contexts]
    assert told(chat) == [QUESTION, RIGHT]


@pytest.mark.parametrize("call", ["stream_chat", "astream_chat"])
def test_by_sentences(call: str) -> None:
    good = f"{RIGHT} It was opened in 1911."
    chat = GuardedChatEngine(chat_engine("context", good), judge(), streaming="sentence")
    response = say(call, chat)
    assert len(response.pieces) == 2
    assert "".join(response.pieces) == good == response.response
    assert told(chat) == [QUESTION, good]


TOLD, KNOWN = "My order is 4411.", "Your order is 4411."


@BOTH
@pytest.mark.parametrize("conversation", [True, False])
def test_the_user_supports_an_answer_if_told_so(call: str, conversation: bool) -> None:
    inner = chat_engine("context", RIGHT, KNOWN)
    chat = GuardedChatEngine(inner, judge(), on_fail="abstain", conversation=conversation)
    say(call, chat, TOLD)
    response = say(call, chat, "What is my order?")
    assert response.response == (KNOWN if conversation else REFUSAL)
    held = [one.metadata.get("source") for one in trace_of(response).attempts[0].contexts]
    assert ("user" in held) is conversation


def test_the_assistant_supports_none() -> None:
    history = [
        ChatMessage(role=MessageRole.USER, content="What is my order?"),
        ChatMessage(role=MessageRole.ASSISTANT, content=KNOWN),
    ]
    chat = GuardedChatEngine(
        chat_engine("context", KNOWN), judge(), on_fail="abstain", conversation=True
    )
    assert say("chat", chat, "Again?", history).response == REFUSAL


@pytest.mark.parametrize(("call", "conversation"), [("chat", True), ("achat", False)])
def test_the_nodes_of_earlier_answers_support_one_if_told_so(call: str, conversation: bool) -> None:
    inner = chat_engine("context", RIGHT, "Not at all.", RIGHT)
    chat = GuardedChatEngine(inner, judge(), on_fail="abstain", conversation=conversation)
    ferry = "When does the ferry to the northern islands sail?"
    said = [say(call, chat, text).response for text in (QUESTION, ferry, ferry)]
    assert said[0] == RIGHT
    assert said[2] == (RIGHT if conversation else REFUSAL)
    # In another conversation, the nodes do not count as sources.
    assert say(call, chat, ferry, []).response == REFUSAL
    chat.reset()
    assert say(call, chat, ferry).response == REFUSAL


MARKED = "The Amber Tower is 84 metres tall [1]."


@pytest.mark.parametrize(("kind", "call"), PAIRS)
def test_what_supports_an_answer_is_shown_and_part_of_the_conversation(
    kind: str, call: str
) -> None:
    inner = chat_engine(kind, RIGHT)
    chat = GuardedChatEngine(inner, sentence_judge(), on_pass=Cite())
    response = say(call, chat)
    assert response.response == MARKED
    assert not hasattr(response, "pieces") or "".join(response.pieces) == MARKED
    assert_cited(response)
    assert response.source_nodes[0].node.get_content() == FACTS[0]
    assert response.sources
    assert told(chat) == [QUESTION, MARKED]
    llm_of(inner).script = lambda *_: f"{RIGHT} [4]"
    again = say(call, chat, "Again?")
    assert MARKED in "".join(prompts(llm_of(inner))[-2:])
    assert again.response == MARKED
    assert told(chat) == [QUESTION, MARKED, "Again?", MARKED]


def test_the_users_words_are_cited_where_they_support_an_answer() -> None:
    inner = chat_engine("context", RIGHT, KNOWN, RIGHT)
    chat = GuardedChatEngine(
        inner, sentence_judge(), on_fail="abstain", on_pass=Cite(), conversation=True
    )
    say("chat", chat, TOLD)
    response = say("chat", chat, "What is my order?")
    (cited,) = response.metadata["demur"]["citations"]
    assert response.response == f"Your order is 4411 [{cited['number']}]."
    assert response.source_nodes[cited["number"] - 1].text == TOLD
    assert_cited(response)
    # Nodes of earlier answers are cited too, but the user's words are not kept as a node.
    ferry = say("chat", chat, "When does the ferry to the northern islands sail?")
    assert_cited(ferry)
    assert not any(node.text == TOLD for node in ferry.source_nodes)


@pytest.mark.parametrize(("call", "streaming"), [("chat", "buffer"), ("astream_chat", "sentence")])
def test_what_fails_is_taken_out_of_the_conversation_too(call: str, streaming: Any) -> None:
    said = f"{RIGHT} The house beside it has 999 rooms. The tower was opened in 1911."
    chat = GuardedChatEngine(
        chat_engine("context", said),
        sentence_judge(),
        on_fail=Strip(),
        on_pass=Cite(),
        streaming=streaming,
    )
    response = say(call, chat)
    assert response.response == f"{MARKED} The tower was opened in 1911 [2]."
    assert response.metadata["demur"]["outcome"] == "trimmed"
    assert_cited(response)
    assert told(chat) == [QUESTION, response.response]
    assert "999 rooms" not in str(response.sources)


def test_a_stream_that_nobody_reads_is_no_part_of_the_conversation() -> None:
    """Forget the unread answer, although LlamaIndex's engines remember it in their own thread."""
    inner = chat_engine("simple", WRONG)
    chat = GuardedChatEngine(inner, judge(), on_error="open")
    unread: Any = chat.stream_chat(QUESTION)
    until(lambda: len(inner.chat_history) == 2)
    assert told(chat) == []
    llm_of(inner).script = lambda *_: RIGHT
    chat.chat("And now?")
    assert told(chat) == ["And now?", RIGHT]
    assert list(unread.response_gen)  # This comes too late.
    assert told(chat) == ["And now?", RIGHT]
    chat.chat("And then?")
    assert told(chat)[2:] == ["And then?", RIGHT]
    assert "97" not in prompts(llm_of(inner))[-1]


def test_a_memory_that_cannot_be_listed() -> None:
    memory = VectorMemory.from_defaults(embed_model=LangchainEmbedding(WordEmbeddings()))
    with pytest.raises(DemurError, match="conversation cannot be read"):
        say("chat", GuardedChatEngine(chat_engine("context", RIGHT, memory=memory), judge()))


@pytest.mark.parametrize(
    ("kind", "call"), [("context", "stream_chat"), ("condense_question", "achat")]
)
def test_nothing_that_is_written_down_tells_what_was_rejected(kind: str, call: str) -> None:
    response = say(call, GuardedChatEngine(chat_engine(kind, WRONG), judge()))
    assert "97 metres" not in written(response)


async def test_the_default_memory_and_a_stream_that_is_left() -> None:
    inner = chat_engine("context", RIGHT, WRONG, RIGHT, RIGHT, memory=Memory.from_defaults())
    chat = GuardedChatEngine(inner, judge())
    await chat.achat(QUESTION)
    await chat.achat("And now?")
    response = await chat.astream_chat("And then?")
    stream: Any = response.achat_stream
    await anext(stream)
    await stream.aclose()
    assert told(chat) == [QUESTION, RIGHT, "And now?", RIGHT]
    assert (await chat.achat("Well?")).response == RIGHT
    assert told(chat) == [QUESTION, RIGHT, "And now?", RIGHT, "Well?", RIGHT]


class Plain(BaseChatEngine):
    """Represent a custom engine whose streaming calls do not stream."""

    def __init__(self, *answers: str) -> None:
        self._coming = list(answers)
        self._told: list[ChatMessage] = []

    def chat(self, message: str, chat_history: Any = None) -> AgentChatResponse:
        said = self._coming.pop(0)
        self._told = [*(chat_history if chat_history is not None else self._told)]
        self._told += [
            ChatMessage(role=MessageRole.USER, content=message),
            ChatMessage(role=MessageRole.ASSISTANT, content=said),
        ]
        return AgentChatResponse(said, source_nodes=nodes_of(FACTS[0]))

    async def achat(self, message: str, chat_history: Any = None) -> AgentChatResponse:
        return self.chat(message, chat_history)

    def stream_chat(self, message: str, chat_history: Any = None) -> Any:
        return self.chat(message, chat_history)

    async def astream_chat(self, message: str, chat_history: Any = None) -> Any:
        return self.chat(message, chat_history)

    def reset(self) -> None:
        self._told = []

    @property
    def chat_history(self) -> list[ChatMessage]:
        return self._told


@BOTH
def test_an_engine_of_ones_own(call: str) -> None:
    chat = GuardedChatEngine(Plain(WRONG, RIGHT), judge())
    response = say(call, chat)
    assert response.response == RIGHT
    assert not hasattr(response, "pieces") or response.pieces == [RIGHT]
    assert told(chat) == [QUESTION, RIGHT]


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="expected a LlamaIndex chat engine"):
        GuardedChatEngine("chat", judge())  # type: ignore[arg-type]  # what is refused
    with pytest.raises(ValueError, match="needs an evaluator"):
        GuardedChatEngine(Plain())
