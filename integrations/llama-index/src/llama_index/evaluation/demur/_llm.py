"""A LlamaIndex LLM as the chat model that demur's evaluators ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole
from llama_index.core.llms import LLM, CustomLLM
from llama_index.core.settings import Settings
from pydantic import Field, InstanceOf, PrivateAttr

from demur import resolve_model
from demur._fingerprints import function_fingerprint, host_of
from demur._forks import lock
from demur.observe import is_secret_name
from llama_index.evaluation.demur._metering import while_judging
from llama_index.evaluation.demur._usage import metadata_of, tokens_of

_ROLES = {"human": MessageRole.USER, "ai": MessageRole.ASSISTANT}
# Of an LLM's fields those that change nothing about what it says; and the context window, which
# Ollama's class asks of the server with the first request.
_OPERATION = frozenset(
    {
        *("callback_manager", "rate_limiter", "max_retries", "timeout", "request_timeout"),
        *("keep_alive", "reuse_client", "class_name", "context_window"),
    }
)
# Left out of what LLMs write down, but they make the prompt.
_TEMPLATES = ("messages_to_prompt", "completion_to_prompt")


class LlamaIndexChat(BaseChatModel):
    """A LlamaIndex LLM as a LangChain chat model. `as_chat_model` makes one for each LLM.

    Where the LLM has `max_retries`, a copy without them is asked, since demur tries again itself
    and both would multiply; the LLM stays as it is. What is asked and answered here is a judge's:
    see `while_judging`. Errors are those of the LLM. It replies whole: a stream of it is one piece.
    """

    # Not shown: LLMs show their keys.
    llm: InstanceOf[LLM] = Field(repr=False, exclude=True)
    """Whose replies these are."""

    _asked: LLM = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Find what is asked."""
        super().model_post_init(context)
        self._asked = _without_retries(self.llm)

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle holds the LLM, as far as that can be pickled, and is adapted anew."""
        return as_chat_model, (self.llm,)

    @property
    def model_name(self) -> str:
        """What the LLM calls its model."""
        named = (getattr(self._asked, name, None) for name in ("model", "model_name"))
        found = next((name for name in named if isinstance(name, str) and name), None)
        return found or self._asked.metadata.model_name

    @property
    def max_tokens(self) -> int | None:
        """How long the LLM's replies may be, where it says so."""
        most = getattr(self._asked, "max_tokens", None)
        return most if isinstance(most, int) else None

    @property
    def _llm_type(self) -> str:
        return "llama-index"

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        # Some LLMs keep what they ask to themselves: caches would take them for each other.
        return {"model_name": _plain(self.model_name), **_told(self._asked)}

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        with while_judging():
            return _result(self._asked.chat(self._given(messages), **_options(stop, kwargs)))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        if _blocks(self._asked, "achat"):
            return await super()._agenerate(messages, stop, None, **kwargs)  # in a thread
        with while_judging():
            return _result(await self._asked.achat(self._given(messages), **_options(stop, kwargs)))

    def _given(self, messages: Sequence[BaseMessage]) -> list[ChatMessage]:
        system = self._asked.metadata.system_role
        return [_given(message, system) for message in messages]


_adapters: WeakValueDictionary[int, LlamaIndexChat] = WeakValueDictionary()
"""By the id of the LLM, which an adapter keeps alive. demur's limits, and its sharing of identical
requests, go by the model object: so an LLM has one adapter, whoever asks for it."""
_lock = lock()


def as_chat_model(llm: LLM | BaseChatModel | str | None = None) -> BaseChatModel:
    """The chat model that demur's evaluators ask.

    Args:
        llm: A LlamaIndex LLM, of which settings that are changed later count only where it is
            adapted again; a LangChain chat model, also within LlamaIndex's LangChainLLM, which
            would tell of no tokens and hold up the event loop; or a name for
            `demur.resolve_model`, such as "openai:gpt-4o-mini" or "local". None: `Settings.llm`.

    Raises:
        TypeError: It is none of these.
        ValueError, DemurError: Of a name, as `resolve_model` says.
    """
    llm = Settings.llm if llm is None else llm
    if isinstance(llm, LLM) and isinstance(within := getattr(llm, "llm", None), BaseChatModel):
        llm = within
    if isinstance(llm, (str, BaseChatModel)):
        return resolve_model(llm)
    if not isinstance(llm, LLM):
        raise TypeError(
            "expected a LlamaIndex LLM, a LangChain chat model or a model's name, got "
            f"{type(llm).__name__}"
        )
    with _lock:
        known = _adapters.get(id(llm))
        if known is None or not _is_as(known._asked, llm):
            known = _adapters[id(llm)] = LlamaIndexChat(llm=llm)
        return known


def _is_as(asked: LLM, llm: LLM) -> bool:
    """Whether the copy that is asked still has its LLM's settings, keys included."""
    return all(
        getattr(asked, name, None) is getattr(llm, name, None)
        for name in type(llm).model_fields
        if name != "max_retries"
    )


def _without_retries(llm: LLM) -> LLM:
    """The LLM, or a copy of it that asks once."""
    if "max_retries" not in type(llm).model_fields or not getattr(llm, "max_retries", None):
        return llm
    copied = llm.model_copy(update={"max_retries": 0})
    # Clients that were made before know for themselves how often to try: OpenAI's, Anthropic's.
    private = copied.__pydantic_private__ or {}
    for name, client in private.items():
        if hasattr(client, "with_options") and getattr(client, "max_retries", None):
            private[name] = client.with_options(max_retries=0)
    return copied


def _blocks(llm: LLM, method: str) -> bool:
    """Whether an asynchronous method is `CustomLLM`'s, which calls the other in the event loop."""
    return next(kind for kind in type(llm).__mro__ if method in vars(kind)) is CustomLLM


def _told(llm: LLM) -> dict[str, Any]:
    """What tells an LLM from others, without keys: its class, and its fields that are values."""
    kind = type(llm)
    values = {
        name: getattr(llm, name, None)
        for name, field in kind.model_fields.items()
        if (name in _TEMPLATES or not field.exclude)
        and name not in _OPERATION
        and not is_secret_name(name)
    }
    # Neither what is not set nor LlamaIndex's own templates: its next release may have others.
    told = {
        name: _plain(value)
        for name, value in values.items()
        if value is not None
        and not (name in _TEMPLATES and str(value.__module__).startswith("llama_index.core."))
    }
    return {"class": f"{kind.__module__}.{kind.__qualname__}", **told}


def _plain(value: object) -> object:
    if isinstance(value, str):
        return host_of(value) if "://" in value else str(value)  # a password may stand in it
    if value is None or isinstance(value, (int, float)):
        return value
    if isinstance(value, Mapping):
        named = ((str(name), one) for name, one in value.items())
        return {name: _plain(one) for name, one in named if not is_secret_name(name)}
    if isinstance(value, (list, tuple)):
        return [*map(_plain, value)]
    if isinstance(value, LLM):  # within another
        return _told(value)
    if callable(value):
        return function_fingerprint(value)
    return type(value).__qualname__


def _options(stop: list[str] | None, options: Mapping[str, Any]) -> dict[str, Any]:
    return {**options, **({} if stop is None else {"stop": stop})}


def _given(message: BaseMessage, system: MessageRole) -> ChatMessage:
    role = system if message.type == "system" else _ROLES.get(message.type)
    content = message.content
    blocks = [] if isinstance(content, str) else content
    texts = all(isinstance(block, str) or block.get("type") == "text" for block in blocks)
    if role is None or not texts or getattr(message, "tool_calls", None):
        raise ValueError(
            f"a LlamaIndex LLM is asked here with texts of system, human and ai alone, got a "
            f"{message.type} message{'' if texts else ' with other content'}"
        )
    return ChatMessage(role=role, content=str(message.text))


def _result(response: ChatResponse) -> ChatResult:
    message = AIMessage(
        content=response.message.content or "",
        usage_metadata=tokens_of(response),
        response_metadata=metadata_of(response),
    )
    return ChatResult(generations=[ChatGeneration(message=message)])
