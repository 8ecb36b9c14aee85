"""Test that budgets count with a local tokenizer of the model, and never wait for one."""

from __future__ import annotations

from typing import Any

import pytest
import tiktoken
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI

from demur import Budget, Guard, RefChecker
from demur._text import count_tokens
from demur.runtime.counting import prompt_tokens

TEXT = "Where is the Louvre, and since when is it a museum?"
ASKED = [HumanMessage(TEXT)]
ESTIMATE = (count_tokens(TEXT), True)


def letters(text: str) -> list[int]:
    return [*text.encode()]


def test_a_tokenizer_that_the_user_gave_counts() -> None:
    model = FakeListChatModel(responses=["x"], custom_get_token_ids=letters)
    assert prompt_tokens(model, [*ASKED, *ASKED]) == (2 * len(TEXT), False)


class Service(FakeListChatModel):
    """Count by a request, as ChatGoogleGenerativeAI does."""

    def get_num_tokens(self, text: str) -> int:
        pytest.fail("the service was asked")


class PassesOn(FakeListChatModel):
    """Count by LangChain's default, as ChatBedrock does for models that are not Anthropic's."""

    def get_token_ids(self, text: str) -> list[int]:
        pytest.fail("LangChain's default was asked")


@pytest.mark.parametrize("kind", [Service, PassesOn])
def test_a_count_of_the_models_class_is_not_asked_for(kind: Any) -> None:
    assert prompt_tokens(kind(responses=["x"]), ASKED) == ESTIMATE
    given = kind(responses=["x"], custom_get_token_ids=letters)
    assert prompt_tokens(given, ASKED) == (len(TEXT), False)


def test_langchains_default_is_no_tokenizer_of_the_models() -> None:
    assert prompt_tokens(FakeListChatModel(responses=["x"]), ASKED) == ESTIMATE


@pytest.fixture
def openai(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Any:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tiktoken.registry, "ENCODINGS", {})
    return lambda name: ChatOpenAI(model=name, api_key="k", base_url="http://127.0.0.1:9/v1")


def test_openais_tables_are_not_downloaded(openai: Any) -> None:
    assert prompt_tokens(openai("gpt-4o"), ASKED) == ESTIMATE


def test_openais_tables_count_where_they_are_at_hand(openai: Any) -> None:
    table = tiktoken.Encoding(
        "o200k_base",
        pat_str=r"\S+|\s+",
        mergeable_ranks={bytes([byte]): byte for byte in range(256)},
        special_tokens={},
    )
    tiktoken.registry.ENCODINGS["o200k_base"] = table
    assert prompt_tokens(openai("gpt-4o"), ASKED) == (len(TEXT), False)
    assert prompt_tokens(openai("llama-3"), ASKED) == ESTIMATE  # The model is another provider's.


@pytest.mark.parametrize(
    ("tokenizer", "how"), [(letters, "counted by its tokenizer"), (None, "estimated")]
)
def test_the_trace_says_how_a_prompt_was_counted_that_the_budget_refused(
    tokenizer: Any, how: str
) -> None:
    model = FakeListChatModel(responses=["x"], custom_get_token_ids=tokenizer)
    guard = Guard(
        lambda asked: {"answer": "The Louvre is in Paris.", "context": [TEXT]},
        RefChecker(model),
        budget=Budget(tokens=20),
    )
    trace = guard.with_trace().invoke({"input": TEXT}).trace
    said = [trace.reason, *(str(one.error) for one in trace.attempts[0].evaluations)]
    assert any(f"20 tokens is used up, the next prompt {how}" in text for text in said), said
