"""What handlers write down of chains: every answer once, with the right run; nothing is left."""

from __future__ import annotations

import asyncio
import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel, FakeListLLM
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    Runnable,
    RunnableGenerator,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)

from demur import (
    Abstain,
    AnswerRejected,
    AsyncScoreCallbackHandler,
    Block,
    Evaluation,
    Guard,
    Sample,
    ScoreCallbackHandler,
    Usage,
)
from demur.observe import Record


def echo(sample: Sample) -> Evaluation:
    """Says what it was given; passes what is good."""
    said = f"{sample.question}|{sample.answer}|{[c.page_content for c in sample.contexts]}"
    passed = "good" in sample.answer
    return Evaluation(
        name="echo",
        score=float(passed),
        label="x",
        passed=passed,
        explanation=said,
        usage=Usage(calls=2, input_tokens=30),
    )


class Library(BaseRetriever):
    texts: tuple[str, ...] = ("The tower is 84 metres tall.",)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [Document(text) for text in self.texts]


class Records:
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.all: list[Record] = []

    def __call__(self, record: Record) -> None:
        self.all.append(record)

    @property
    def one(self) -> Record:
        (record,) = self.all
        return record


Handler = ScoreCallbackHandler | AsyncScoreCallbackHandler
MODES = ("invoke", "ainvoke", "stream", "astream", "batch", "abatch", "async handler, invoke")


def handler_for(mode: str, *evaluators: Any, **options: Any) -> tuple[Handler, Records]:
    """A handler as one would use it in that mode, and what it records."""
    records = Records()
    of = AsyncScoreCallbackHandler if mode.startswith("a") else ScoreCallbackHandler
    return of(*evaluators, sink=records, **options), records


def run(mode: str, chain: Runnable[Any, Any], input: Any, handler: Handler, **config: Any) -> Any:
    """Run the chain in that mode, and wait until all is scored."""
    given: Any = {"callbacks": [handler], **config}

    async def in_loop() -> Any:
        if mode == "ainvoke":
            output = await chain.ainvoke(input, given)
        elif mode == "astream":
            output = [chunk async for chunk in chain.astream(input, given)]
        else:
            output = await chain.abatch([input], given)
        assert isinstance(handler, AsyncScoreCallbackHandler)
        assert await handler.flush(30)
        return output

    if mode in ("ainvoke", "astream", "abatch"):
        return asyncio.run(in_loop())
    if mode == "stream":
        output: Any = [*chain.stream(input, given)]
    elif mode == "batch":
        output = chain.batch([input], given)
    else:
        output = chain.invoke(input, given)
    if isinstance(handler, ScoreCallbackHandler):
        assert handler.flush(30)
    else:
        assert asyncio.run(handler.flush(30))
    return output


def rag(answer: str = "A good answer.") -> Runnable[Any, Any]:
    prompt = ChatPromptTemplate.from_template("{context}\n{question}")
    asked = {"context": Library(), "question": RunnablePassthrough()}
    return asked | prompt | FakeListChatModel(responses=[answer]) | (lambda message: message.text)


def nothing_left(handler: Handler) -> bool:
    return not len(handler._runs) and not handler.counts.waiting


# --- One run ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_question_contexts_and_answer_of_a_run(mode: str) -> None:
    handler, records = handler_for(mode, echo)
    run(mode, rag(), "How tall?", handler, tags=["shop"], metadata={"user": 7}, run_name="tower")
    record = records.one
    assert (record.question, record.answer) == ("How tall?", "A good answer.")
    assert [document.page_content for document in record.contexts] == [Library().texts[0]]
    (found,) = record.evaluations
    assert found.explanation == f"How tall?|A good answer.|{[Library().texts[0]]}"
    assert (record.verdict, record.outcome) == ("passed", None)
    assert record.id == record.root
    assert record.name == "tower"
    assert record.tags == ("shop",)
    assert record.metadata["user"] == 7
    assert record.usage.calls == 3  # the chain's one, and what the evaluator says
    assert record.usage.input_tokens == 30
    assert record.seconds >= 0
    assert Record.model_validate_json(record.as_json()) == record
    assert handler.counts.runs == handler.counts.recorded == 1
    assert nothing_left(handler)


@pytest.mark.parametrize("mode", ["invoke", "ainvoke", "stream", "astream"])
def test_a_model_alone(mode: str) -> None:
    handler, records = handler_for(mode, echo)
    run(mode, FakeListChatModel(responses=["good"]), "How tall?", handler)
    assert (records.one.question, records.one.answer) == ("How tall?", "good")
    handler, records = handler_for(mode, echo)
    run(mode, FakeListLLM(responses=["good"]), "How tall?", handler)
    assert (records.one.question, records.one.answer) == ("How tall?", "good")


def test_a_model_with_callbacks_of_its_own() -> None:
    handler, records = handler_for("invoke", echo)
    model = FakeListChatModel(responses=["good"], callbacks=[handler])
    (ChatPromptTemplate.from_template("{question}") | model).invoke({"question": "How tall?"})
    handler.flush(30)
    assert (records.one.question, records.one.answer) == ("How tall?", "good")
    assert nothing_left(handler)


def test_an_agents_messages() -> None:
    call = {"name": "search", "args": {}, "id": "1"}
    messages = [
        HumanMessage("How tall?"),
        AIMessage("", tool_calls=[call]),
        ToolMessage("84 metres.", tool_call_id="1"),
        AIMessage("good: 84 metres"),
    ]
    agent = RunnableLambda(lambda state: {"messages": [*state["messages"], *messages[1:]]})
    handler, records = handler_for("invoke", echo)
    run("invoke", agent, {"messages": messages[:1]}, handler)
    assert (records.one.question, records.one.answer) == ("How tall?", "good: 84 metres")
    assert [document.page_content for document in records.one.contexts] == ["84 metres."]


def test_a_model_that_only_calls_tools_has_not_answered() -> None:
    call = {"name": "search", "args": {}, "id": "1"}
    handler, records = handler_for("invoke", echo)
    run("invoke", RunnableLambda(lambda _: AIMessage("", tool_calls=[call])), "q", handler)
    assert not records.all
    assert handler.counts.unanswered == 1


def test_readers_say_where_things_are() -> None:
    chain = RunnableLambda(lambda given: {"text": "good", "found": ["a", "b"]})
    handler, records = handler_for(
        "invoke", echo, question="ask", answer=lambda output: output["text"], contexts="found"
    )
    run("invoke", chain, {"ask": "How tall?"}, handler)
    assert records.one.evaluations[0].explanation == "How tall?|good|['a', 'b']"


@pytest.mark.parametrize("output", [{"number": 1}, 7, None])
def test_an_answer_that_cannot_be_found_is_undetermined(
    output: Any, caplog: pytest.LogCaptureFixture
) -> None:
    handler, records = handler_for("invoke", echo)
    for _ in range(3):
        run("invoke", RunnableLambda(lambda _: output), "q", handler)
    for record in records.all:
        assert record.verdict == "undetermined"
        assert "no answer can be found" in str(record.evaluations[0].error)
    assert len(records.all) == 3
    assert len([one for one in caplog.records if "cannot be scored" in one.message]) == 1


def test_what_was_said_is_kept_as_it_was() -> None:
    """A caller may do with the output what it likes, while the answer still waits."""
    go = threading.Event()

    def slow(sample: Sample) -> Evaluation:
        go.wait(30)
        return echo(sample)

    handler, records = handler_for("invoke", slow)
    chain = RunnableLambda(lambda _: {"answer": "good", "context": [Document("a")]})
    output = chain.invoke("q", {"callbacks": [handler]})
    output["answer"] = "other"
    output["context"].clear()
    go.set()
    assert isinstance(handler, ScoreCallbackHandler)
    assert handler.flush(30)
    assert records.one.evaluations[0].explanation == "q|good|['a']"


# --- Which model, which response ------------------------------------------------------------------


def test_the_model_and_its_response() -> None:
    said = {"model_name": "gpt-x", "id": "resp-1"}
    model = FakeListChatModel(responses=["x"]) | (lambda _: "q2")
    replies = [AIMessage("good", response_metadata=said)]

    from langchain_core.language_models import GenericFakeChatModel

    chain = model | GenericFakeChatModel(messages=iter(replies))
    handler, records = handler_for("invoke", echo)
    run("invoke", chain, "q", handler)
    assert (records.one.model, records.one.response) == ("gpt-x", "resp-1")


# --- Evaluators -----------------------------------------------------------------------------------


def test_several_evaluators_and_one_that_fails() -> None:
    def broken(sample: Sample) -> Evaluation:
        raise ValueError("out of order")

    def wrong(sample: Sample) -> Any:
        return 0.5

    handler, records = handler_for("invoke", echo, broken, wrong)
    run("invoke", rag(), "How tall?", handler)
    first, second, third = records.one.evaluations
    assert first.passed
    assert second.undetermined
    assert "out of order" in str(second.error)
    assert "expected an Evaluation" in str(third.error)
    assert records.one.verdict == "undetermined"


@pytest.mark.parametrize("form", ["function", "bound", "sequence"])
@pytest.mark.parametrize("mode", [*MODES, "a loop that ends"])
def test_an_evaluator_that_is_only_asynchronous(mode: str, form: str) -> None:
    """Also in a thread: the handler's own, or one that goes on for a loop that is over."""

    async def judge(sample: Sample) -> Evaluation:
        await asyncio.sleep(0.01)
        return echo(sample)

    evaluator: Runnable[Any, Any] = RunnableLambda(judge)
    if form == "bound":
        evaluator = evaluator.with_config(tags=["x"])
    if form == "sequence":
        evaluator = RunnablePassthrough() | evaluator
    handler, records = handler_for(mode, evaluator)
    if mode == "a loop that ends":
        asyncio.run(rag().ainvoke("q", {"callbacks": [handler]}))
        assert isinstance(handler, AsyncScoreCallbackHandler)
        assert asyncio.run(handler.flush(30))
    else:
        run(mode, rag(), "q", handler)
    assert {record.verdict for record in records.all} == {"passed"}


@pytest.mark.parametrize("several", [False, True])
def test_an_evaluator_that_wants_to_exit_is_undetermined(several: bool) -> None:
    def leaves(sample: Sample) -> Evaluation:
        raise SystemExit(3)

    evaluators = (leaves, echo) if several else (leaves,)
    handler, records = handler_for("invoke", *evaluators)
    run("invoke", rag(), "q", handler)
    assert records.one.evaluations[0].error == "it raised SystemExit: 3"
    assert handler.counts.lost == 0


def test_an_evaluator_without_a_threshold() -> None:
    handler, records = handler_for(
        "invoke", RunnableLambda(lambda sample: Evaluation(name="raw", score=0.3))
    )
    run("invoke", rag(), "How tall?", handler)
    assert records.one.verdict == "scored"
    assert records.one.evaluations[0].score == 0.3


def test_a_run_that_is_an_evaluation_is_recorded_as_it_is() -> None:
    handler, records = handler_for("invoke", echo)
    judge: Runnable[Any, Any] = RunnableLambda(echo)
    run("invoke", judge, Sample(question="q", answer="bad"), handler)
    assert records.one.evaluations[0].explanation == "q|bad|[]"
    assert (records.one.question, records.one.answer) == ("q", "bad")


def test_without_evaluators_only_guards_are_recorded() -> None:
    handler, records = handler_for("invoke")
    run("invoke", rag(), "How tall?", handler)
    assert not records.all
    run("invoke", Guard(rag(), echo), "How tall?", handler)
    assert records.one.outcome == "passed"


def test_the_evaluators_runs_are_not_taken_for_chains() -> None:
    """Though the handler hears them, as one that is registered for everything does."""
    handler, records = handler_for("invoke", echo)

    def heard(sample: Sample) -> Evaluation:
        inner = RunnableLambda(echo)
        return inner.invoke(sample, {"callbacks": [handler], "tags": ["demur:judge"]})

    handler._recorder.evaluators = (("heard", RunnableLambda(heard)),)
    run("invoke", rag(), "How tall?", handler)
    assert len(records.all) == 1


def test_the_chains_handlers_do_not_hear_the_evaluators() -> None:
    class Ears(BaseCallbackHandler):
        names: list[str]

        def __init__(self) -> None:
            self.names = []

        def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
            self.names.append(kwargs["name"])

    ears = Ears()
    handler, records = handler_for("invoke", RunnableLambda(echo, name="echo"))
    rag().invoke("How tall?", {"callbacks": [handler, ears]})
    assert isinstance(handler, ScoreCallbackHandler)
    handler.flush(30)
    assert records.one.verdict == "passed"
    assert "echo" not in ears.names


# --- Which runs -----------------------------------------------------------------------------------


def test_runs_by_name_and_by_tag() -> None:
    inner = RunnableLambda(lambda _: "good inner").with_config(run_name="answer", tags=["a"])
    chain = RunnableLambda(lambda given: given) | inner | (lambda text: f"{text}, wrapped")
    for wanted in ({"names": "answer"}, {"tags": ["a", "b"]}):
        handler, records = handler_for("invoke", echo, **wanted)
        run("invoke", chain, "q", handler)
        assert records.one.answer == "good inner"
        assert records.one.name == "answer"
        assert records.one.root != records.one.id
        assert nothing_left(handler)


def test_of_runs_with_the_tag_only_the_outermost() -> None:
    handler, records = handler_for("invoke", echo, tags="wanted")
    run("invoke", rag(), "q", handler, tags=["wanted"])  # LangChain gives it to all inside
    assert records.one.id == records.one.root


def test_sampling_takes_the_same_runs_in_every_handler() -> None:
    first, some = handler_for("invoke", echo, sample_rate=0.3)
    second, same = handler_for("invoke", echo, sample_rate=0.3)
    _, all_of_them = third = handler_for("invoke", echo, sample_rate=0.6)
    chain: Runnable[Any, Any] = RunnableLambda(lambda _: "good")
    for _ in range(400):
        chain.invoke("q", {"callbacks": [first, second, third[0]]})
    for handler in (first, second, third[0]):
        assert isinstance(handler, ScoreCallbackHandler)
        handler.flush(30)
    ids = [{record.id for record in records.all} for records in (some, same, all_of_them)]
    assert ids[0] == ids[1] < ids[2]
    assert 80 < len(ids[0]) < 160
    assert first.counts.unsampled == 400 - len(ids[0])
    assert nothing_left(first)


def test_no_run_is_taken_at_rate_0_and_not_its_guards() -> None:
    handler, records = handler_for("invoke", echo, sample_rate=0)
    run("invoke", Guard(rag(), echo), "q", handler)
    assert not records.all
    assert nothing_left(handler)


# --- Guards ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_guards_scores_are_recorded_and_not_scored_again(mode: str) -> None:
    asked: list[str] = []

    def judge(sample: Sample) -> Evaluation:
        asked.append(sample.answer)
        return echo(sample)

    chain = RunnableLambda(lambda _: "bad" if len(asked) < 1 else "good")
    guard: Guard[Any, Any] = Guard(chain, judge)
    wrapped = RunnableLambda(lambda given: given) | guard | (lambda text: f"{text}!")
    handler, records = handler_for(mode, judge)
    run(mode, wrapped, "How tall?", handler)
    record = records.one
    assert [attempt.answer for attempt in record.attempts] == ["bad", "good"]
    assert asked == ["bad", "good"]
    assert (record.outcome, record.verdict) == ("recovered", "passed")
    assert record.attempts[0].verdict == "failed"
    assert record.root != record.id
    assert record.usage.calls == 4
    assert record.question == "How tall?"
    assert nothing_left(handler)


@pytest.mark.parametrize("mode", MODES)
def test_a_guard_that_lets_nothing_through(mode: str) -> None:
    handler, records = handler_for(mode, echo)
    guard: Guard[Any, Any] = Guard(RunnableLambda(lambda _: "bad"), echo, on_fail=Block())
    with pytest.raises(AnswerRejected):
        run(mode, guard, "q", handler)
    if isinstance(handler, ScoreCallbackHandler):
        handler.flush(30)
    else:
        asyncio.run(handler.flush(30))
    assert records.one.outcome == "blocked"
    assert records.one.answer == "bad"
    assert nothing_left(handler)


def test_a_guard_whose_chain_raises_in_the_second_attempt() -> None:
    asked: list[int] = []

    def answer(_: Any) -> str:
        asked.append(1)
        if len(asked) == 2:
            raise ConnectionError("away")
        return "bad"

    handler, records = handler_for("invoke", echo)
    with pytest.raises(ConnectionError):
        Guard(RunnableLambda(answer), echo).invoke("q", {"callbacks": [handler]})
    assert isinstance(handler, ScoreCallbackHandler)
    handler.flush(30)
    (found,) = records.one.evaluations
    assert (found.name, found.passed, records.one.outcome) == ("echo", False, None)
    assert "did not come to its end" in str(records.one.reason)
    assert nothing_left(handler)


def test_a_guard_inside_a_guard() -> None:
    inner: Guard[Any, Any] = Guard(RunnableLambda(lambda _: "bad"), echo, on_fail=Abstain("No."))
    handler, records = handler_for("invoke", echo)
    run("invoke", Guard(inner, echo), "q", handler)
    assert sorted(str(record.outcome) for record in records.all) == ["abstained", "abstained"]
    assert len({record.id for record in records.all}) == 2
    assert len({record.root for record in records.all}) == 1


@pytest.mark.parametrize("mode", ["invoke", "ainvoke", "stream", "astream"])
def test_what_takes_the_place_of_a_guard_that_failed_is_scored(mode: str) -> None:
    guard: Guard[Any, Any] = Guard(RunnableLambda(lambda _: "bad"), echo, on_fail=Block())
    chain = guard.with_fallbacks([{"context": Library()} | RunnableLambda(lambda _: "good")])
    handler, records = handler_for(mode, echo)
    run(mode, chain, "q", handler)
    judged, scored = sorted(records.all, key=lambda record: record.answer)
    assert (judged.answer, judged.outcome) == ("bad", "blocked")
    assert scored.evaluations[0].explanation == f"q|good|{[Library().texts[0]]}"
    # LangChain gives the runs inside a fallback no parent.
    assert judged.root == scored.root == scored.id
    assert (handler.counts.runs, handler.counts.unanswered) == (1, 0)
    assert nothing_left(handler)


# --- What goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_chain_that_raises_leaves_nothing_behind(mode: str) -> None:
    def broken(_: Any) -> str:
        raise ValueError("no")

    handler, records = handler_for(mode, echo)
    chain = RunnablePassthrough() | RunnableParallel(a=RunnableLambda(broken), b=rag())
    with pytest.raises(ValueError, match="no"):
        run(mode, chain, "q", handler)
    deadline = time.monotonic() + 10
    while not nothing_left(handler) and time.monotonic() < deadline:
        time.sleep(0.01)  # the other branch goes on for a while
    assert nothing_left(handler)
    assert not records.all
    assert handler.counts.unanswered == 1


def test_a_stream_that_is_closed_early() -> None:
    def words(_: Iterator[Any]) -> Iterator[str]:
        yield from ("a good ", "answer ", "that goes on")

    handler, records = handler_for("stream", echo)
    stream = RunnableGenerator(words).stream("q", {"callbacks": [handler]})
    assert next(stream) == "a good "
    assert next(stream) == "answer "
    stream.close()  # type: ignore[attr-defined]  # it is a generator
    assert isinstance(handler, ScoreCallbackHandler)
    handler.flush(30)
    assert records.one.answer == "a good "  # LangChain does not tell what was read last
    stream = RunnableGenerator(words).stream("q", {"callbacks": [handler]})
    next(stream)
    stream.close()  # type: ignore[attr-defined]  # it is a generator
    handler.flush(30)
    assert len(records.all) == handler.counts.unanswered == 1
    assert nothing_left(handler)


async def test_a_run_that_is_cancelled() -> None:
    async def slow(_: Any) -> str:
        await asyncio.sleep(60)
        return "good"

    handler, records = handler_for("ainvoke", echo)
    assert isinstance(handler, AsyncScoreCallbackHandler)
    chain = RunnablePassthrough() | RunnableLambda(slow)
    task = asyncio.create_task(chain.ainvoke("q", {"callbacks": [handler]}))
    await asyncio.sleep(0.05)
    assert len(handler._runs)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await handler.flush(30)
    assert nothing_left(handler)
    assert not records.all


async def test_an_async_stream_that_is_left() -> None:
    async def words(_: AsyncIterator[Any]) -> AsyncIterator[str]:
        for word in ("good ", "b", "c"):
            yield word

    def not_used(_: Iterator[Any]) -> Iterator[str]:
        yield ""

    handler, records = handler_for("astream", echo)
    assert isinstance(handler, AsyncScoreCallbackHandler)
    stream = RunnableGenerator(not_used, words).astream("q", {"callbacks": [handler]})
    async for chunk in stream:
        if chunk == "b":
            break
    await stream.aclose()  # type: ignore[attr-defined]  # it is a generator
    await handler.flush(30)
    assert nothing_left(handler)
    assert not records.all  # LangChain tells that as an error
    assert handler.counts.unanswered == 1


def test_what_goes_on_after_the_end_is_no_run_of_its_own() -> None:
    go, late = threading.Event(), threading.Event()

    def left_behind(config: Any) -> None:
        def work(_: Any) -> str:
            go.wait(30)
            return rag("late").invoke("q", config)

        RunnableLambda(work).invoke("q", config)
        late.set()

    def answer(_: Any, config: Any) -> str:
        threading.Thread(target=left_behind, args=(config,)).start()
        time.sleep(0.05)  # until the thread's run has begun
        return "good"

    handler, records = handler_for("invoke", echo)
    run("invoke", RunnableLambda(answer), "q", handler)
    go.set()
    assert late.wait(30)
    assert isinstance(handler, ScoreCallbackHandler)
    handler.flush(30)
    assert records.one.answer == "good"
    assert nothing_left(handler)


def test_streams_that_are_never_closed_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("demur.observe.runs._MOST_OPEN", 50)

    def words(_: Iterator[Any]) -> Iterator[str]:
        yield from ("a", "b")

    handler, _ = handler_for("stream", echo)
    streams = [RunnableGenerator(words).stream("q", {"callbacks": [handler]}) for _ in range(80)]
    for stream in streams:
        next(stream)
    assert len(handler._runs) == 50
    assert handler.counts.given_up == 30


def test_a_sync_chain_in_a_coroutine_does_not_wait_for_ever() -> None:
    async def ajudge(sample: Sample) -> Evaluation:
        await asyncio.sleep(0.01)
        return echo(sample)

    handler, records = handler_for(
        "ainvoke", RunnableLambda(echo, ajudge), on_full="block", max_queue=2
    )
    chain: Runnable[Any, Any] = RunnableLambda(lambda _: "good")

    async def app() -> None:
        assert isinstance(handler, AsyncScoreCallbackHandler)
        config: Any = {"callbacks": [handler]}
        for _ in range(6):
            await chain.ainvoke("q", config)
        for _ in range(6):
            chain.invoke("q", config)
        await asyncio.gather(*(asyncio.to_thread(chain.invoke, "q", config) for _ in range(40)))
        assert await handler.flush(30)

    thread = threading.Thread(target=lambda: asyncio.run(app()), daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    assert len({record.id for record in records.all}) == 52


def test_a_model_with_a_handler_can_be_copied() -> None:
    handler, records = handler_for("invoke", echo)
    model = FakeListChatModel(responses=["good"], callbacks=[handler]).model_copy(deep=True)
    model.invoke("q")
    assert isinstance(handler, ScoreCallbackHandler)
    assert handler.flush(30)
    assert records.one.answer == "good"


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_a_graph_that_is_interrupted_and_resumed(way: str) -> None:
    graphs = pytest.importorskip("langgraph.graph")
    types = pytest.importorskip("langgraph.types")
    memory = pytest.importorskip("langgraph.checkpoint.memory")

    def answer(state: Any) -> Any:
        said = types.interrupt("May I?")
        return {"messages": [AIMessage(f"good, since {said}")]}

    builder = graphs.StateGraph(graphs.MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(graphs.START, "answer")
    builder.add_edge("answer", graphs.END)
    graph = builder.compile(checkpointer=memory.InMemorySaver())
    handler, records = handler_for("invoke", echo)
    for question in ("first", "second"):
        for given in ({"messages": [("user", question)]}, types.Command(resume=question)):
            run(way, graph, given, handler, configurable={"thread_id": "1"})
    said = [(record.question, record.answer) for record in records.all]
    assert said == [("first", "good, since first"), ("second", "good, since second")]
    assert handler.counts.unanswered == 2
    assert nothing_left(handler)


def test_a_handler_never_raises_into_the_chain(caplog: pytest.LogCaptureFixture) -> None:
    def raises(_: Any) -> str:
        raise RuntimeError("a reader of the user's")

    def no_sink(record: Record) -> None:
        raise OSError("full")

    handler = ScoreCallbackHandler(echo, sink=no_sink, question=raises, spill="/dev/null")
    assert rag().invoke("q", {"callbacks": [handler]}) == "A good answer."
    handler.flush(30)
    assert handler.counts.recorded == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"sample_rate": 1.5}, r"sample_rate must be in \[0, 1\], got 1.5"),
        ({"sample_rate": float("nan")}, "sample_rate must be in"),
        ({"max_queue": 0}, "max_queue must be at least 1, got 0"),
        ({"max_concurrency": 0}, "max_concurrency must be at least 1, got 0"),
        ({"on_full": "wait"}, "on_full must be 'drop' or 'block', got 'wait'"),
    ],
)
@pytest.mark.parametrize("of", [ScoreCallbackHandler, AsyncScoreCallbackHandler])
def test_wrong_arguments(of: Callable[..., Handler], arguments: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        of(echo, sink=print, **arguments)


def test_an_evaluator_that_is_none() -> None:
    with pytest.raises(TypeError):
        ScoreCallbackHandler("RefChecker", sink=print)  # type: ignore[arg-type]


# --- Many -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["threads", "tasks"])
def test_every_score_belongs_to_its_run(seed: int, kind: str) -> None:
    """Nested, parallel, streamed and failing chains, many at a time, with slow evaluators."""
    dice = random.Random(seed)

    def judge(sample: Sample) -> Evaluation:
        time.sleep(dice.random() / 500)
        return echo(sample)

    def leaf(text: str) -> Runnable[Any, Any]:
        return RunnableLambda(lambda given: {"text": text})

    def chain_for(number: int, depth: int = 3) -> Runnable[Any, Any]:
        parts: list[Runnable[Any, Any]] = []
        for at in range(dice.randint(1, 3)):
            if depth and dice.random() < 0.5:
                branches = {f"b{i}": chain_for(number, depth - 1) for i in range(2)}
                parts.append(RunnableParallel(**branches))
            else:
                parts.append(leaf(f"step {at}"))
        chain = parts[0]
        for part in parts[1:]:
            chain = chain | part
        return chain

    def whole(number: int) -> Runnable[Any, Any]:
        def end(_: Any) -> str:
            if number % 7 == 3:
                raise ValueError("no")
            return f"good {number}"

        return chain_for(number) | {"x": Library(texts=(f"text {number}",))} | RunnableLambda(end)

    handler, records = handler_for("abatch" if kind == "tasks" else "batch", judge, max_queue=10**6)
    numbers = range(60)
    chains = [whole(number) for number in numbers]
    ids = [uuid.UUID(int=dice.getrandbits(128)) for _ in numbers]

    def config(number: int) -> Any:
        return {"callbacks": [handler], "run_id": ids[number]}

    def one(number: int) -> None:
        try:
            if number % 3:
                chains[number].invoke(f"q{number}", config(number))
            else:
                for _ in chains[number].stream(f"q{number}", config(number)):
                    pass
        except ValueError:
            pass

    async def aone(number: int) -> None:
        try:
            if number % 3:
                await chains[number].ainvoke(f"q{number}", config(number))
            else:
                async for _ in chains[number].astream(f"q{number}", config(number)):
                    pass
        except ValueError:
            pass

    async def all_in_loop() -> None:
        await asyncio.gather(*map(aone, numbers))
        assert isinstance(handler, AsyncScoreCallbackHandler)
        assert await handler.flush(60)

    if kind == "tasks":
        asyncio.run(all_in_loop())
    else:
        threads = [threading.Thread(target=one, args=(number,)) for number in numbers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert isinstance(handler, ScoreCallbackHandler)
        assert handler.flush(60)
    expected = {str(ids[n]): f"q{n}|good {n}|{[f'text {n}']}" for n in numbers if n % 7 != 3}
    found = {record.id: record.evaluations[0].explanation for record in records.all}
    assert found == expected
    assert Counter(record.id for record in records.all).most_common(1)[0][1] == 1
    assert nothing_left(handler)
