"""Which models were called before this process was forked: those are not called here.

Their clients keep connections open. Two processes that have one in common read each other's
replies, and a judge's label would be of another answer. Clients are shared by models of a class
(langchain-openai keeps them by endpoint), so a model that is made anew is in no better case.
"""

from __future__ import annotations

from langchain_core.language_models import BaseChatModel

from demur._forks import in_child
from demur.runtime.in_process import is_local

_called: set[type[BaseChatModel]] = set()
_inherited: set[type[BaseChatModel]] = set()


def refusal(model: BaseChatModel) -> str | None:
    """Why a model must not be called in this process, or None; it then counts as called."""
    if is_local(model):
        return None  # it keeps no connections, and a process that was forked starts its own server
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
