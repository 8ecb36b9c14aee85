"""List the guards for the contract tests, at module level so that they can be pickled.

About an odd item the chain says something false. When corrected, it speaks of another, even item.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.output_parsers import (
    JsonOutputParser,
    PydanticOutputParser,
    StrOutputParser,
)
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    Runnable,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)
from pydantic import BaseModel

from contract.evaluators import refchecker
from contract.member import Member
from demur import (
    Annotate,
    Budget,
    Cite,
    Claim,
    ClaimLabel,
    Evaluation,
    Guard,
    RefChecker,
    Regenerate,
    Repair,
    Retrieve,
    Sample,
    Strip,
)
from demur.guard import REFUSAL, Feedback, Guarded, widen
from support import facts
from support.fakes import ScriptedModel

PROMPT = ChatPromptTemplate.from_template("From {context} answer: {question}")


def _listing(query: str) -> Document:
    return Document(f"What was found for: {query}")


class Items(BaseRetriever):
    """Retrieve a document of its own for each query."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [_listing(query)]


def _speak(stage: str, messages: Sequence[BaseMessage]) -> str:
    """Reply as the chain's model, or as the model that corrects its answer."""
    said = facts.speak(stage, messages)
    better = stage == "repair" or "Answer correctly" in str(messages[-1].content)
    return _corrected(int(said.split()[1])) if better else said


def _corrected(number: int) -> str:
    return facts.answer(number if number % 2 == 0 else 2 * number)


def _passes(sample: Sample) -> Evaluation:
    """Pass an answer whose attributes are all true; this evaluator is a plain function."""
    number = int(sample.answer.split()[1])
    share = facts.supported(number) / len(facts.ATTRIBUTES)
    return Evaluation(name="plain", score=share, passed=share == 1, explanation="Look again.")


class Described(BaseRetriever):
    """Retrieve a text that tells of the item what is true."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [facts.description(int(number)) for number in re.findall(r"item (\d+)", query)]


def _chain(retriever: BaseRetriever | None = None) -> Runnable[Any, Any]:
    found = {"context": retriever or Items(), "question": RunnablePassthrough()}
    return found | PROMPT | ScriptedModel(script=_speak)


def _refusing() -> Runnable[Any, Any]:
    return Guard(_chain() | StrOutputParser(), refchecker("joint"))


def _annotating() -> Guard[Any, Any]:
    return Guard(_chain() | StrOutputParser(), _passes, on_fail=Annotate())


def _asking_again() -> Runnable[Any, Any]:
    asked = RunnableLambda(_asked)
    chain = RunnableParallel(question=asked, answer=asked | _chain() | StrOutputParser())
    return Guard(chain, _passes, on_fail=Regenerate(_better_asked))


def _asked(input: dict[str, str]) -> str:
    return input["question"]


def _better_asked(input: dict[str, str], feedback: Feedback) -> dict[str, str]:
    return {"question": f"{input['question']} Answer correctly. {feedback.text}"}


def _repairing() -> Runnable[Any, Any]:
    model = ScriptedModel(script=_speak)
    return Guard(_chain(), _passes, on_fail=Retrieve(Items(), then=Repair(model)))


class Structured(BaseModel):
    """An answer, with a value beside it that says the same."""

    answer: str
    item: int


def _repairing_data() -> Runnable[Any, Any]:
    """Return a guard whose chain streams growing parsed JSON, and which repairs the output."""
    chain = _chain() | RunnableLambda(_as_json) | JsonOutputParser()
    return Guard(chain, _passes_data, on_fail=Retrieve(Items(), then=Repair(_writing())))


def _repairing_an_object() -> Runnable[Any, Any]:
    parser = PydanticOutputParser(pydantic_object=Structured)
    chain = _chain() | RunnableLambda(_as_json) | parser
    return Guard(chain, _passes_data, on_fail=Retrieve(Items(), then=Repair(_writing())))


def _writing() -> ScriptedModel:
    return ScriptedModel(script=_write)


def _as_json(message: AIMessage) -> str:
    said = str(message.text)
    return json.dumps({"answer": said, "item": int(said.split()[1])})


def _write(stage: str, messages: Sequence[BaseMessage]) -> str:
    return _as_json(AIMessage(_speak(stage, messages)))


def _passes_data(sample: Sample) -> Evaluation:
    said = json.loads(sample.answer)
    assert said["item"] == int(said["answer"].split()[1])  # Both values are repaired together.
    return _passes(sample.model_copy(update={"answer": said["answer"]}))


def _is_corrected_data(number: int, output: dict[str, Any]) -> bool:
    return output == json.loads(_as_json(AIMessage(_corrected(number))))


def _is_corrected_object(number: int, output: Structured) -> bool:
    return _is_corrected_data(number, output.model_dump())


def _widening() -> Runnable[Any, Any]:
    """Return a guard whose chain answers correctly once the widened search has found the item."""
    speaker = ScriptedModel(script=_speak_of_what_was_read)
    wide = widen(Items())
    found = {"context": wide, "question": RunnablePassthrough()}
    chain = found | PROMPT | speaker | StrOutputParser()
    return Guard(chain, _lacks, on_fail={"neutral": Retrieve(wide)})


def _speak_of_what_was_read(stage: str, messages: Sequence[BaseMessage]) -> str:
    said = facts.speak(stage, messages)
    read = "it is even" in str(messages[-1].content)
    return _corrected(int(said.split()[1])) if read else said


def _lacks(sample: Sample) -> Evaluation:
    """Evaluate as `_passes` does, and name the claim that is not supported."""
    found = _passes(sample)
    if found.passed:
        return found
    lacking = Claim(text="it is even", label=ClaimLabel.NEUTRAL)
    return found.model_copy(update={"claims": (lacking,)})


def _nested() -> Runnable[Any, Any]:
    """Return nested guards: the inner one refuses wrong answers; the outer one ignores refusals."""
    return Guard(_refusing(), _passes, budget=Budget(attempts=2, model_calls=9, seconds=600))


def _open() -> Runnable[Any, Any]:
    model = ScriptedModel(script=_mumble)
    return Guard(_chain() | StrOutputParser(), RefChecker(model), on_error="open")


def _mumble(stage: str, messages: Sequence[BaseMessage]) -> str:
    return "Hm."


def _conversing() -> Runnable[Any, Any]:
    """Return a guard with no documents, but with a conversation that tells about the even items."""
    return Guard(
        RunnableLambda(_asked) | _chain() | StrOutputParser(),
        _was_told,
        contexts=_no_documents,
        on_fail="abstain",
        conversation=True,
    )


def _no_documents(output: Any) -> list[Document]:
    return []


def _told(number: int) -> dict[str, Any]:
    said = facts.answer(number) if number % 2 == 0 else "I have seen none."
    history = [HumanMessage(said), AIMessage(facts.answer(number)), HumanMessage("Well?")]
    return {"question": facts.question(number), "history": history}


def _was_told(sample: Sample) -> Evaluation:
    told = any(sample.answer == document.page_content for document in sample.contexts)
    return Evaluation(name="told", passed=told, score=float(told), explanation="Nobody said so.")


def _citing(streaming: Literal["buffer", "sentence"]) -> Runnable[Any, Any]:
    """Return a guard that cites supported sentences and takes out contradicted ones."""
    return Guard(
        _chain() | StrOutputParser(),
        RefChecker(ScriptedModel(script=facts.judge), checker="joint", claims="sentences"),
        on_fail={"contradiction": Strip()},
        on_pass=Cite(),
        streaming=streaming,
    )


def _small() -> Runnable[Any, Any]:
    """Return the same guard with the small judge, which reads what was retrieved."""
    return Guard(
        _chain(Described()) | StrOutputParser(),
        RefChecker("small"),
        on_fail={"contradiction": Strip()},
        on_pass=Cite(),
        streaming="sentence",
    )


def _is_cited(number: int, output: str) -> bool:
    held = facts.ATTRIBUTES[: facts.supported(number)]
    return output == (" ".join(f"Item {number} is {one} [1]." for one in held) or REFUSAL)


def _traced() -> Runnable[Any, Any]:
    return _annotating().with_trace()


def _question_in_dict(number: int) -> dict[str, str]:
    return {"question": facts.question(number)}


def _is_refused(number: int, output: str) -> bool:
    return output == (facts.answer(number) if number % 2 == 0 else REFUSAL)


def _is_annotated(number: int, output: str) -> bool:
    answer, _, note = output.partition("\n\n")
    return answer == facts.answer(number) and bool(note) is (number % 2 == 1)


def _is_corrected_in_dict(number: int, output: dict[str, str]) -> bool:
    asked = output["question"].startswith(facts.question(number))
    return asked and output["answer"] == _corrected(number)


def _is_corrected(number: int, output: AIMessage) -> bool:
    return isinstance(output, AIMessage) and output.text == _corrected(number)


def _is_corrected_text(number: int, output: str) -> bool:
    return output == _corrected(number)


def _is_said(number: int, output: str) -> bool:
    return output == facts.answer(number)


def _is_annotated_with_trace(number: int, output: Guarded[str]) -> bool:
    (attempt,) = output.trace.attempts
    retrieved = attempt.contexts == (_listing(facts.question(number)),)
    return (
        retrieved
        and attempt.answer == facts.answer(number)
        and attempt.usage.calls == 1
        and _is_annotated(number, output.output)
    )


def _same(output: Any) -> Any:
    return output


def _text(output: AIMessage) -> str:
    return str(output.text)  # Only the text is compared, because each message has a new id.


def _output_and_outcome(output: Guarded[str]) -> tuple[str, str]:
    return output.output, output.trace.outcome


def _guard(
    name: str,
    make: Callable[[], Runnable[Any, Any]],
    good: Callable[[int, Any], bool],
    essence: Callable[[Any], Any] = _same,
) -> Member:
    complaint = "about no item"
    return Member(name, make, facts.question, essence, good, "How are you?", complaint)


GUARDS = [
    _guard("guard that refuses, string", _refusing, _is_refused),
    _guard("guard that annotates, string", _annotating, _is_annotated),
    replace(
        _guard("guard that asks again, dict", _asking_again, _is_corrected_in_dict),
        give=_question_in_dict,
        bad_input={"question": "How are you?"},
    ),
    _guard("guard that repairs, message", _repairing, _is_corrected, _text),
    _guard("guard that repairs, data", _repairing_data, _is_corrected_data),
    _guard("guard that repairs, object", _repairing_an_object, _is_corrected_object),
    _guard("guard that widens, string", _widening, _is_corrected_text),
    replace(
        _guard("guard that reads the conversation, string", _conversing, _is_refused),
        give=_told,
        bad_input={"question": "How are you?", "history": []},
    ),
    _guard("guard that cites and trims, string", partial(_citing, "buffer"), _is_cited),
    _guard("guard that cites and trims by sentences", partial(_citing, "sentence"), _is_cited),
    _guard("guard with the small judge, by sentences", _small, _is_cited),
    _guard("guard in a guard, string", _nested, _is_refused),
    _guard("guard without a judge, string", _open, _is_said),
    _guard("guard with its trace", _traced, _is_annotated_with_trace, _output_and_outcome),
]
