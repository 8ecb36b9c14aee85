from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import pytest
from llama_index.core import PromptTemplate
from llama_index.core.base.response.schema import (
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.schema import (
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from pydantic import BaseModel

from demur import (
    AnswerRejected,
    Block,
    Evaluation,
    Regenerate,
    Retrieve,
)
from demur.guard import REFUSAL, UNCHECKED, Feedback
from guarded_app import (
    MODES,
    SILENT,
    Heard,
    Said,
    ask,
    finds,
    judge,
    llm_of,
    nodes_of,
    prompts,
    query_engine,
    read,
    silent_judge,
    speaker,
)
from llama_index.evaluation.demur._result import trace_of
from llama_index.evaluation.demur.evaluators import RefCheckerEvaluator
from llama_index.evaluation.demur.events import (
    DecisionEvent,
    EvaluationEvent,
    OutcomeEvent,
)
from llama_index.evaluation.demur.query_engine import GuardedQueryEngine
from support.evaluators import Scripted, undetermined
from support.fakes import ScriptedModel
from support.rag import FACTS, QUESTION, RIGHT, WRONG

# --- Answers and their outcomes ------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_good_answer_leaves_as_the_engine_gave_it(mode: str) -> None:
    engine = query_engine(RIGHT)
    plain = ask(mode, engine)
    guarded = ask(mode, GuardedQueryEngine(engine, judge()))
    assert type(guarded) is type(plain)
    assert guarded.response == plain.response == RIGHT
    assert [n.node.node_id for n in guarded.source_nodes] == [
        n.node.node_id for n in plain.source_nodes
    ]
    assert {k: v for k, v in guarded.metadata.items() if k != "demur"} == plain.metadata
    assert guarded.metadata["demur"]["outcome"] == "passed"
    assert trace_of(guarded).attempts[0].question == QUESTION


@pytest.mark.smoke
@pytest.mark.parametrize("mode", MODES)
def test_the_engine_answers_again_from_its_nodes(mode: str) -> None:
    engine = query_engine(WRONG, RIGHT)
    guarded = ask(mode, GuardedQueryEngine(engine, judge()))
    assert str(guarded) == RIGHT
    assert guarded.metadata["demur"]["outcome"] == "recovered"
    first, second = trace_of(guarded).attempts
    assert (first.answer, second.answer) == (WRONG, RIGHT)
    assert (second.origin, second.recovery) == ("feedback", "regenerate")
    again = prompts(llm_of(engine))[-1]
    assert "97" in again
    assert QUESTION in again


@pytest.mark.parametrize("mode", MODES)
def test_claims_are_what_the_engines_retriever_is_asked(mode: str) -> None:
    """Search by a neutral claim, which finds the fact that the question does not find."""
    from demur import Claim, ClaimLabel

    def lacks(sample: Any) -> Evaluation:
        held = any("302" in one.page_content for one in sample.contexts)
        claim = Claim(
            text="302 steps lead to the top",
            label=ClaimLabel.ENTAILMENT if held else ClaimLabel.NEUTRAL,
        )
        return Evaluation(name="Lacking", score=held, passed=held, claims=(claim,))

    engine = query_engine("302 steps lead to the top.", k=1)
    guarded = ask(mode, GuardedQueryEngine(engine, lacks), "When does the ferry sail?")
    assert guarded.metadata["demur"]["outcome"] == "recovered"
    (before,) = trace_of(guarded).attempts[0].contexts
    texts = [node.node.get_content() for node in guarded.source_nodes]
    assert FACTS[2] not in before.page_content
    assert texts[1] == FACTS[2]
    assert texts[0] in before.page_content


@pytest.mark.parametrize("mode", MODES)
def test_no_answer_passes(mode: str) -> None:
    guarded = ask(mode, GuardedQueryEngine(query_engine(WRONG), judge()))
    assert str(guarded) == REFUSAL
    assert guarded.metadata["demur"]["outcome"] == "abstained"
    assert "97" not in json.dumps(guarded.metadata["demur"])
    assert trace_of(guarded).attempts[0].answer == WRONG
    with pytest.raises(AnswerRejected, match="rejected"):
        ask(mode, GuardedQueryEngine(query_engine(WRONG), judge(), on_fail=Block()))
    unsure = Scripted(script=lambda _: undetermined("the model is down"))
    assert str(ask(mode, GuardedQueryEngine(query_engine(RIGHT), unsure))) == UNCHECKED


def test_an_answer_that_states_nothing_is_not_called_passed() -> None:
    engine = query_engine(SILENT)
    with Heard() as heard:
        guarded = ask("sync", GuardedQueryEngine(engine, silent_judge()))
    assert str(guarded) == SILENT
    found = guarded.metadata["demur"]
    assert found["outcome"] == "nothing_to_check"
    assert [(one["finding"], one["passed"]) for one in found["evaluations"]] == [
        ("nothing_to_check", None)
    ]
    assert [one.outcome for one in heard.of(OutcomeEvent)] == ["nothing_to_check"]
    assert [one.finding for one in heard.of(EvaluationEvent)] == ["nothing_to_check"]
    strict = GuardedQueryEngine(engine, silent_judge(), on_abstain="fail")
    assert str(ask("sync", strict)) == REFUSAL


def test_the_guards_model_repairs() -> None:
    model = speaker(RIGHT)
    guarded = ask("sync", GuardedQueryEngine(query_engine(WRONG), judge(), model=model))
    assert str(guarded) == RIGHT
    assert trace_of(guarded).attempts[1].origin == "repair"
    assert FACTS[0] in [node.node.get_content() for node in guarded.source_nodes]
    assert len(prompts(model)) == 1


def test_feedback_of_ones_own() -> None:
    engine = query_engine(WRONG, RIGHT)

    def again(query: QueryBundle, feedback: Feedback) -> QueryBundle:
        assert feedback.answer == WRONG
        return QueryBundle(f"{query.query_str} In metres, please.")

    guarded = ask("sync", GuardedQueryEngine(engine, judge(), on_fail=Regenerate(again)))
    assert str(guarded) == RIGHT
    assert "In metres, please." in prompts(llm_of(engine))[-1]


# --- Any engine ----------------------------------------------------------------------------------


def _response(text: str, *facts: str, **options: Any) -> Response:
    return Response(text, source_nodes=nodes_of(*facts), **options)


@pytest.mark.parametrize("mode", MODES)
def test_an_engine_that_neither_retrieves_nor_synthesizes(mode: str) -> None:
    def script(query: str) -> Response:
        return _response(RIGHT if "does not hold" in query else WRONG, FACTS[0])

    engine = Said(script=script)
    guarded = ask(mode, GuardedQueryEngine(engine, judge(), on_fail=Retrieve(finds(FACTS[1]))))
    assert str(guarded) == RIGHT
    assert engine.asked[0] == QUESTION
    assert QUESTION in engine.asked[1]


class Height(BaseModel):
    metres: int


def structured() -> Said:
    def script(query: str) -> PydanticResponse:
        height = Height(metres=84 if "does not hold" in query else 97)
        return PydanticResponse(height, nodes_of(FACTS[0]))

    return Said(script=script)


@pytest.mark.parametrize("mode", MODES)
def test_a_structured_answer(mode: str) -> None:
    guarded = ask(mode, GuardedQueryEngine(structured(), judge()))
    assert isinstance(guarded, PydanticResponse)
    assert guarded.response == Height(metres=84)
    assert guarded.metadata is not None
    assert guarded.metadata["demur"]["outcome"] == "recovered"
    writer = ScriptedModel(script=lambda stage, messages: '{"metres": 84}')
    repaired = ask(mode, GuardedQueryEngine(structured(), judge(), model=writer))
    assert isinstance(repaired, PydanticResponse)
    assert repaired.response == Height(metres=84)
    assert [node.text for node in repaired.source_nodes] == [FACTS[0]]
    refused = ask(mode, GuardedQueryEngine(structured(), judge(), on_fail="abstain"))
    assert isinstance(refused, Response)
    assert str(refused) == REFUSAL


def test_what_was_found_stands_among_the_sources() -> None:
    """Add the nodes of the evidence, even if the engine itself does not know them."""
    said = "302 steps lead to the top."
    engine = Said(script=lambda _: _response(said, FACTS[0], metadata={"k": 1}))
    guarded = GuardedQueryEngine(engine, judge(), on_fail=Retrieve(finds(FACTS[2])))
    response = ask("sync", guarded)
    evidence = response.metadata["demur"]["evidence"]
    assert evidence
    sources = {node.node.node_id for node in response.source_nodes}
    assert {found["node_id"] for found in evidence} <= sources
    assert response.metadata["k"] == 1


@pytest.mark.parametrize(
    ("mode", "streams", "passes"),
    [("sync", False, True), ("async", False, False), ("sync", True, False)],
)
def test_what_an_engine_puts_beside_a_text_leaves_with_that_text_only(
    mode: str, streams: bool, passes: bool
) -> None:
    """Drop the metadata of a rejected text: engines over tables put there what they found."""
    said = RIGHT if passes else WRONG

    def script(_: str) -> Any:
        whole = _response(said, FACTS[0])
        node = whole.source_nodes[0].node.node_id
        metadata = {"said": said, node: {"page": 1}}
        if not streams:
            return Response(said, whole.source_nodes, metadata)
        return StreamingResponse(iter([said]), whole.source_nodes, metadata)

    engine = GuardedQueryEngine(Said(script=script), judge(), on_fail="abstain")
    response = read(mode, engine)[1] if streams else ask(mode, engine)
    assert {"page": 1} in response.metadata.values()
    assert response.metadata["demur"]["outcome"] == ("passed" if passes else "abstained")
    assert response.metadata.get("said") == (RIGHT if passes else None)


def test_wrong_arguments() -> None:
    engine = query_engine(RIGHT)
    with pytest.raises(TypeError, match="expected a LlamaIndex query engine"):
        GuardedQueryEngine(RIGHT, judge())  # type: ignore[arg-type]  # what is refused
    with pytest.raises(ValueError, match="needs an evaluator"):
        GuardedQueryEngine(engine)
    with pytest.raises(TypeError, match="retriever: expected a LlamaIndex BaseRetriever"):
        GuardedQueryEngine(engine, judge(), on_fail=Retrieve("bm25"))
    with pytest.raises(ValueError, match="claim by claim"):
        GuardedQueryEngine(engine, Scripted(script=lambda _: 1.0), streaming="sentence")


def test_a_deep_copy_asks_an_engine_of_its_own() -> None:
    engine = Said(script=lambda query: _response(RIGHT, FACTS[0]))
    again = copy.deepcopy(GuardedQueryEngine(engine, judge()))
    assert str(again.query(QUESTION)) == RIGHT
    assert engine.asked == []


def test_prompts_are_the_engines() -> None:
    engine = query_engine(RIGHT)
    guarded = GuardedQueryEngine(GuardedQueryEngine(engine, judge()), judge())
    assert set(guarded.get_prompts()) == set(engine.get_prompts()) != set()
    name = "response_synthesizer:text_qa_template"
    guarded.update_prompts({name: PromptTemplate("Be brief. {context_str} {query_str}")})
    guarded.query(QUESTION)
    assert "Be brief." in prompts(llm_of(engine))[0]


def test_it_retrieves_as_the_engine_and_synthesizes_nothing_unchecked() -> None:
    engine = query_engine(RIGHT)
    guarded = GuardedQueryEngine(engine, judge())
    bundle = QueryBundle(QUESTION)
    found = guarded.retrieve(bundle)
    assert [n.node.node_id for n in found] == [n.node.node_id for n in engine.retrieve(bundle)]
    with pytest.raises(NotImplementedError):
        guarded.synthesize(bundle, found)


# --- Engines in engines --------------------------------------------------------------------------


def test_the_refusal_of_a_guard_inside_is_not_judged() -> None:
    inner = GuardedQueryEngine(query_engine(WRONG), judge())
    strict = Scripted(script=lambda _: Evaluation(name="Strict", score=0.0, passed=False))
    guarded = ask("sync", GuardedQueryEngine(inner, strict))
    assert str(guarded) == REFUSAL
    assert guarded.metadata["demur"]["outcome"] == "abstained"
    assert strict.asked == []


def test_in_a_running_loop() -> None:
    """Make a synchronous call while a loop runs, as in a notebook."""
    guarded = GuardedQueryEngine(query_engine(WRONG, RIGHT, use_async=True), judge())

    async def notebook() -> Any:
        return guarded.query(QUESTION)

    assert str(asyncio.run(notebook())) == RIGHT


async def test_many_at_once_know_nothing_of_each_other() -> None:
    def script(query: str) -> Response:
        item = query.split()[2].rstrip("?")
        text = (
            f"Item {item} has {item} parts." if "does not hold" in query else "It has 1000 parts."
        )
        return _response(text, f"Item {item} has {item} parts.")

    guarded = GuardedQueryEngine(Said(script=script), judge())
    found = await asyncio.gather(*(guarded.aquery(f"What of {n} is told?") for n in range(30)))
    assert [str(one) for one in found] == [f"Item {n} has {n} parts." for n in range(30)]


# --- What it costs -------------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "streaming"), [("sync", False), ("async", True)])
def test_the_engines_calls_are_counted(mode: str, streaming: bool) -> None:
    engine = query_engine(WRONG, RIGHT, streaming=streaming)
    guarded = GuardedQueryEngine(engine, judge())
    response = read(mode, guarded)[1] if streaming else ask(mode, guarded)
    usages = [attempt.usage for attempt in trace_of(response).attempts]
    assert [one.calls for one in usages] == [1, 1]
    assert all(one.input_tokens > 0 and one.output_tokens > 0 for one in usages)


# --- Evidence ------------------------------------------------------------------------------------


def test_evidence_has_its_place_in_nodes_and_documents() -> None:
    whole = f"{'The harbour is old. ' * 30}{FACTS[0]} {'Boats lie in it. ' * 30}"
    start = whole.index(FACTS[0]) - 40
    held = TextNode(
        text=whole[start : start + 120],
        metadata={"title": "Lund in 84 pages"},
        start_char_idx=start,
        end_char_idx=start + 120,
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="guide")},
    )
    engine = Said(script=lambda _: Response(RIGHT, [NodeWithScore(node=held)]))
    response = GuardedQueryEngine(engine, judge()).query(QUESTION)
    (found,) = response.metadata["demur"]["evidence"]  # type: ignore[index]  # it has one
    assert (found["node_id"], found["ref_doc_id"]) == (held.node_id, "guide")
    assert held.get_content()[found["start"] : found["end"]] == found["text"]
    assert whole[found["doc_start"] : found["doc_end"]] == found["text"]
    assert "84" in found["text"]
    evaluated = RefCheckerEvaluator(judge().model).evaluate_response(QUESTION, response)
    assert evaluated.evidence == [found]


# --- Events --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_events_tell_what_happens(mode: str) -> None:
    guarded = GuardedQueryEngine(query_engine(WRONG, RIGHT), judge())
    with Heard() as heard:
        response = ask(mode, guarded)
    judged = heard.of(EvaluationEvent)
    assert [(one.attempt, one.name, one.passed) for one in judged] == [
        (1, "RefChecker", False),
        (2, "RefChecker", True),
    ]
    (decided,) = heard.of(DecisionEvent)
    assert (decided.verdict, decided.action, decided.failures) == (
        "failed",
        "regenerate",
        ["contradiction"],
    )
    (ended,) = heard.of(OutcomeEvent)
    assert (ended.outcome, ended.attempts, ended.refusal) == ("recovered", 2, None)
    assert ended.trace is trace_of(response)
    assert [one["label"] for one in ended.evidence] == ["Entailment"]
    assert ended.evidence[0]["text"] in FACTS[0]
    told = [one.model_dump_json(exclude={"id_"}) for one in (*judged, decided, ended)]
    assert not any("97 metres" in one for one in told)
    # Only the last event tells of what is delivered.
    assert not any("metres" in one for one in told[:-1])
    assert len({one.span_id for one in (*judged, decided, ended)}) == 1
