"""Test a LlamaIndex LLM as a chat model: messages, streams, tokens, errors, identity."""

from __future__ import annotations

import asyncio
import gc
import pickle
import weakref
from typing import Any

import openai
import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from llama_index.core import Settings
from llama_index.core.base.llms.types import (
    LLMMetadata,
)
from pydantic import BaseModel, PrivateAttr

from demur import CallPolicy, RefChecker
from demur.schema.fingerprints import model_fingerprint
from fake_llm import EndpointLLM, ScriptedCompletions, ScriptedLLM
from llama_index.evaluation.demur._llm import LlamaIndexChat, as_chat_model
from llama_index.evaluation.demur._metering import is_judging
from support import facts
from support.fakes import ScriptedModel
from support.openai_server import Answer, openai_server
from support.waiting import NEVER

TALK = [SystemMessage("Be brief."), HumanMessage("Hi."), AIMessage("Yes?"), HumanMessage("Who?")]


def _says(text: str) -> Any:
    return lambda stage, messages: text


@pytest.fixture
def llm() -> ScriptedLLM:
    return ScriptedLLM(script=_says("It is  Ada, who\nis there."))


@pytest.fixture
def chat(llm: ScriptedLLM) -> BaseChatModel:
    return as_chat_model(llm)


# --- Messages ---------------------------------------------------------------------------------


async def test_messages_and_replies_are_the_same_each_way(
    llm: ScriptedLLM, chat: BaseChatModel
) -> None:
    (streamed,) = chat.stream(TALK)  # The reply comes in one piece.
    replies = [chat.invoke(TALK), await chat.ainvoke(TALK), streamed]
    assert {str(reply.text) for reply in replies} == {"It is  Ada, who\nis there."}
    for reply in replies:
        assert reply.usage_metadata == {
            "input_tokens": 5,
            "output_tokens": 6,
            "total_tokens": 11,
        }
        assert reply.response_metadata["finish_reason"] == "stop"
    told = [(message.type, str(message.text)) for message in TALK]
    for request in llm.requests:
        assert [(message.type, str(message.text)) for message in request] == told
    assert len(llm.requests) == 3


def test_what_cannot_be_said_to_an_llm_is_refused(llm: ScriptedLLM, chat: BaseChatModel) -> None:
    for message in (
        ToolMessage("found", tool_call_id="1"),
        AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "1"}]),
        HumanMessage([{"type": "image_url", "image_url": {"url": "http://127.0.0.1/a.png"}}]),
    ):
        with pytest.raises(ValueError, match="texts in system, human and ai messages, got a"):
            chat.invoke([message])
    assert llm.requests == []


async def test_options_reach_the_llm(llm: ScriptedLLM, chat: BaseChatModel) -> None:
    chat.invoke(TALK, max_tokens=3, stop=["."])
    await chat.ainvoke(TALK, max_tokens=3)
    assert llm.options == [{"max_tokens": 3, "stop": ["."]}, {"max_tokens": 3}]


# --- Models that only complete ----------------------------------------------------------------


async def test_completions_are_chats_too() -> None:
    llm = ScriptedCompletions(script=_says("Ada, who else."))
    model = as_chat_model(llm)
    replies = [model.invoke(TALK), await model.ainvoke(TALK)]
    assert [str(reply.text) for reply in replies] == ["Ada, who else."] * 2
    assert replies[0].usage_metadata == replies[1].usage_metadata
    assert replies[0].usage_metadata is not None
    assert replies[0].usage_metadata["output_tokens"] == 3
    for prompt in llm.prompts:
        assert prompt.startswith("system: Be brief.\nuser: Hi.")


async def test_completions_do_not_hold_up_the_event_loop() -> None:
    loop = asyncio.get_running_loop()
    within: list[bool] = []

    def script(stage: str, messages: Any) -> str:
        try:
            within.append(asyncio.get_running_loop() is loop)
        except RuntimeError:
            within.append(False)
        assert is_judging()
        return "Ada"

    model = as_chat_model(ScriptedCompletions(script=script))
    await model.ainvoke(TALK)
    assert within == [False]


# --- Errors and retries -----------------------------------------------------------------------

_PATIENT = CallPolicy(attempts=3, first_delay=0)
_SAMPLE = facts.sample(2)


@pytest.mark.parametrize(
    ("fault", "a_sync"),
    [
        (Answer(status=429, headers={"retry-after-ms": "30"}), True),
        (Answer(status=500), False),
        (Answer(cut=True), True),
        (Answer(body=b"{", headers={}), False),
    ],
    ids=["429", "500", "cut", "garbled"],
)
async def test_what_may_pass_is_asked_again_and_by_one_alone(fault: Answer, a_sync: bool) -> None:
    with openai_server(
        lambda request, number: fault if number % 3 < 2 else facts.serve(request, number)
    ) as server:
        llm = EndpointLLM(api_base=server.url)
        checker = RefChecker(as_chat_model(llm), call_policy=_PATIENT)
        found = await checker.ainvoke(_SAMPLE) if a_sync else checker.invoke(_SAMPLE)
        assert facts.grade(2, found) == "right"
        # Each of two requests fails twice. If the client retried by itself, it would hide these
        # tries, or multiply them.
        assert found.usage.calls == len(server.requests) == 6
        assert llm.max_retries == 3


def test_what_cannot_pass_is_not_asked_again() -> None:
    with openai_server([Answer("no such key", status=401)]) as server:
        checker = RefChecker(as_chat_model(EndpointLLM(api_base=server.url)))
        found = checker.invoke(_SAMPLE)
        assert found.undetermined
        assert "AuthenticationError" in str(found.error)
        assert len(server.requests) == 1


async def test_a_reply_that_does_not_come_is_given_up() -> None:
    with openai_server([Answer(held=NEVER)]) as server:
        policy = CallPolicy(attempts=1, timeout=0.3)
        checker = RefChecker(as_chat_model(EndpointLLM(api_base=server.url)), call_policy=policy)
        for found in (await checker.ainvoke(_SAMPLE), checker.invoke(_SAMPLE)):
            assert "no reply within 0.3 s" in str(found.error)


class _Clients(ScriptedLLM):
    """Keep a client that was made earlier, as LlamaIndex's OpenAI and Anthropic classes do."""

    max_retries: int = 3
    _client: Any = PrivateAttr()
    _none: Any = PrivateAttr(default=None)

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        self._client = openai.OpenAI(api_key="key", max_retries=self.max_retries)

    @property
    def client(self) -> openai.OpenAI:
        assert isinstance(self._client, openai.OpenAI)
        return self._client


def test_clients_that_were_made_before_ask_once_too() -> None:
    llm = _Clients(script=_says("Ada"))
    model = as_chat_model(llm)
    assert isinstance(model, LlamaIndexChat)
    asked = model._asked
    assert isinstance(asked, _Clients)
    assert (asked.max_retries, asked.client.max_retries) == (0, 0)
    assert (llm.max_retries, llm.client.max_retries) == (3, 3)
    assert model.llm is llm


# --- One adapter, and its identity ------------------------------------------------------------


def test_an_llm_has_one_adapter_for_as_long_as_it_is_used() -> None:
    """Adapt once, so that identical requests of two evaluators are sent once, as by one model."""
    llm = ScriptedLLM(script=_says("Ada"))
    first = as_chat_model(llm)
    assert as_chat_model(llm) is first
    assert as_chat_model(ScriptedLLM(script=_says("Ada"))) is not first
    gone = weakref.ref(first)
    del first
    gc.collect()
    assert gone() is None


def test_an_llm_that_was_changed_is_adapted_anew() -> None:
    llm = EndpointLLM(api_base="http://127.0.0.1:1/v1")
    before = as_chat_model(llm)
    llm.temperature = 0.5
    after = as_chat_model(llm)
    assert model_fingerprint(after) != model_fingerprint(before)
    llm.api_key = "new"
    last = as_chat_model(llm)
    assert isinstance(last, LlamaIndexChat)
    assert last._asked.api_key == "new"  # type: ignore[attr-defined]  # an EndpointLLM
    assert model_fingerprint(last) == model_fingerprint(after)


class _AsksForItsWindow(ScriptedLLM):
    """Learn the server's context window with the first request, as LlamaIndex's Ollama does."""

    context_window: int = -1

    @property
    def metadata(self) -> LLMMetadata:
        self.context_window = 4096
        return super().metadata


def test_fingerprints_are_the_same_after_the_first_request() -> None:
    llm = _AsksForItsWindow(script=facts.judge)
    checker = RefChecker(as_chat_model(llm))
    before = checker.fingerprints
    checker.invoke(_SAMPLE)
    assert llm.context_window == 4096
    assert checker.fingerprints == before


def _endpoint(**options: Any) -> EndpointLLM:
    return EndpointLLM(**{"api_base": "http://127.0.0.1:1/v1", **options})


def test_fingerprints_tell_llms_apart_and_no_key() -> None:
    told = {
        model_fingerprint(as_chat_model(llm))
        for llm in (
            _endpoint(),
            _endpoint(model="other"),
            _endpoint(temperature=0.5),
            _endpoint(max_tokens=5),
            _endpoint(api_base="http://127.0.0.1:2/v1"),
            _endpoint(additional_kwargs={"seed": 1}),
            ScriptedLLM(script=_says("Ada")),
        )
    }
    assert len(told) == 7
    same = [
        _endpoint(),
        _endpoint(api_key="other"),
        _endpoint(max_retries=0),
        _endpoint(timeout=1),
        _endpoint(additional_kwargs={"extra_headers": {"Authorization": "Bearer x"}}),
    ]
    models = [as_chat_model(llm) for llm in same[:4]]
    assert len({model_fingerprint(model) for model in models}) == 1
    assert "test" in model_fingerprint(models[0])
    for llm in same:
        shown = as_chat_model(llm)
        for text in (repr(shown), str(shown._identifying_params), shown._get_llm_string()):
            assert "Bearer" not in text
            assert "'key'" not in text


def test_passwords_in_addresses_are_not_told() -> None:
    model = as_chat_model(_endpoint(api_base="http://ada:pass@127.0.0.1:1/v1"))
    for text in (repr(model), str(model._identifying_params), model._get_llm_string()):
        assert "pass@" not in text


class _KeepsItsModel(ScriptedLLM):
    """Name the model in the metadata only, as wrappers of other frameworks do."""

    _inner: str = PrivateAttr()

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name=self._inner, is_chat_model=True)


def test_caches_tell_llms_apart() -> None:
    cache = InMemoryCache()
    models = []
    for name in ("one", "two"):
        llm = _KeepsItsModel(model="", script=_says(name))
        llm._inner = name
        models.append(as_chat_model(llm))
        models[-1].cache = cache
    assert [str(model.invoke(TALK).text) for model in models * 2] == ["one", "two"] * 2
    assert [len(model.llm.requests) for model in models] == [1, 1]  # type: ignore[attr-defined]  # adapters


class _Painted(BaseModel):
    colour: str


def test_an_llm_within_another_is_told_too() -> None:
    cold, hot = (_endpoint(temperature=t).as_structured_llm(_Painted) for t in (0.0, 1.0))
    assert model_fingerprint(as_chat_model(cold)) != model_fingerprint(as_chat_model(hot))
    again = _endpoint(temperature=0.0, api_key="other").as_structured_llm(_Painted)
    assert model_fingerprint(as_chat_model(cold)) == model_fingerprint(as_chat_model(again))


def test_pickles_ask_the_same() -> None:
    model = as_chat_model(ScriptedLLM(script=facts.speak))
    copied = pickle.loads(pickle.dumps(model))
    assert model_fingerprint(copied) == model_fingerprint(model)
    assert copied.invoke("What is item 3 like?").text == facts.answer(3)
    assert as_chat_model(copied.llm) is copied


# --- What is accepted -------------------------------------------------------------------------


def test_langchain_s_models_and_names_are_taken_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = ScriptedModel(script=facts.speak)
    assert as_chat_model(model) is model
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    assert as_chat_model("openai:some-name").model_name == "some-name"  # type: ignore[attr-defined]  # ChatOpenAI
    with pytest.raises(ValueError, match="unknown model 'nobody'"):
        as_chat_model("nobody")


class _Around(ScriptedLLM):
    """Wrap a LangChain model, as LlamaIndex's LangChainLLM does."""

    _llm: Any = PrivateAttr()

    @property
    def llm(self) -> Any:
        return self._llm


def test_a_langchain_model_within_an_llm_is_asked_itself() -> None:
    model = ScriptedModel(script=facts.speak)
    around = _Around(script=_says("Ada"))
    around._llm = model
    assert as_chat_model(around) is model
    around._llm = "another thing"
    assert isinstance(as_chat_model(around), LlamaIndexChat)


def test_without_a_model_the_settings_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    llm = ScriptedLLM(script=_says("Ada"))
    monkeypatch.setattr(Settings, "_llm", llm)
    model = as_chat_model()
    assert isinstance(model, LlamaIndexChat)
    assert model.llm is llm


@pytest.mark.parametrize("wrong", [7, ScriptedLLM], ids=["int", "class"])
def test_what_is_no_model_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="expected a LlamaIndex LLM, a LangChain chat model or"):
        as_chat_model(wrong)
