"""Decide which failed model calls are worth a retry, and when."""

from __future__ import annotations

import json
import math
import random
import re
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from demur._text import replace_surrogates

_RETRYABLE_4XX = frozenset({408, 409, 425, 429})
_REFUSALS = frozenset({400, 413, 422})
# Transport faults of httpx, requests and the provider SDKs, by class name along the MRO, so that
# none of those packages has to be imported here.
_TRANSPORT_FAULTS = frozenset(
    {"TransportError", "APIConnectionError", "ConnectionError", "Timeout", "APITimeoutError"}
)
# Faults of the server, too: a reply that is not valid JSON or does not follow the protocol, and an
# error in the middle of a stream, which has no status.
_FAULTY_REPLIES = frozenset({"APIResponseValidationError", "APIError"})
# Errors of a framework that reads a reply of which only the status follows the protocol: no
# choices, a page of HTML, a null, or an error in place of the message.
_STUMBLES = frozenset({AttributeError, IndexError, KeyError, TypeError, ValueError})
_STALE = re.compile(r"Event loop is closed|(?:bound|attached) to a different (?:event )?loop")
_ADVICE = {
    401: "Check the model's API key",
    403: "Check what the model's API key is allowed",
    404: "Check the model's name and the endpoint's address",
}
"""The advice to the user, by HTTP status."""
# No connection: nothing listens at the address, or the name cannot be resolved.
_REFUSED = frozenset({"ConnectError", "ConnectionRefusedError", "gaierror", "NewConnectionError"})
_LONGEST_NAME = 60
_DEEPEST = 8
"""The most causes of an error that are looked at."""
_MOST_POOLED = 100
"""The most idle connections that the SDKs' pools keep."""


@dataclass(frozen=True)
class CallPolicy:
    """Set the retries, the time limits and the concurrency of model calls.

    Raises:
        ValueError: A field is out of its range.
    """

    attempts: int = 4
    """The most attempts at a request, the first one included; at least 1."""
    timeout: float = 120.0
    """The seconds that one attempt may take; greater than 0."""
    deadline: float = 300.0
    """The seconds that all attempts at a request, with the pauses, may take; greater than 0.

    Waiting for a free slot does not count.
    """
    first_delay: float = 0.5
    """The seconds before the first retry, at least 0; doubles with each retry, with jitter."""
    max_delay: float = 20.0
    """The longest pause in seconds, at least 0, unless the server asks for a longer one."""
    max_concurrency: int = 64
    """The number of requests to one model at the same time; at least 1.

    The limit holds for each event loop, and for all threads together.
    """
    hedge_after: float | None = None
    """The seconds after which a request without a reply is made a second time; greater than 0.

    None: never. The first reply is taken, and both requests count as calls of one attempt. At most
    one request in ten to a model is made twice, with ten more at first, and only while a slot is
    free. Requests for samples are never made twice: the shorter reply would come first.
    """

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"attempts must be at least 1, got {self.attempts}")
        for name in ("timeout", "deadline"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")
        for name in ("first_delay", "max_delay"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
        if self.max_concurrency < 1:
            raise ValueError(f"max_concurrency must be at least 1, got {self.max_concurrency}")
        if self.hedge_after is not None and not self.hedge_after > 0:
            raise ValueError(f"hedge_after must be positive, got {self.hedge_after}")


def policy_for(model: object, policy: CallPolicy | None) -> CallPolicy:
    """Return the given policy, else the model's own (`call_policy`), else the default."""
    if policy is not None:
        return policy
    own = getattr(model, "call_policy", None)
    return own if isinstance(own, CallPolicy) else CallPolicy()


def delay_before_retry(
    error: BaseException, attempt: int, spent: float, policy: CallPolicy
) -> float | None:
    """Return the seconds to wait before the next retry, or None if the call has failed for good.

    Args:
        error: The exception of the last attempt.
        attempt: The number of attempts so far; at least 1.
        spent: The seconds that the attempts and pauses took so far.
        policy: The limits.
    """
    if _is_stale(error):
        # The endpoint has not failed. Each connection in the pool may still fail in this way.
        again = attempt < policy.attempts + _MOST_POOLED and spent < policy.deadline
        return 0.0 if again else None
    if attempt >= policy.attempts or not is_retryable(error):
        return None
    delay = min(policy.first_delay * 2 ** (attempt - 1), policy.max_delay)
    # Jitter keeps callers that failed together from coming back together.
    delay *= random.uniform(0.5, 1.0)
    least = retry_after(error)
    if least is not None:
        delay = max(delay, least)
    return delay if spent + delay < policy.deadline else None


def is_retryable(error: BaseException) -> bool:
    """Return whether a retry may succeed.

    It may after rate limits, timeouts, transport faults, 5xx and garbled replies. It cannot after
    another 4xx, a spent quota, or an error of the program itself.
    """
    if _is_quota(error):
        return False
    status = _status(error)
    if status is not None:
        return status >= 500 or status in _RETRYABLE_4XX
    if isinstance(error, (TimeoutError, ConnectionError, json.JSONDecodeError)):
        return True
    if _is_stale(error):
        return True
    names = {cls.__name__ for cls in type(error).__mro__}
    return (
        bool(names & (_TRANSPORT_FAULTS | _FAULTY_REPLIES))
        or "Timeout" in type(error).__name__
        or _is_misread(error)
    )


def is_refusal(error: BaseException) -> bool:
    """Return whether a model refused what a request held, so that a smaller one may be answered."""
    if (status := _status(error)) is not None:
        return status in _REFUSALS
    return isinstance(error, (ValueError, NotImplementedError)) and not is_retryable(error)


def retry_after(error: BaseException) -> float | None:
    """Return the seconds that `retry-after-ms` or `Retry-After` asks to wait, or None."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    if headers is None:
        return None
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * scale
        except ValueError:
            seconds = _seconds_until(value)
        if not math.isnan(seconds):
            return max(0.0, seconds)
    return None


def is_control_flow(error: BaseException) -> bool:
    """Return whether the exception is LangGraph's own control flow, such as an interrupt."""
    return any(base.__name__ == "GraphBubbleUp" for base in type(error).__mro__)


def is_interrupt(error: BaseException) -> bool:
    """Return whether the exception interrupts a LangGraph graph until someone resumes it."""
    return any(base.__name__ == "GraphInterrupt" for base in type(error).__mro__)


def describe(error: BaseException) -> str:
    """Return one line that names the error's class, repeats its message and says what to do."""
    text = replace_surrogates(" ".join(str(error).split()))
    described = f"{type(error).__name__}: {text[:500]}" if text else type(error).__name__
    if (advice := _advice(error)) is not None:
        return f"{described.rstrip('.')}. {advice}"
    # LangChain's own message would be about an index out of range, or the like.
    return f"the reply holds no message ({described})" if _is_misread(error) else described


def _advice(error: BaseException) -> str | None:
    """Return the advice for a model's error that a user can fix, or None."""
    status = _status(error)
    if status in _ADVICE:
        return _ADVICE[status]
    if status is None and any(type(cause).__name__ in _REFUSED for cause in _chain(error)):
        # Only the host is shown: an address may hold a password.
        host = urlsplit(str(getattr(getattr(error, "request", None), "url", ""))).netloc
        at = f" at {host.rpartition('@')[2]}" if host else ""
        return f"Nothing answers{at}: start the server, or correct the address"
    return None


def cause_of(error: BaseException) -> str:
    """Return the class of an error, with its HTTP status if it has one, for anyone to see.

    The error's message is left out: it may quote an answer, or hold a credential.
    """
    name, status = type(error).__name__, _status(error)
    kind = name if name.isidentifier() and len(name) <= _LONGEST_NAME else "Exception"
    return kind if status is None else f"{kind} {status}"


def _status(error: BaseException) -> int | None:
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "http_status", "code"):
            value = getattr(holder, name, None)
            # A garbled reply may carry its response, with status 200.
            if isinstance(value, int) and 400 <= value < 600:
                return value
    return None


def _is_stale(error: BaseException) -> bool:
    """Return whether a client's pool gave out a connection that belongs to another event loop.

    All loops share LangChain's clients, even loops that have ended. The pool drops such a
    connection when it fails. Some SDKs, such as openai 2, raise an error of their own from this
    failure.
    """
    *_, first = _chain(error)
    return type(first) is RuntimeError and bool(_STALE.search(str(first)))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes."""
    yield error
    for _ in range(_DEEPEST):  # an error may be its own cause
        if error.__cause__ is None:
            break
        error = error.__cause__
        yield error


def _is_misread(error: BaseException) -> bool:
    """Return whether a chat model class of LangChain or LlamaIndex could not read the reply."""
    if type(error) not in _STUMBLES:
        return False
    *_, last = (
        "",
        *(
            str(frame.f_globals.get("__name__"))
            for frame, _ in traceback.walk_tb(error.__traceback__)
        ),
    )
    langchains = last.startswith("langchain_") and "chat_models" in last
    return langchains or last.startswith("llama_index.llms.")


def _is_quota(error: BaseException) -> bool:
    """Return whether the quota is spent: the status is 429, but waiting does not help."""
    return getattr(error, "code", None) == "insufficient_quota"


def _seconds_until(date: str) -> float:
    """Return the seconds until an HTTP date, or NaN if the text is not a date."""
    try:
        then = parsedate_to_datetime(date)
    except (ValueError, OverflowError):
        return math.nan
    if then.tzinfo is None:
        then = then.replace(tzinfo=timezone.utc)
    return (then - datetime.now(timezone.utc)).total_seconds()
