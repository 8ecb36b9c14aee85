"""Provide `guarded_node`, which checks the answer of a graph's node before it leaves the node."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast
from uuid import uuid4

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from pydantic import BaseModel

from demur.evaluators import EvaluatorLike
from demur.guard import Budget, Cite, Feedback, OnError, OnFail, refuse_memory
from demur.schema import OnAbstain
from demur.shapes import CALLS, check_reader, find_messages, sources, tool_calls
from langchain_demur._messages import tell
from langchain_demur._run import (
    MESSAGES,
    Call,
    Evaluators,
    Guards,
    NoAnswerYet,
    named_apart,
    policy_of,
    read_state,
    rejected_in,
    view_of,
)
from langchain_demur._update import read_update

Node = TypeVar("Node", bound=Callable[..., Any] | Runnable[Any, Any])
Reader = str | Callable[[Any], Any]

_STATE = "demur:state"
_DOCUMENTS = ("context", "contexts", "source_documents", "documents")


def guarded_node(
    node: Node,
    *evaluators: EvaluatorLike | Sequence[EvaluatorLike],
    on_fail: OnFail = None,
    on_pass: Cite | None = None,
    budget: Budget | None = None,
    on_error: OnError = "closed",
    on_abstain: OnAbstain = "pass",
    question: Reader | None = None,
    answer: str | None = None,
    contexts: Reader | None = None,
    conversation: bool = False,
    system: bool = False,
    model: str | BaseChatModel | None = None,
) -> Node:
    """Return a node whose answer is checked before it is streamed or written to the state.

    The answer is the last message of the model in the node's update. If the update has no such
    message, it is the value under `answer`, `output`, `result`, `response` or `generation`. The
    answer is judged against the first of these that there is:

    - documents in the update
    - documents that retrievers in the node returned
    - documents in the state, under `context`, `contexts`, `source_documents` or `documents`
    - what tools returned

    What it says that was done is judged by the calls of tools, too.

    A message that calls tools goes through without the text beside its calls.

    What runs inside the node is not streamed, and graphs inside it keep no checkpoint. What the
    node itself writes to the custom stream is not held back. A graph inside the node cannot be
    interrupted, so `HallucinationMiddleware` is better for an agent.

    Examples:
        >>> graph.add_node("generate", guarded_node(generate, RefChecker("openai:gpt-4o-mini")))

    Args:
        node: A function or a Runnable, such as a chain or a compiled graph, that takes the state
            and returns an update or a `Command` with an update.
        evaluators: One or more evaluators, as `demur.Guard` takes them.
        on_fail: What to do about an answer that fails, as `demur.Guard` takes it. The `tell` of a
            `Regenerate` takes the state and the `Feedback`, and returns the state for the next
            attempt. Without a `tell`, the state's messages, if it has any, get one more that
            describes the problems. The state's list of documents, if it has one, gets the documents
            that were found.
        on_pass: What to do to an answer that passes. With `Cite()`, each supported sentence shows
            its sources. A message has its citations in `response_metadata["demur"]["citations"]`.
        budget: The limits of one run of the node. `attempts` counts all answers to one user
            message, even if the node calls tools between them.
        on_error: What to do with an answer that an evaluator could not decide about, as
            `demur.Guard` takes it.
        on_abstain: What to do with an answer that states nothing to check, as `demur.Guard` takes
            it.
        question: Where the question is: a key of the state, or a function of the state.
        answer: The key of the update that holds the answer.
        contexts: Where the contexts are: a key of the update or of the state, or a function of the
            state.
        conversation: Whether the conversation supports the answer too. The user's statements then
            count as sources and are believed ("My name is Ann."). So do documents in the state, and
            the results of tools in earlier turns.
        system: Whether the facts in the system message support the answer too, as in `demur.Guard`.
        model: A shorter form of `on_fail`: a chat model, or a name for `resolve_model`, that
            answers from the documents when the node's answer failed.

    Returns:
        A function if `node` is a function, with the same parameters (`config`, `runtime`, ...); a
        Runnable if `node` is a Runnable.

    Raises:
        ValueError: There is no evaluator, or an evaluator has no threshold; an argument is out of
            its range; `on_fail` and `model` are both given; or a part of the node keeps a memory of
            its own, such as an agent with a checkpointer.
        TypeError: A value is not an evaluator, a chat model or a recovery where one is expected; or
            `question`, `answer` or `contexts` does not name a place as described above.
    """
    check_reader("question", question, "the state")
    check_reader("contexts", contexts, "the update or of the state")
    if not (answer is None or isinstance(answer, str)):
        raise TypeError(f"answer= takes a key of the update, got a {type(answer).__name__}")
    refuse_memory(node if isinstance(node, Runnable) else RunnableLambda(node))
    options: dict[str, Any] = {
        "on_fail": policy_of(on_fail, model, lambda own: _on_state(own or _tell_node)),
        "on_pass": on_pass,
        "on_error": on_error,
        "on_abstain": on_abstain,
        "conversation": conversation,
        "system": system,
    }
    if question is not None:
        options["question"] = lambda given: read_state(question, given[_STATE], "question")
    if contexts is not None:
        options["contexts"] = contexts if isinstance(contexts, str) else "documents"
    guarded = _GuardedNode(evaluators, budget, options, answer, contexts)
    if isinstance(node, Runnable):
        return cast(Node, guarded.runnable(node))
    # An object that can be called is asynchronous if its `__call__` is.
    called = node if inspect.isroutine(node) else getattr(node, "__call__", node)  # noqa: B004
    is_async = inspect.iscoroutinefunction(called)
    return cast(Node, guarded.afunction(node) if is_async else guarded.function(node))


class _GuardedNode:
    """Make guarded nodes of each kind (function, coroutine function, Runnable) with one guard."""

    def __init__(
        self,
        evaluators: Evaluators,
        budget: Budget | None,
        options: Mapping[str, Any],
        answer: str | None,
        contexts: Reader | None,
    ) -> None:
        self._key = answer
        self._contexts = contexts
        self._guards = Guards(self._answer, self._aanswer, evaluators, budget, options)

    def function(self, node: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(node)
        def guarded(state: Any, **injected: Any) -> Any:
            run = _with_config(node, injected)
            return self._run(state, run, injected.get("config"))

        return guarded

    def afunction(self, node: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(node)
        async def guarded(state: Any, **injected: Any) -> Any:
            run = _with_config(node, injected)
            return await self._arun(state, run, injected.get("config"))

        return guarded

    def runnable(self, node: Runnable[Any, Any]) -> Runnable[Any, Any]:
        def run(state: Any, config: RunnableConfig) -> Any:
            return self._run(state, node.invoke, config)

        async def arun(state: Any, config: RunnableConfig) -> Any:
            return await self._arun(state, node.ainvoke, config)

        return RunnableLambda(run, arun, name="demur:node")

    def _run(self, state: Any, run: Callable[..., Any], config: RunnableConfig | None) -> Any:
        call, given = _start(state, run)
        guard = self._guards.after(call.rejected)
        try:
            found = guard.invoke(given, named_apart(config), call=call)
        except NoAnswerYet as no_answer:
            return no_answer.step
        return call.of(found).with_answer(call.told(found["answer"]))

    async def _arun(
        self, state: Any, run: Callable[..., Any], config: RunnableConfig | None
    ) -> Any:
        call, given = _start(state, run)
        guard = self._guards.after(call.rejected)
        try:
            found = await guard.ainvoke(given, named_apart(config), call=call)
        except NoAnswerYet as no_answer:
            return no_answer.step
        return call.of(found).with_answer(call.told(found["answer"]))

    def _answer(self, given: dict[str, Any], config: RunnableConfig, call: Call) -> dict[str, Any]:
        return self._judgeable(given, call, call.run(given[_STATE], config))

    async def _aanswer(
        self, given: dict[str, Any], config: RunnableConfig, call: Call
    ) -> dict[str, Any]:
        return self._judgeable(given, call, await call.run(given[_STATE], config))

    def _judgeable(self, given: dict[str, Any], call: Call, output: Any) -> dict[str, Any]:
        """Return what the guard reads of the node's output.

        Raises:
            NoAnswerYet: The model calls tools.
            DemurError: The output has no answer.
        """
        told = _ids(given[_STATE]) - _ids(call.state)
        update = read_update(output, self._key, call, told)
        values = update.values
        keys = (self._contexts,) if isinstance(self._contexts, str) else _DOCUMENTS
        documents: dict[str, Any] = {key: values[key] for key in keys if key in values}
        if callable(self._contexts):
            documents = {"documents": self._contexts(call.state)}
        elif not any(key in values for key in _DOCUMENTS):
            # For an agent as the node: what its tools returned.
            documents.setdefault("documents", sources(find_messages(values.get(MESSAGES))))
        # Nodes can act without calls of tools, so a graph without calls may have done something.
        updates = [one.values for one in call.judged]  # What rejected attempts did stays done.
        parts = [view_of(call.state), *updates, values]
        said = [message for part in parts for message in find_messages(part.get(MESSAGES))]
        documents[CALLS] = tool_calls(said, complete=False)
        return call.judge(update.answer, documents, update)


def _start(state: Any, run: Callable[..., Any]) -> tuple[Call, dict[str, Any]]:
    """Return a guarded call of the node, and the guard's input."""
    values = view_of(state)
    messages = values.get(MESSAGES, ())
    call = Call(run=run, state=state, rejected=rejected_in(messages))
    return call, {"documents": sources(messages), **values, _STATE: state}


def _with_config(node: Callable[..., Any], injected: dict[str, Any]) -> Callable[..., Any]:
    """Return the node with the values that LangGraph injects, and a config that streams nothing."""

    def run(state: Any, config: RunnableConfig) -> Any:
        return node(state, **{**injected, "config": config} if "config" in injected else injected)

    return run


def _ids(state: Any) -> set[str]:
    return {message.id for message in view_of(state).get(MESSAGES, ()) if message.id}


def _on_state(tell: Callable[[Any, Feedback], Any]) -> Callable[[Any, Feedback], Any]:
    def told(given: dict[str, Any], feedback: Feedback) -> dict[str, Any]:
        state = tell(given[_STATE], feedback)
        messages = view_of(state).get(MESSAGES)
        if messages:
            # The ids identify these messages if the node returns all messages that it was given.
            named = [m if m.id else m.model_copy(update={"id": str(uuid4())}) for m in messages]
            state = _changed(state, {MESSAGES: named})
        return {**given, _STATE: state}

    return told


def _tell_node(state: Any, feedback: Feedback) -> Any:
    """Return the state with the problems after its messages, and found documents among its own."""
    values = view_of(state)
    changes: dict[str, Any] = {}
    if values.get(MESSAGES):
        changes[MESSAGES] = tell(values[MESSAGES], feedback)
    for key in _DOCUMENTS:
        held = values.get(key)
        if isinstance(held, list) and all(isinstance(one, Document) for one in held):
            changes[key] = [*held, *feedback.documents]
            break
    return _changed(state, changes)


def _changed(state: Any, changes: dict[str, Any]) -> Any:
    if isinstance(state, Mapping):
        return {**state, **changes}
    if isinstance(state, BaseModel):
        return state.model_copy(update=changes)
    return replace(state, **changes)
