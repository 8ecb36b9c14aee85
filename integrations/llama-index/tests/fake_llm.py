"""Make LlamaIndex LLMs that do what a test tells them; they prove no quality."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import openai
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from llama_index.core.base.llms.generic_utils import (
    chat_response_to_completion_response,
    prompt_to_messages,
    stream_chat_response_to_completion_response,
)
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseAsyncGen,
    CompletionResponseGen,
    LLMMetadata,
    LogProb,
    MessageRole,
)
from llama_index.core.llms import LLM, CustomLLM
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from pydantic import Field, PrivateAttr

from support.fakes import stage_of, stage_of_prompt

Script = Callable[[str, Sequence[BaseMessage]], "str | AIMessage"]
"""A function from the stage and the messages to the reply, as `support.fakes.Script`."""

_KINDS: dict[MessageRole, type[BaseMessage]] = {
    MessageRole.SYSTEM: SystemMessage,
    MessageRole.USER: HumanMessage,
    MessageRole.ASSISTANT: AIMessage,
}


def as_langchain(messages: Sequence[ChatMessage]) -> list[BaseMessage]:
    """Return the messages in the form that the scripts of `support` read."""
    return [_KINDS[one.role](content=one.content or "") for one in messages]


class _Complete(LLM):
    """Complete a prompt as a chat of one message."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name=self.model, is_chat_model=True)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return chat_response_to_completion_response(self.chat(prompt_to_messages(prompt), **kwargs))

    @llm_completion_callback()
    async def acomplete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponse:
        found = await self.achat(prompt_to_messages(prompt), **kwargs)
        return chat_response_to_completion_response(found)

    @llm_completion_callback()
    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        found = self.stream_chat(prompt_to_messages(prompt), **kwargs)
        return stream_chat_response_to_completion_response(found)

    @llm_completion_callback()
    async def astream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseAsyncGen:
        found = await self.astream_chat(prompt_to_messages(prompt), **kwargs)

        async def pieces() -> CompletionResponseAsyncGen:
            async for one in found:
                yield chat_response_to_completion_response(one)

        return pieces()


class ScriptedLLM(_Complete):
    """Reply as the script says; an exception that the script raises becomes the LLM's.

    `ScriptedLLM(script=facts.judge)` replies as `support.fakes.ScriptedModel(script=facts.judge)`
    does. The tokens of a reply are those of the script's message, or else its words are counted.
    """

    model: str = "scripted"
    temperature: float = 0.0
    script: Script = Field(exclude=True)
    reports_usage: bool = True
    """Whether a reply without token counts of its own reports its number of words."""

    _requests: list[tuple[str, list[BaseMessage], dict[str, Any]]] = PrivateAttr(
        default_factory=list
    )

    @classmethod
    def class_name(cls) -> str:
        return "scripted_llm"

    @property
    def stages(self) -> list[str]:
        """Return the stage of each request, in the order of the requests."""
        return [stage for stage, _, _ in self._requests]

    @property
    def requests(self) -> list[list[BaseMessage]]:
        """Return the messages of each request as LangChain messages."""
        return [messages for _, messages, _ in self._requests]

    @property
    def options(self) -> list[dict[str, Any]]:
        """Return the other options of each request."""
        return [options for _, _, options in self._requests]

    def _reply(self, given: Sequence[ChatMessage], options: dict[str, Any]) -> ChatResponse:
        messages = as_langchain(given)
        stage = stage_of(messages)
        self._requests.append((stage, messages, options))
        reply = self.script(stage, messages)
        message = AIMessage(reply) if isinstance(reply, str) else reply
        return _response(message, messages, self.reports_usage)

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._reply(messages, kwargs)

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        await asyncio.sleep(0)
        return self._reply(messages, kwargs)

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        def pieces() -> ChatResponseGen:
            yield from _pieces(self._reply(messages, kwargs))

        return pieces()

    @llm_chat_callback()
    async def astream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> ChatResponseAsyncGen:
        async def pieces() -> ChatResponseAsyncGen:
            for one in _pieces(self._reply(messages, kwargs)):
                await asyncio.sleep(0)
                yield one

        return pieces()


def _response(message: AIMessage, messages: Sequence[BaseMessage], counted: bool) -> ChatResponse:
    """Return the response that LlamaIndex makes of a reply in OpenAI's protocol."""
    text = str(message.text)
    metadata = message.response_metadata
    logprobs = metadata.get("logprobs")
    choice: dict[str, Any] = {
        "index": 0,
        "finish_reason": metadata.get("finish_reason", "stop"),
        "logprobs": logprobs,
    }
    usage: dict[str, int] = {}
    if (own := message.usage_metadata) is not None:
        usage = _usage(own["input_tokens"], own["output_tokens"])
    elif counted:
        usage = _usage(sum(len(str(one.text).split()) for one in messages), len(text.split()))
    return ChatResponse(
        message=ChatMessage(role=MessageRole.ASSISTANT, content=text),
        raw={"choices": [choice], **({"usage": usage} if usage else {})},
        logprobs=logprobs and [_alternatives(token) for token in logprobs["content"]],
        additional_kwargs=usage,
    )


def _usage(prompt: int, reply: int) -> dict[str, int]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": reply,
        "total_tokens": prompt + reply,
    }


def _alternatives(token: dict[str, Any]) -> list[LogProb]:
    return [LogProb(token=one["token"], logprob=one["logprob"]) for one in token["top_logprobs"]]


def _pieces(whole: ChatResponse) -> Iterator[ChatResponse]:
    """Yield a reply word by word; the last, empty piece has the data of the whole reply."""
    said = ""
    for word in re.findall(r"\s*\S+\s*$|\s*\S+", whole.message.content or ""):
        said += word
        message = ChatMessage(role=MessageRole.ASSISTANT, content=said)
        raw = {"choices": [{"index": 0, "finish_reason": None}]}
        yield ChatResponse(message=message, delta=word, raw=raw)
    yield whole.model_copy(update={"delta": ""})


class ScriptedCompletions(CustomLLM):
    """Complete prompts only, else as `ScriptedLLM`; the script reads a prompt as one message."""

    script: Script = Field(exclude=True)
    _prompts: list[str] = PrivateAttr(default_factory=list)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="completions", is_chat_model=False)

    @property
    def prompts(self) -> list[str]:
        """Return the prompt of each request."""
        return list(self._prompts)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        self._prompts.append(prompt)
        messages = [HumanMessage(prompt)]
        reply = self.script(stage_of_prompt(prompt), messages)
        text = reply if isinstance(reply, str) else str(reply.text)
        usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": len(text.split())}
        return CompletionResponse(text=text, additional_kwargs=usage)

    @llm_completion_callback()
    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        raise NotImplementedError


class EndpointLLM(_Complete):
    """Call a server with OpenAI's protocol through the openai client alone.

    LlamaIndex's own class for this is in a package that requires openai below 3.
    """

    model: str = "test"
    api_base: str
    api_key: str = Field(default="key", repr=False)
    temperature: float = 0.0
    max_tokens: int | None = None
    max_retries: int = 3
    timeout: float = 60.0
    additional_kwargs: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def class_name(cls) -> str:
        return "endpoint_llm"

    def _client(self, kind: Callable[..., Any]) -> Any:
        return kind(
            api_key=self.api_key,
            base_url=self.api_base,
            max_retries=self.max_retries,
            timeout=self.timeout,
        )

    def _request(self, messages: Sequence[ChatMessage], options: dict[str, Any]) -> dict[str, Any]:
        told = [{"role": one.role.value, "content": one.content or ""} for one in messages]
        most = {} if self.max_tokens is None else {"max_tokens": self.max_tokens}
        own = {"model": self.model, "temperature": self.temperature, **most}
        return {**own, **self.additional_kwargs, **options, "messages": told}

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        with self._client(openai.OpenAI) as client:
            return _read(client.chat.completions.create(**self._request(messages, kwargs)))

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        async with self._client(openai.AsyncOpenAI) as client:
            return _read(await client.chat.completions.create(**self._request(messages, kwargs)))

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        raise NotImplementedError

    @llm_chat_callback()
    async def astream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> ChatResponseAsyncGen:
        async def pieces() -> ChatResponseAsyncGen:
            request = {**self._request(messages, kwargs), "stream": True}
            said = ""
            async with self._client(openai.AsyncOpenAI) as client:
                async for chunk in await client.chat.completions.create(**request):
                    one = _piece(chunk, said)
                    said += one.delta or ""
                    yield one

        return pieces()


def _read(completion: Any) -> ChatResponse:
    choice = completion.choices[0]
    tokens = choice.logprobs.content if choice.logprobs else None
    usage = completion.usage
    return ChatResponse(
        message=ChatMessage(role=MessageRole.ASSISTANT, content=choice.message.content),
        raw=completion,
        logprobs=tokens
        and [
            [LogProb(token=one.token, logprob=one.logprob) for one in token.top_logprobs]
            for token in tokens
        ],
        additional_kwargs=(usage and _usage(usage.prompt_tokens, usage.completion_tokens)) or {},
    )


def _piece(chunk: Any, said: str) -> ChatResponse:
    delta = (chunk.choices[0].delta.content or "") if chunk.choices else ""
    usage = chunk.usage
    return ChatResponse(
        message=ChatMessage(role=MessageRole.ASSISTANT, content=said + delta),
        delta=delta,
        raw=chunk,
        additional_kwargs=(usage and _usage(usage.prompt_tokens, usage.completion_tokens)) or {},
    )
