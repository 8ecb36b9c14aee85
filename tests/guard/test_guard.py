"""Test the guard's logic with scripted chains and evaluators."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda

from demur import (
    Abstain,
    Annotate,
    AnswerRejected,
    Block,
    Budget,
    DemurError,
    Evaluation,
    EvaluatorFailed,
    Guard,
    Regenerate,
    Repair,
    Retrieve,
    Sample,
)
from demur.guard import REFUSAL, UNCHECKED, Feedback, Trace
from support.fakes import ScriptedModel, saying
from support.guarded import Chain, judge, traced


def test_a_good_answer_passes_untouched() -> None:
    output = {"answer": "good", "anything": object()}
    chain = Chain(output)
    found = traced(Guard(chain, judge), {"input": "why?"})
    assert found.output is output
    assert (found.trace.outcome, found.trace.reason) == ("passed", "attempt 1 passed")
    assert chain.inputs == [{"input": "why?"}]


def test_a_bad_answer_is_asked_for_again() -> None:
    chain = Chain("bad", "good")
    found = traced(Guard(chain, judge), "why?")
    assert (found.output, found.trace.outcome) == ("good", "recovered")
    assert chain.inputs == ["why?", "why?"]
    first, second = found.trace.attempts
    assert (first.answer, first.verdict, first.origin) == ("bad", "failed", "chain")
    assert (second.answer, second.verdict) == ("good", "passed")
    assert first.evaluations[0].explanation == "bad is not good"
    assert found.trace.usage.calls == 2  # Each answer was judged once.
    assert found.trace.usage.input_tokens == 20


def test_used_up_attempts_end_in_a_refusal() -> None:
    chain = Chain("bad", "worse", "worst")
    found = traced(Guard(chain, judge, budget=Budget(attempts=3)), "why?")
    assert (found.output, found.trace.outcome) == (REFUSAL, "abstained")
    assert found.trace.reason == "no answer passed in 3 attempts"
    assert len(chain.inputs) == 3


def test_an_answer_that_was_rejected_before_ends_it_and_is_not_judged_again() -> None:
    judged: list[str] = []

    def noting(sample: Sample) -> Evaluation:
        judged.append(sample.answer)
        return judge(sample)

    chain = Chain("bad", "worse", "Bad ", "good")
    found = traced(Guard(chain, noting, budget=Budget(attempts=9)), "why?")
    assert found.trace.outcome == "abstained"
    assert found.trace.reason == "attempt 3 gave the answer of attempt 1 again"
    assert judged == ["bad", "worse"]
    assert found.trace.usage.calls == 2
    assert found.trace.attempts[2].evaluations[0].passed is False


def test_the_same_answer_from_other_contexts_is_judged_anew() -> None:
    def supported(sample: Sample) -> Evaluation:
        return Evaluation(name="x", passed=bool(sample.contexts))

    chain = Chain({"answer": "so"}, {"answer": "so", "context": ["so it is"]})
    assert traced(Guard(chain, supported), {}).trace.outcome == "recovered"
    chain = Chain({"answer": "so"}, {"answer": "so", "context": []}, {"answer": "no"})
    found = traced(Guard(chain, supported, budget=Budget(attempts=5)), {})
    assert (found.trace.outcome, len(found.trace.attempts)) == ("abstained", 2)


def test_blocking_raises_with_the_trace() -> None:
    with pytest.raises(
        AnswerRejected, match=r"^The answer was rejected: attempt 1 was rejected\.$"
    ) as raised:
        Guard(Chain("bad"), judge, on_fail=Block()).invoke("why?")
    assert raised.value.trace.outcome == "blocked"
    assert len(raised.value.trace.attempts) == 1
    assert isinstance(raised.value, DemurError)
    again = pickle.loads(pickle.dumps(raised.value))
    assert (str(again), again.trace) == (str(raised.value), raised.value.trace)


@pytest.mark.parametrize("output", [{"text": "bad"}, ("bad",)])
def test_a_refusal_that_the_output_cannot_hold_is_raised(output: Any) -> None:
    guard = Guard(Chain(output), judge, answer=lambda _: "bad")
    with pytest.raises(AnswerRejected, match="cannot hold another text") as raised:
        guard.invoke("why?")
    assert raised.value.trace.outcome == "abstained"


def test_annotating_lets_the_best_attempt_through_with_a_note() -> None:
    chain = Chain("bad", "booo", "bood")
    found = traced(Guard(chain, judge, on_fail={"any": Regenerate(), "end": Annotate()}))
    assert found.output.startswith("booo\n\n")
    assert "booo is not good" in found.output
    assert found.trace.outcome == "best_effort"
    message = Guard(lambda _: AIMessage("bad", id="1"), judge, on_fail="annotate").invoke("why?")
    assert message.id == "1"
    assert message.text.startswith("bad\n\n")


def test_feedback_reaches_the_chain_where_it_can_take_it() -> None:
    told: list[Feedback] = []

    def tell(given: dict[str, str], feedback: Feedback) -> dict[str, str]:
        told.append(feedback)
        return {**given, "hint": feedback.text}

    chain = Chain({"answer": "bad"}, {"answer": "good"})
    given = {"input": "why?"}
    found = traced(Guard(chain, judge, on_fail=Regenerate(tell)), given)
    assert chain.inputs == [{"input": "why?"}, {"input": "why?", "hint": "- bad is not good"}]
    assert given == {"input": "why?"}
    assert found.trace.outcome == "recovered"
    assert found.trace.attempts[1].origin == "feedback"
    assert found.trace.attempts[1].question == "why?"
    assert found.trace.attempts[1].feedback == told[0]
    assert (told[0].question, told[0].answer) == ("why?", "bad")


# --- Repair ------------------------------------------------------------------------------------


class Library(BaseRetriever):
    texts: tuple[str, ...] = ()
    queries: list[str] = []  # noqa: RUF012  # a pydantic field, copied for each instance
    fails: bool = False

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        self.queries.append(query)
        if self.fails:
            raise RuntimeError("no such index")
        return [Document(text) for text in self.texts]


def test_the_model_repairs_from_old_and_new_documents() -> None:
    chain = Chain({"answer": "bad", "context": ["an old text"]})
    model, library = saying("good now"), Library(texts=("a new text", "an old text"))
    guard = Guard(chain, judge, on_fail=Retrieve(library, then=Repair(model)))
    found = traced(guard, {"input": "why?"})
    assert found.output == {"answer": "good now", "context": ["an old text", "a new text"]}
    assert found.trace.outcome == "recovered"
    assert len(chain.inputs) == 1
    second = found.trace.attempts[1]
    assert [d.page_content for d in second.contexts] == ["an old text", "a new text"]
    assert second.usage.calls == 1
    prompt = str(model.requests[0][-1].content)
    assert all(text in prompt for text in ("an old text", "a new text", "why?", "bad is not good"))
    assert library.queries == ["why?"]  # The judge names no claims.


def test_a_search_that_fails_is_on_record() -> None:
    library = Library(fails=True)
    chain = Chain({"answer": "bad", "context": ["old"]})
    repair = Repair(saying("good"))
    found = traced(Guard(chain, judge, on_fail=Retrieve(library, then=repair)), {})
    assert found.trace.outcome == "recovered"
    feedback = found.trace.attempts[1].feedback
    assert feedback is not None
    assert "no such index" in feedback.errors[0]
    odd = RunnableLambda(lambda _: 3)
    found = traced(Guard(chain, judge, on_fail=Retrieve(odd, then=repair)), {})
    feedback = found.trace.attempts[1].feedback
    assert feedback is not None
    assert feedback.errors == ("the retriever returned an int, not documents",)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [("", "(the model's reply is empty)"), (RuntimeError("broke"), "(RuntimeError)")],
)
def test_a_repair_that_fails_ends_it(reply: Any, reason: str) -> None:
    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        if isinstance(reply, Exception):
            raise reply
        return str(reply)

    guard = Guard(Chain("bad"), judge, model=ScriptedModel(script=script))
    found = traced(guard, "why?")
    assert found.trace.outcome == "abstained"
    assert "could not be repaired" in found.trace.reason
    assert found.trace.reason.endswith(reason)
    assert ("broke" in str(found.trace.error)) is isinstance(reply, Exception)
    assert found.trace.usage.calls == 2  # The two calls are the judgement and the repair.


def test_where_no_text_can_be_put_a_repair_is_passed_over() -> None:
    model = saying("never asked")

    def guard(**options: Any) -> Guard[Any, Any]:
        return Guard(Chain(("bad",), ("good",)), judge, answer=lambda out: out[0], **options)

    policy = {"other": Repair(model), "any": Regenerate()}
    found = traced(guard(on_fail=policy))
    assert (found.output, found.trace.attempts[1].recovery) == (("good",), "regenerate")
    with pytest.raises(AnswerRejected, match="attempt 1 was rejected, and its output can hold no"):
        guard(model=model).invoke("why?")
    assert model.requests == []


def test_a_cache_cannot_give_a_rejected_repair_again() -> None:
    replies = iter(["bad, too", "bad again", "good"])
    model = ScriptedModel(script=lambda stage, messages: next(replies), cache=InMemoryCache())

    def grumpy(sample: Sample) -> Evaluation:
        return judge(sample).model_copy(update={"explanation": "no good"})  # always the same

    guard = Guard(Chain("bad"), grumpy, model=model, budget=Budget(attempts=4))
    found = traced(guard, "why?")
    assert (found.output, found.trace.outcome) == ("good", "recovered")
    assert [attempt.usage.cached for attempt in found.trace.attempts] == [0, 0, 0, 0]


def test_what_brings_a_rejected_answer_again_is_passed_over_from_then_on() -> None:
    told: list[Feedback] = []

    def tell(given: str, feedback: Feedback) -> str:
        told.append(feedback)
        return f"{given} {len(told)}"

    policy = {"other": Regenerate(tell), "any": Repair(saying("good"))}
    found = traced(Guard(Chain("bad"), judge, on_fail=policy), "why?")
    assert (found.output, len(told)) == ("good", 1)
    assert [a.recovery for a in found.trace.attempts] == [None, "regenerate", "repair"]
    assert [a.origin for a in found.trace.attempts] == ["chain", "feedback", "repair"]


def test_what_is_found_is_told_to_the_chain_and_counts_as_a_context() -> None:
    def tell(given: dict[str, str], feedback: Feedback) -> dict[str, str]:
        return {**given, "found": feedback.documents[0].page_content}

    chain = Chain({"answer": "bad", "context": ["old"]}, {"answer": "good", "context": ["old"]})
    retrieve = Retrieve(Library(texts=("new",)), then=Regenerate(tell, instruction="Be brief."))
    found = traced(Guard(chain, judge, on_fail=retrieve), {"input": "why?"})
    assert chain.inputs[1] == {"input": "why?", "found": "new"}
    second = found.trace.attempts[1]
    assert (second.recovery, second.origin) == ("retrieve", "feedback")
    assert [document.page_content for document in second.contexts] == ["old", "new"]
    assert second.feedback is not None
    assert second.feedback.text.startswith("Be brief.\n")


def test_a_guard_whose_policy_names_a_model_keeps_the_name_and_no_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-shown")
    guard = Guard(Chain("bad"), judge, on_fail=Repair("openai:gpt-4o-mini"))
    assert "sk-never-shown" not in f"{guard!r}{pickle.dumps(guard)!r}"
    assert pickle.loads(pickle.dumps(guard)).on_fail == guard.on_fail


# --- Evaluators --------------------------------------------------------------------------------


def broken(sample: Sample) -> Evaluation:
    raise RuntimeError("out of order")


def test_an_evaluator_that_raises_could_not_decide() -> None:
    found = traced(Guard(Chain("good"), broken), "why?")
    assert (found.output, found.trace.outcome) == (UNCHECKED, "evaluator_failed")
    assert found.trace.reason == "broken could not decide about attempt 1 (RuntimeError)"
    assert "out of order" in str(found.trace.attempts[0].evaluations[0].error)
    with pytest.raises(AnswerRejected) as raised:
        Guard(Chain("good"), broken, on_fail="block").invoke("why?")
    assert raised.value.trace.outcome == "evaluator_failed"
    noted = Guard(Chain("good"), broken, on_fail="annotate").invoke("why?")
    assert noted.startswith("good\n\n")
    assert noted.endswith("- broken could not decide about it (RuntimeError).")


def test_what_becomes_of_what_cannot_be_judged_is_the_users_choice() -> None:
    found = traced(Guard(Chain("bad"), broken, on_error="open"), "why?")
    assert (found.output, found.trace.outcome) == ("bad", "evaluator_failed")
    with pytest.raises(EvaluatorFailed, match=r"attempt 1 \(RuntimeError\)") as raised:
        Guard(Chain("bad"), broken, on_error="raise").invoke("why?")
    assert raised.value.trace.outcome == "evaluator_failed"
    assert raised.value.trace.attempts[0].answer == "bad"
    again = pickle.loads(pickle.dumps(raised.value))
    assert (type(again), again.trace) == (EvaluatorFailed, raised.value.trace)
    # An answer that another evaluator rejected is refused all the same.
    refused = Guard(Chain("bad"), broken, judge, on_error="open", budget=Budget(attempts=1))
    assert refused.invoke("why?") == REFUSAL


# --- The chain ---------------------------------------------------------------------------------


def test_a_fake_model_that_has_run_out_of_replies_is_the_chains_error() -> None:
    guard = Guard(GenericFakeChatModel(messages=iter([AIMessage("bad")])), judge)
    with pytest.raises(StopIteration):
        guard.invoke("why?")


def test_keyword_arguments_go_to_the_chain() -> None:
    seen: list[Any] = []

    def chain(given: str, **kwargs: Any) -> str:
        seen.append(kwargs)
        return "good"

    guard = Guard(chain, judge).bind(stop=["x"])
    guard.invoke("why?")
    Guard(chain, judge).with_trace().bind(stop=["y"]).invoke("why?")
    assert seen == [{"stop": ["x"]}, {"stop": ["y"]}]


def test_the_refusal_of_a_guard_inside_is_not_judged() -> None:
    judged: list[str] = []

    def outer_judge(sample: Sample) -> Evaluation:
        judged.append(sample.answer)
        return Evaluation(name="outer", passed=False)

    inner = Guard(Chain("bad"), judge, on_fail=Abstain("No."))
    wrapped = RunnableLambda(lambda given: given) | inner | (lambda text: {"answer": text})
    outermost = Guard(Guard(wrapped, outer_judge), outer_judge)
    found = traced(outermost, "why?")
    assert found.output == {"answer": "No."}
    assert found.trace.outcome == "abstained"
    assert "inside the chain" in found.trace.reason
    assert [attempt.verdict for attempt in found.trace.attempts] == ["abstained"]
    assert judged == []
    # The same text from a chain that is not a guard is judged like any answer.
    found = traced(Guard(Chain("No."), outer_judge, budget=Budget(attempts=1)), "why?")
    assert judged == ["No."]


def test_a_message_says_that_it_was_replaced() -> None:
    chain = Chain(AIMessage("bad", id="7", response_metadata={"tokens": ["bad"]}))
    message = Guard(chain, judge).invoke("why?")
    assert (message.id, message.text) == ("7", REFUSAL)
    assert message.response_metadata == {
        "demur": {
            "outcome": "abstained",
            "reason": "attempt 2 gave the answer of attempt 1 again",
        }
    }


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: Guard(3, judge), TypeError, "Expected a Runnable"),
        (lambda: Guard(Chain("x"), judge, model="nonsense"), ValueError, "unknown model"),
        (
            lambda: Guard(Chain("x"), judge, on_fail=Block(), model=saying("y")),
            ValueError,
            "model= and on_fail= cannot both be given",
        ),
        (lambda: Guard(Chain("x"), judge, on_fail=Repair(3)), TypeError, "a LangChain chat model"),
        (
            lambda: Guard(Chain("x"), judge, on_fail=Regenerate(instruction="Be brief.")),
            ValueError,
            "nothing would read the instruction",
        ),
        (
            lambda: Guard(Chain("x"), judge, on_fail={"neutral": Retrieve(Library())}),
            ValueError,
            "nothing would read what the retriever finds",
        ),
        (
            lambda: Guard(Chain("x"), judge, on_fail=Retrieve("notes", then=Repair(saying("")))),
            TypeError,
            "Retrieve expects a retriever.*got str",
        ),
    ],
)
def test_mistakes_show_at_construction(
    build: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        build()


def test_the_trace_survives_json() -> None:
    trace = traced(Guard(Chain("bad", "good"), judge)).trace
    assert Trace.model_validate_json(trace.model_dump_json()) == trace
    assert trace.seconds > 0
