"""Adapt a LlamaIndex LLM as a chat model that demur's evaluators can ask."""

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
from demur._system import lock
from demur.observe import is_secret_name
from demur.schema.fingerprints import function_fingerprint, host_of
from llama_index.evaluation.demur._metering import while_judging
from llama_index.evaluation.demur._usage import metadata_of, tokens_of

_ROLES = {"human": MessageRole.USER, "ai": MessageRole.ASSISTANT}
# Fields that have no effect on an LLM's replies; and the context window, which Ollama's class
# asks the server for with the first request.
_OPERATION = frozenset(
    {
        *("callback_manager", "rate_limiter", "max_retries", "timeout", "request_timeout"),
        *("keep_alive", "reuse_client", "class_name", "context_window"),
    }
)
# LLMs leave these fields out of their dumps, but the prompt depends on them.
_TEMPLATES = ("messages_to_prompt", "completion_to_prompt")


class LlamaIndexChat(BaseChatModel):
    """Represent a LlamaIndex LLM as a LangChain chat model; `as_chat_model` makes one for each LLM.

    If the LLM has `max_retries`, a copy without retries is asked, because demur retries itself and
    the two would multiply. The LLM itself stays unchanged. What is asked and answered here belongs
    to a judge, as `while_judging` describes. Errors are those of the LLM. The LLM replies at once:
    a stream has one piece.
    """

    # Hidden, because the repr of an LLM shows its keys.
    llm: InstanceOf[LLM] = Field(repr=False, exclude=True)
    """The LLM that replies."""

    _asked: LLM = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Choose the object to ask: the LLM, or its copy without retries."""
        super().model_post_init(context)
        self._asked = _without_retries(self.llm)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the LLM, which is adapted anew when the pickle is loaded."""
        return as_chat_model, (self.llm,)

    @property
    def model_name(self) -> str:
        """Return the LLM's name for its model."""
        named = (getattr(self._asked, name, None) for name in ("model", "model_name"))
        found = next((name for name in named if isinstance(name, str) and name), None)
        return found or self._asked.metadata.model_name

    @property
    def max_tokens(self) -> int | None:
        """Return the most tokens of a reply, if the LLM has that limit."""
        most = getattr(self._asked, "max_tokens", None)
        return most if isinstance(most, int) else None

    @property
    def _llm_type(self) -> str:
        return "llama-index"

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        # The name is added for LLMs whose fields do not show it: caches would confuse them.
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
"""The adapters by the id of their LLM, which an adapter keeps alive. demur's limits, and its
sharing of identical requests, depend on the model object. So an LLM has one adapter, for all
evaluators."""
_lock = lock()


def as_chat_model(llm: LLM | BaseChatModel | str | None = None) -> BaseChatModel:
    """Return the chat model that demur's evaluators ask.

    Args:
        llm: A LlamaIndex LLM, a LangChain chat model, or a name for `demur.resolve_model`, such as
            "openai:gpt-4o-mini" or "local". If you change the settings of an LLM later, adapt it
            again, because demur may ask a copy. For a LangChainLLM of LlamaIndex, the chat model
            inside it is used, because LangChainLLM reports no tokens and blocks the event loop.
            None: `Settings.llm`.

    Raises:
        TypeError: The value is none of these.
        ValueError, DemurError: A name is not known or its model is not available, as in
            `demur.resolve_model`.
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
    """Return whether the object that is asked still has the LLM's settings, keys included."""
    return all(
        getattr(asked, name, None) is getattr(llm, name, None)
        for name in type(llm).model_fields
        if name != "max_retries"
    )


def _without_retries(llm: LLM) -> LLM:
    """Return the LLM, or a copy of it that does not retry."""
    if "max_retries" not in type(llm).model_fields or not getattr(llm, "max_retries", None):
        return llm
    copied = llm.model_copy(update={"max_retries": 0})
    # Clients that exist already, such as those of OpenAI and Anthropic, have their own retries.
    private = copied.__pydantic_private__ or {}
    for name, client in private.items():
        if hasattr(client, "with_options") and getattr(client, "max_retries", None):
            private[name] = client.with_options(max_retries=0)
    return copied


def _blocks(llm: LLM, method: str) -> bool:
    """Return whether an asynchronous method is that of `CustomLLM`.

    That one calls the synchronous method in the event loop.
    """
    return next(kind for kind in type(llm).__mro__ if method in vars(kind)) is CustomLLM


def _told(llm: LLM) -> dict[str, Any]:
    """Return what identifies an LLM, without keys: its class, and its fields with plain values."""
    kind = type(llm)
    values = {
        name: getattr(llm, name, None)
        for name, field in kind.model_fields.items()
        if (name in _TEMPLATES or not field.exclude)
        and name not in _OPERATION
        and not is_secret_name(name)
    }
    # Without unset fields and LlamaIndex's own templates, which its next release may change.
    told = {
        name: _plain(value)
        for name, value in values.items()
        if value is not None
        and not (name in _TEMPLATES and str(value.__module__).startswith("llama_index.core."))
    }
    return {"class": f"{kind.__module__}.{kind.__qualname__}", **told}


def _plain(value: object) -> object:
    if isinstance(value, str):
        return host_of(value) if "://" in value else str(value)  # an address may have a password
    if value is None or isinstance(value, (int, float)):
        return value
    if isinstance(value, Mapping):
        named = ((str(name), one) for name, one in value.items())
        return {name: _plain(one) for name, one in named if not is_secret_name(name)}
    if isinstance(value, (list, tuple)):
        return [*map(_plain, value)]
    if isinstance(value, LLM):  # an LLM inside another
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
            "a LlamaIndex LLM can only be asked with texts in system, human and ai messages, got a "
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
