"""Refuse to call models that were called before this process was forked.

Their clients keep connections open. Two processes that share a connection read each other's
replies, so a judge's label could belong to another answer. Models of a class share clients
(langchain-openai keeps them by endpoint). So a new model of the same class is refused, too.
"""

from __future__ import annotations

from langchain_core.language_models import BaseChatModel

from demur._system import in_child
from demur.runtime.in_process import is_local

_called: set[type[BaseChatModel]] = set()
_inherited: set[type[BaseChatModel]] = set()


def refusal(model: BaseChatModel) -> str | None:
    """Return why a model must not be called in this process, or None if it may be.

    Its class counts as called from now on.
    """
    if is_local(model):
        return None  # it keeps no connections, and a forked process starts a server of its own
    kind = type(model)
    _called.add(kind)
    if kind not in _inherited:
        return None
    return (
        f"a {kind.__name__} was called before this process was forked, and both processes could "
        "read each other's replies from the connections that they share. Fork before the first "
        "call, or start processes by 'spawn' or 'forkserver'"
    )


in_child(lambda: _inherited.update(_called))
