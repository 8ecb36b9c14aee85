"""Which failed model calls are worth another try, and when."""

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
# Transport faults of httpx, requests and the provider SDKs, by class name along the MRO, so that
# none of those packages has to be imported here.
_TRANSPORT_FAULTS = frozenset(
    {"TransportError", "APIConnectionError", "ConnectionError", "Timeout", "APITimeoutError"}
)
# The server's fault too: a reply that is no valid JSON or not of the protocol's shape, and an error
# in the midst of a stream, which comes without a status.
_FAULTY_REPLIES = frozenset({"APIResponseValidationError", "APIError"})
# What reading a reply fails with in a framework, where only the status keeps to the protocol: no
# choices, a page of HTML, a null, an error in place of the message.
_STUMBLES = frozenset({AttributeError, IndexError, KeyError, TypeError, ValueError})
_STALE = re.compile(r"Event loop is closed|(?:bound|attached) to a different (?:event )?loop")
_ADVICE = {
    401: "Check the model's API key",
    403: "Check what the model's API key is allowed",
    404: "Check the model's name and the endpoint's address",
}
"""What to do, by HTTP status."""
# No connection: an address that nothing listens at, or a name that nobody knows.
_REFUSED = frozenset({"ConnectError", "ConnectionRefusedError", "gaierror", "NewConnectionError"})
_LONGEST_NAME = 60
_DEEPEST = 8
"""Causes of an error that are looked at."""
_MOST_POOLED = 100
"""Idle connections that the SDKs' pools keep at most."""


@dataclass(frozen=True)
class CallPolicy:
    """How long, how often and how many at once model calls may be tried.

    Raises:
        ValueError: A field is out of its range.
    """

    attempts: int = 4
    """Tries per request, the first included; at least 1."""
    timeout: float = 120.0
    """Seconds that one try may take; > 0."""
    deadline: float = 300.0
    """Seconds that all tries of a request and the pauses between them may take; > 0.
    Waiting for a free slot does not count."""
    first_delay: float = 0.5
    """Seconds before the second try; doubles from try to try, with jitter."""
    max_delay: float = 20.0
    """The longest pause in seconds, unless the server asks for a longer one."""
    max_concurrency: int = 64
    """Requests to one model at a time, in one event loop or over all threads; at least 1."""
    hedge_after: float | None = None
    """Seconds after which a request without a reply is made a second time; > 0, None: never. The
    first reply is taken, and both requests count as calls of one try. At most one request in ten
    to a model is made twice, and only while a slot is free. Requests for samples never are: the
    shorter reply would come first."""

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
    """The policy that was given, else the model's own (`call_policy`), else the default."""
    if policy is not None:
        return policy
    own = getattr(model, "call_policy", None)
    return own if isinstance(own, CallPolicy) else CallPolicy()


def delay_before_retry(
    error: BaseException, attempt: int, spent: float, policy: CallPolicy
) -> float | None:
    """Seconds to wait before trying again, or None if the call has failed for good.

    Args:
        error: What the try raised.
        attempt: How many tries were made; at least 1.
        spent: Seconds that the tries and pauses took so far.
        policy: The limits.
    """
    if _is_stale(error):
        # The endpoint has not failed, and as many of the kind may follow as the pool holds.
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
    """Whether another try may succeed.

    It may after rate limits, timeouts, transport faults, 5xx and garbled replies; not after another
    4xx, a spent quota, or an error of the program itself.
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


def retry_after(error: BaseException) -> float | None:
    """Seconds the server asked to wait (`Retry-After`, `retry-after-ms`), or None."""
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
    """Whether an exception is langgraph's way to stop a graph, such as an interrupt: no failure."""
    return any(base.__name__ == "GraphBubbleUp" for base in type(error).__mro__)


def is_interrupt(error: BaseException) -> bool:
    """Whether an exception stops a graph of langgraph until someone resumes it."""
    return any(base.__name__ == "GraphInterrupt" for base in type(error).__mro__)


def describe(error: BaseException) -> str:
    """Return one line that names the error's class, repeats its message and says what to do."""
    text = replace_surrogates(" ".join(str(error).split()))
    described = f"{type(error).__name__}: {text[:500]}" if text else type(error).__name__
    if (advice := _advice(error)) is not None:
        return f"{described.rstrip('.')}. {advice}"
    # LangChain's own words are of an index out of range, and the like.
    return f"the reply holds no message ({described})" if _is_misread(error) else described


def _advice(error: BaseException) -> str | None:
    """Return what to do about an error of a model that a user can mend."""
    status = _status(error)
    if status in _ADVICE:
        return _ADVICE[status]
    if status is None and any(type(cause).__name__ in _REFUSED for cause in _chain(error)):
        # The host alone: an address may hold a password.
        host = urlsplit(str(getattr(getattr(error, "request", None), "url", ""))).netloc
        at = f" at {host.rpartition('@')[2]}" if host else ""
        return f"Nothing answers{at}: start the server, or correct the address"
    return None


def cause_of(error: BaseException) -> str:
    """What kind of error it is, for anyone to see: the class, and the HTTP status if it has one.

    What an error says may quote an answer, or hold a credential.
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
    """Whether a client's pool gave out a connection that belongs to another event loop.

    LangChain's clients are shared by all loops, those that have ended included. The pool drops such
    a connection when it fails. Some SDKs raise an error of their own from that, as openai 2 does.
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
    """Whether a chat model's class of LangChain's, or of LlamaIndex's, could not read the reply."""
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
    """A spent quota comes as 429 but does not come back by waiting."""
    return getattr(error, "code", None) == "insufficient_quota"


def _seconds_until(date: str) -> float:
    """Seconds until an HTTP date, NaN if it is none."""
    try:
        then = parsedate_to_datetime(date)
    except (ValueError, OverflowError):
        return math.nan
    if then.tzinfo is None:
        then = then.replace(tzinfo=timezone.utc)
    return (then - datetime.now(timezone.utc)).total_seconds()
