import json
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from types import FunctionType
from typing import Any

import httpx
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from demur.runtime import CallPolicy, describe
from demur.runtime.retry import delay_before_retry, is_retryable, retry_after
from support.openai_server import Answer, openai_server

REQUEST = httpx.Request("POST", "http://test")


def status_error(
    status: int, code: str | None = None, headers: dict[str, str] | None = None
) -> openai.APIStatusError:
    response = httpx.Response(status, request=REQUEST, headers=headers)
    kind = openai.RateLimitError if status == 429 else openai.APIStatusError
    return kind("no", response=response, body={"code": code, "message": "no"})


def named(name: str, base: type[Exception] = Exception) -> Exception:
    return type(name, (base,), {})("no")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        *[(status_error(status), True) for status in (408, 409, 425, 429, 500, 502, 503, 529)],
        *[(status_error(status), False) for status in (400, 401, 403, 404, 413, 422)],
        (status_error(429, "insufficient_quota"), False),
        (status_error(429, "rate_limit_exceeded"), True),
        (httpx.HTTPStatusError("x", request=REQUEST, response=httpx.Response(503)), True),
        (httpx.HTTPStatusError("x", request=REQUEST, response=httpx.Response(404)), False),
        (openai.APIConnectionError(request=REQUEST), True),
        (openai.APITimeoutError(REQUEST), True),
        (httpx.ReadTimeout("slow"), True),
        (httpx.ConnectError("refused"), True),
        (httpx.RemoteProtocolError("closed"), True),
        (TimeoutError(), True),
        (ConnectionResetError(), True),
        (json.JSONDecodeError("x", "", 0), True),
        (named("APIResponseValidationError"), True),
        (named("MyReadTimeout"), True),
        (RuntimeError("Event loop is closed"), True),
        (RuntimeError("<Event> is bound to a different event loop"), True),
        (RuntimeError("Task got Future attached to a different loop"), True),
        (openai.APIError("overloaded", REQUEST, body=None), True),
        (openai.APIError("no", REQUEST, body={"code": "insufficient_quota"}), False),
        (RuntimeError("boom"), False),
        (ValueError("boom"), False),
        (KeyError("code"), False),
    ],
    ids=str,
)
def test_errors_are_retried_by_their_class(error: Exception, expected: bool) -> None:
    assert is_retryable(error) is expected


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (401, "Check the model's API key"),
        (403, "Check what the model's API key is allowed"),
        (404, "Check the model's name and the endpoint's address"),
    ],
)
def test_what_a_user_can_mend_is_said(status: int, advice: str) -> None:
    with (
        openai_server([Answer("no.", status=status)]) as server,
        pytest.raises(openai.APIStatusError) as caught,
    ):
        server.model().invoke("hello")
    assert describe(caught.value).endswith(f"no. {advice}")


def test_an_address_at_which_nothing_answers_is_named_without_its_password() -> None:
    with openai_server([]) as server:
        host = server.url.removeprefix("http://").removesuffix("/v1")
    server.url = f"http://user:secret@{host}/v1"
    with pytest.raises(openai.APIConnectionError) as caught:
        server.model().invoke("hello")
    said = describe(caught.value)
    assert said.endswith(f"Nothing answers at {host}: start the server, or correct the address")
    assert "secret" not in said


@pytest.mark.parametrize(
    ("module", "expected"),
    [("llama_index.llms.openai.base", True), ("llama_index.core.retrievers", False)],
)
def test_what_llama_index_cannot_read_is_retried(module: str, expected: bool) -> None:
    """Name the module only, because LlamaIndex's package for OpenAI requires openai below 3."""

    def stumble() -> object:
        return [][0]

    with pytest.raises(IndexError) as caught:
        FunctionType(stumble.__code__, {"__name__": module})()
    assert is_retryable(caught.value) is expected


def test_an_error_within_a_stream_is_retried() -> None:
    body = b'data: {"error": {"message": "overloaded"}}\n\n'
    answer = Answer(body=body, headers={"Content-Type": "text/event-stream"})
    with openai_server([answer]) as server, pytest.raises(openai.APIError) as caught:
        server.model(streaming=True).invoke("hello")
    assert is_retryable(caught.value)


def test_the_same_errors_from_elsewhere_are_not_taken_for_the_endpoint_s() -> None:
    retriever = InMemoryVectorStore(DeterministicFakeEmbedding(size=2))
    with pytest.raises(ValueError, match="search_type") as caught:
        retriever.search("x", search_type="none")
    assert not is_retryable(caught.value)
    assert describe(caught.value).startswith("ValueError: ")


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
    ],
)
def test_retry_after_is_read_in_seconds(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after(status_error(429, headers=headers)) == expected


def test_retry_after_may_be_a_date() -> None:
    then = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=100))
    found = retry_after(status_error(429, headers={"retry-after": then}))
    assert found == pytest.approx(100, abs=10)


@given(st.integers(1, 9), st.floats(0, 60), st.floats(0, 60))
def test_pauses_double_with_jitter_up_to_the_longest(
    attempt: int, first: float, longest: float
) -> None:
    policy = CallPolicy(attempts=10, first_delay=first, max_delay=longest, deadline=1000)
    delay = delay_before_retry(TimeoutError(), attempt, 0, policy)
    whole = min(first * 2 ** (attempt - 1), longest)
    assert delay is not None
    assert whole / 2 <= delay <= whole


@pytest.mark.parametrize(
    ("error", "attempt", "spent", "retried"),
    [
        (TimeoutError(), 1, 0.0, True),
        (TimeoutError(), 3, 0.0, False),
        (ValueError(), 1, 0.0, False),
        (TimeoutError(), 1, 29.4, True),
        (TimeoutError(), 1, 29.9, False),
        (status_error(429, headers={"retry-after": "40"}), 1, 0.0, False),
        (status_error(429, headers={"retry-after": "25"}), 1, 10.0, False),
        (status_error(429, headers={"retry-after": "inf"}), 1, 0.0, False),
    ],
    ids=str,
)
def test_the_last_try_and_the_deadline_end_it(
    error: Exception, attempt: int, spent: float, retried: bool
) -> None:
    policy = CallPolicy(attempts=3, first_delay=0.5, deadline=30)
    assert (delay_before_retry(error, attempt, spent, policy) is not None) is retried


def test_the_server_s_wish_may_go_beyond_the_longest_pause() -> None:
    error = status_error(429, headers={"retry-after": "25"})
    assert delay_before_retry(error, 1, 0, CallPolicy(max_delay=2)) == 25
    error = status_error(429, headers={"retry-after": "0"})
    delay = delay_before_retry(error, 1, 0, CallPolicy(first_delay=2))
    assert delay is not None
    assert delay >= 1


@pytest.mark.parametrize("wrapped", [0, 1, 2], ids=["itself", "the SDK's", "LangChain's"])
@pytest.mark.parametrize(("attempt", "delay"), [(1, 0.0), (3, 0.0), (102, 0.0), (103, None)])
def test_connections_of_another_event_loop_are_used_up_at_once(
    attempt: int, delay: float | None, wrapped: int
) -> None:
    policy = CallPolicy(attempts=3, first_delay=5)
    error: Exception = RuntimeError("Event loop is closed")
    for _ in range(wrapped):  # openai 2 and langchain-openai wrap it so.
        cause, error = error, openai.APIConnectionError(request=REQUEST)
        error.__cause__ = cause
    assert delay_before_retry(error, attempt, 0, policy) == delay
    assert delay_before_retry(error, attempt, policy.deadline, policy) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("attempts", 0), ("timeout", 0), ("timeout", float("nan")), ("deadline", -1),
        ("first_delay", -0.1), ("max_delay", float("nan")), ("max_concurrency", 0),
        ("hedge_after", 0), ("hedge_after", float("nan")),
    ],
)  # fmt: skip
def test_a_policy_out_of_range_names_the_field(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{field} must .*got {value}"):
        CallPolicy(**{field: value})


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("a\n  b"), "ValueError: a b"),
        (TimeoutError(), "TimeoutError"),
        (ValueError("x" * 900), "ValueError: " + "x" * 500),
    ],
)
def test_an_error_is_told_in_one_line(error: Exception, expected: str) -> None:
    assert describe(error) == expected
