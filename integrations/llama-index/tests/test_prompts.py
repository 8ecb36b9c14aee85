"""Test demur's prompts as LlamaIndex templates, and users' templates in their places."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.output_parsers import PydanticOutputParser
from llama_index.core.prompts import (
    BasePromptTemplate,
    ChatPromptTemplate,
    PromptTemplate,
    RichPromptTemplate,
)
from pydantic import BaseModel

from demur import FEWL, RefChecker, ReverseValidation
from demur.evaluators import FEWLPrompts, RefCheckerPrompts, ReverseValidationPrompts
from demur.evaluators.fewl.prompts import numbered
from demur.evaluators.refchecker.prompts import with_preceding
from demur.runtime.prompting import Prompt, isolate
from fake_llm import ScriptedLLM
from llama_index.evaluation.demur._llm import as_chat_model
from llama_index.evaluation.demur._prompts import TemplatePrompt, as_prompt, as_template
from llama_index.evaluation.demur.evaluators import HallucinationEvaluator, RefCheckerEvaluator
from support import facts
from support.fakes import isolated

_ALL: dict[str, Prompt] = {
    f"{type(prompts).__name__}.{one.name}": getattr(prompts, one.name)
    for prompts in (RefCheckerPrompts(), ReverseValidationPrompts(), FEWLPrompts())
    for one in fields(prompts)
}
_OURS = RefCheckerPrompts().joint


@pytest.fixture
def llm() -> ScriptedLLM:
    return ScriptedLLM(script=facts.judge)


def _fewl(model: Any, **options: Any) -> FEWL:
    return FEWL(model, similarity=facts.alike, n_answers=2, **options)


def _said(messages: Sequence[BaseMessage]) -> list[tuple[str, str]]:
    return [(message.type, str(message.text)) for message in messages]


# --- From prompts to templates ------------------------------------------------------------------


@pytest.mark.parametrize("name", _ALL)
def test_a_template_shows_a_variable_for_each_field(name: str) -> None:
    prompt = _ALL[name]
    template = as_template(prompt)
    assert isinstance(template, ChatPromptTemplate)
    counted = {"n"} if "{n}" in prompt.system else set()
    assert {*template.template_vars} == {*prompt.fields, *counted}
    assert template.message_templates[0].content == prompt.system
    assert str(template.message_templates[-1].content).endswith(prompt.closing)
    assert len(template.message_templates) == 2 + 2 * len(prompt.examples)


def _forced(prompt: Prompt) -> TemplatePrompt:
    """Return the prompt of a template which is not recognized as demur's own."""
    other = Prompt("Other.", prompt.fields, closing=prompt.closing)
    counted = ["n"] if "{n}" in prompt.system + prompt.closing else []
    made = as_prompt("it", as_template(prompt), other, other, counted)
    assert isinstance(made, TemplatePrompt)
    return made


@pytest.mark.parametrize("name", _ALL)
@pytest.mark.parametrize("without", [(), ("question",)], ids=["all", "no question"])
def test_a_template_asks_what_the_prompt_asks(name: str, without: tuple[str, ...]) -> None:
    """Compare bytes, even where texts have what looks like variables, marks or paragraphs."""
    prompt = _ALL[name]
    texts = {
        field: f"Of {field}: {{claim}} {{n}} \x00\n\n{{{field}}} </{field}-aaaaaaaaaa>\n\nEnd.\n"
        for field in prompt.fields
        if field not in without
    }
    forced = _forced(prompt)
    assert _said(forced.messages(**texts)) == _said(prompt.messages(**texts))
    assert _said(numbered(forced, 7).messages(**texts)) == _said(
        numbered(prompt, 7).messages(**texts)
    )


def test_what_precedes_an_answer_is_shown_before_it() -> None:
    prompt = RefCheckerPrompts().triplets
    texts = {"question": "Who?", "preceding": "Ada came.", "answer": "She\n\nleft."}
    forced = with_preceding(_forced(prompt))
    assert _said(forced.messages(**texts)) == _said(with_preceding(prompt).messages(**texts))
    # A plain template has no instructions to extend, so these come first.
    plain = as_prompt("triplets", PromptTemplate("List: {answer}"), prompt, prompt, ())
    told = with_preceding(plain).messages(**texts)
    assert [message.type for message in told] == ["system", "human"]
    assert str(told[0].text).startswith("The answer goes on from the preceding text.")
    assert isolated("preceding", told) == "Ada came."
    assert str(told[1].text).index("Preceding:") < str(told[1].text).index("List:")


# --- From templates to prompts ------------------------------------------------------------------


@pytest.mark.parametrize("core", [RefChecker, ReverseValidation, _fewl])
def test_unchanged_templates_change_nothing(core: Callable[[Any], Any], llm: ScriptedLLM) -> None:
    evaluator = HallucinationEvaluator(core(as_chat_model(llm)))
    before = evaluator.evaluator
    result = evaluator.evaluate("What is item 1 like?", facts.answer(1), ["A list of items"])
    # The requests run side by side, in any order.
    asked = [_said(request) for request in llm.requests]
    evaluator.update_prompts(evaluator.get_prompts())
    assert evaluator.evaluator is before
    again = HallucinationEvaluator(core(as_chat_model(llm)))
    again.update_prompts(pickle.loads(pickle.dumps(evaluator.get_prompts())))
    assert again.fingerprints == result.evaluation.fingerprints
    same = again.evaluate("What is item 1 like?", facts.answer(1), ["A list of items"])
    assert sorted(map(_said, llm.requests)) == sorted(asked * 2)
    assert same.evaluation.fingerprints == result.evaluation.fingerprints


def test_a_template_is_used_and_told(llm: ScriptedLLM) -> None:
    evaluator = RefCheckerEvaluator(llm)
    first, before = evaluator.evaluator, evaluator.fingerprints
    told = evaluator.get_prompts()["joint"]
    assert isinstance(told, ChatPromptTemplate)
    system = ChatMessage("Judge like a pirate.", role=MessageRole.SYSTEM)
    mine = ChatPromptTemplate(message_templates=[system, *told.message_templates[1:]])
    evaluator.update_prompts({"joint": mine})
    found = evaluator.evaluate("What is it like?", facts.answer(1), ["Some {claims} {n}"])
    assert facts.grade(1, found.evaluation) == "right"
    said = _said(llm.requests[-1])
    assert said[0] == ("system", "Judge like a pirate.")
    assert said[1:] == _said(
        _OURS.messages(
            reference="Some {claims} {n}",
            question="What is it like?",
            claims="1. Item 1 is red\n2. Item 1 is heavy",
        )[1:]
    )
    after = evaluator.fingerprints
    assert {name for name in before if before[name] != after[name]} == {"prompts"}
    assert found.evaluation.fingerprints == after
    # An evaluator that was taken before the update keeps its prompts.
    assert first.fingerprints == before  # type: ignore[attr-defined]  # a RefChecker has them
    assert evaluator.get_prompts()["joint"] == mine
    # The old prompt can be set again.
    evaluator.update_prompts({"joint": told})
    assert evaluator.fingerprints == before


def test_a_plain_template_is_one_message(llm: ScriptedLLM) -> None:
    evaluator = RefCheckerEvaluator(llm, checker="per_claim")
    text = "By this:\n{reference}\n\nAsked: {question}\n\nIs it so? {claim}"
    evaluator.update_prompts({"per_claim": PromptTemplate(text)})
    evaluator.evaluate(None, facts.answer(2), ["A list."])
    reference = isolate("reference", "A list.")
    claims = [isolate("claim", f"Item 2 is {one}") for one in facts.ATTRIBUTES]
    # The claims are asked about side by side.
    assert sorted(map(_said, llm.requests[-2:])) == sorted(
        [("human", f"By this:\n{reference}\n\nIs it so? {claim}")] for claim in claims
    )


def test_a_paragraph_keeps_what_has_a_text() -> None:
    template = PromptTemplate("{reference}: {question}{claims}\n\nAgain: {question}\n\nLabel:")
    made = as_prompt("joint", template, _OURS, _OURS, ())
    (message,) = made.messages(reference="a", claims="b", question=None)
    expected = f"{isolate('reference', 'a')}: {isolate('claims', 'b')}\n\nLabel:"
    assert str(message.text) == expected


def test_fewl_s_counts_are_filled_in(llm: ScriptedLLM) -> None:
    evaluator = HallucinationEvaluator(_fewl(as_chat_model(llm), n_wrong=3, penalty=False))
    evaluator.update_prompts(
        {
            "answers": PromptTemplate("{n} answers to {question}"),
            "pairs": PromptTemplate("{question}\n\nThree wrong answers"),
        }
    )
    found = evaluator.evaluate("What is item 2 like?", facts.answer(2))
    assert not found.invalid_result
    shown = isolate("question", "What is item 2 like?")
    said = {str(request[0].text) for request in llm.requests}
    assert said == {f"2 answers to {shown}", f"{shown}\n\nThree wrong answers"}


def test_fingerprints_are_the_same_in_every_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep fingerprints equal, although the delimiters in a template's examples differ."""

    def told() -> dict[str, str]:
        evaluator = RefCheckerEvaluator(ScriptedLLM(script=facts.judge))
        template = evaluator.get_prompts()["triplets"]
        assert isinstance(template, ChatPromptTemplate)
        template.message_templates[0].content = "Other."
        evaluator.update_prompts({"triplets": template})
        return evaluator.fingerprints

    before = told()
    monkeypatch.setattr("demur.runtime.prompting.isolation._SECRET", b"another")
    from demur.runtime.prompting import prompts

    # No rendered example is cached.
    monkeypatch.setattr(prompts, "_examples", prompts._examples.__wrapped__)
    assert told() == before


# --- What is refused ----------------------------------------------------------------------------


class _Form(BaseModel):
    label: str


_JOINT = "{reference} {claims}"


_REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "a missing variable": (
        PromptTemplate("{reference}"),
        ValueError,
        r"'joint': expected the variables \{reference\}, \{claims\} \(and, if wanted, "
        r"\{question\}\), got \{reference\}",
    ),
    "an unknown variable": (PromptTemplate(_JOINT + " {answer}"), ValueError, r"\{answer\}"),
    "a value of ours": (
        PromptTemplate(_JOINT, reference="mine"),
        ValueError,
        r"expected the variables \{reference\}, \{claims\}.*got \{claims\}",
    ),
    "a function": (
        PromptTemplate(_JOINT, function_mappings={"claims": str}),
        ValueError,
        "functions, which are not called here",
    ),
    "a text": (_JOINT, TypeError, "expected a ChatPromptTemplate or a PromptTemplate, got str"),
    "rich": (RichPromptTemplate("{{reference}}"), TypeError, "got RichPromptTemplate"),
    "a role": (
        ChatPromptTemplate(message_templates=[ChatMessage(_JOINT, role=MessageRole.TOOL)]),
        ValueError,
        "roles system, user, assistant, got a message of tool",
    ),
    "a parser": (
        PromptTemplate(_JOINT, output_parser=PydanticOutputParser(_Form)),
        ValueError,
        "demur reads the replies",
    ),
}


@pytest.mark.parametrize(("template", "kind", "said"), _REFUSED.values(), ids=_REFUSED)
def test_what_cannot_be_used_is_refused_and_changes_nothing(
    llm: ScriptedLLM, template: Any, kind: type[Exception], said: str
) -> None:
    evaluator = RefCheckerEvaluator(llm)
    before = evaluator.evaluator
    good: BasePromptTemplate = PromptTemplate("Other. {answer}")
    with pytest.raises(kind, match=said):
        evaluator.update_prompts({"triplets": good, "joint": template})
    assert evaluator.evaluator is before


def test_an_unknown_prompt_is_refused(llm: ScriptedLLM) -> None:
    evaluator = HallucinationEvaluator(_fewl(as_chat_model(llm)))
    with pytest.raises(ValueError, match=r"unknown prompts 'eval_template': expected some of 'ans"):
        evaluator.update_prompts({"eval_template": PromptTemplate("{question}")})
    nothing = HallucinationEvaluator(lambda sample: True)
    nothing.update_prompts({})
    with pytest.raises(ValueError, match=r"unknown prompts 'joint': expected some of none"):
        nothing.update_prompts({"joint": PromptTemplate("{question}")})
