"""Decide which failed model calls are worth a retry, and when."""

from __future__ import annotations

import json
import math
import random
import re
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

from demur.runtime.failures import chain_of, is_misread, status_of
from demur.runtime.policy import CallPolicy

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
_STALE = re.compile(r"Event loop is closed|(?:bound|attached) to a different (?:event )?loop")
_MOST_POOLED = 100
"""The most idle connections that the SDKs' pools keep."""


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
    status = status_of(error)
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
        or is_misread(error)
    )


def is_refusal(error: BaseException) -> bool:
    """Return whether a model refused what a request held, so that a smaller one may be answered."""
    if (status := status_of(error)) is not None:
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


def _is_stale(error: BaseException) -> bool:
    """Return whether a client's pool gave out a connection that belongs to another event loop.

    All loops share LangChain's clients, even loops that have ended. The pool drops such a
    connection when it fails. Some SDKs, such as openai 2, raise an error of their own from this
    failure.
    """
    *_, first = chain_of(error)
    return type(first) is RuntimeError and bool(_STALE.search(str(first)))


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
