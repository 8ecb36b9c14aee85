"""Tell what an error is, and say it in words: its class, its message, and what to do."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from urllib.parse import urlsplit

from demur._text import replace_surrogates

# Errors of a framework that reads a reply of which only the status follows the protocol: no
# choices, a page of HTML, a null, or an error in place of the message.
_STUMBLES = frozenset({AttributeError, IndexError, KeyError, TypeError, ValueError})
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
    return f"the reply holds no message ({described})" if is_misread(error) else described


def _advice(error: BaseException) -> str | None:
    """Return the advice for a model's error that a user can fix, or None."""
    status = status_of(error)
    if status in _ADVICE:
        return _ADVICE[status]
    if status is None and any(type(cause).__name__ in _REFUSED for cause in chain_of(error)):
        # Only the host is shown: an address may hold a password.
        host = urlsplit(str(getattr(getattr(error, "request", None), "url", ""))).netloc
        at = f" at {host.rpartition('@')[2]}" if host else ""
        return f"Nothing answers{at}: start the server, or correct the address"
    return None


def cause_of(error: BaseException) -> str:
    """Return the class of an error, with its HTTP status if it has one, for anyone to see.

    The error's message is left out: it may quote an answer, or hold a credential.
    """
    name, status = type(error).__name__, status_of(error)
    kind = name if name.isidentifier() and len(name) <= _LONGEST_NAME else "Exception"
    return kind if status is None else f"{kind} {status}"


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status that an error tells, from 400 on; None if it tells none."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "http_status", "code"):
            value = getattr(holder, name, None)
            # A garbled reply may carry its response, with status 200.
            if isinstance(value, int) and 400 <= value < 600:
                return value
    return None


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes."""
    yield error
    for _ in range(_DEEPEST):  # an error may be its own cause
        if error.__cause__ is None:
            break
        error = error.__cause__
        yield error


def is_misread(error: BaseException) -> bool:
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
