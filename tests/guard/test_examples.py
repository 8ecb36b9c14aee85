"""The guards of README.md and docs/guard.md, made as they are typed."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

import demur
from demur import AnswerRejected, Claim, ClaimLabel, Evaluation, Guard, Sample
from demur.evaluators import Evaluator
from demur.guard import REFUSAL, UNCHECKED, Feedback
from demur.runtime import Steps, ask_all
from support.fakes import ScriptedModel

ROOT = Path(__file__).parents[2]


def _section(page: str, heading: str) -> str:
    text = (ROOT / page).read_text(encoding="utf-8")
    return text.partition(f"## {heading}\n")[2].partition("\n## ")[0]


_PAGE = _section("docs/guard.md", "What happens to an answer").partition("\n### ")[0]
EXAMPLES = {
    "README": _section("README.md", "The guard").split("```")[1].removeprefix("python\n"),
    "docs": textwrap.dedent("\n".join(re.findall(r"^ {4}.*", _PAGE, re.MULTILINE))),
}


class Checker(Evaluator):
    """Rejects "bad", for a claim with a label."""

    label: ClaimLabel

    @property
    def claim_level(self) -> bool:
        return True

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        yield from ask_all(())
        bad = Claim(text="it is bad", label=self.label)
        passed = sample.answer == "good"
        return Evaluation(name="checker", passed=passed, claims=() if passed else (bad,))


def names(label: ClaimLabel) -> dict[str, Any]:
    """What the examples take for granted: a chain that answers well when it is told or finds."""

    def speak(stage: str, messages: Sequence[BaseMessage]) -> str:
        return "good" if "it is bad" in str(messages[-1].content) else "bad"

    def tell(given: str, feedback: Feedback) -> str:
        return f"{given}\n{feedback.prompt}"

    search = RunnableLambda(lambda query: [Document(str(query))])
    model, prompt = ScriptedModel(script=speak), ChatPromptTemplate.from_template("{context}")
    chain = {"context": search | str} | prompt | model | StrOutputParser()
    return {
        **{name: getattr(demur, name) for name in demur.__all__},
        **{"chain": chain, "model": model, "prompt": prompt, "retriever": search},
        **{"archive": search, "joined": str, "tell": tell},
        **{"cheap": Checker(label=label), "checker": Checker(label=label)},
        "RunnablePassthrough": RunnablePassthrough,
    }


def guards(page: str, given: dict[str, Any]) -> list[Guard[Any, Any]]:
    """Each guard that a page's example makes, in order."""
    made: list[Any] = []
    for statement in ast.parse(EXAMPLES[page]).body:
        if isinstance(statement, ast.Expr):
            code = compile(ast.Expression(statement.value), "", "eval")
            made.append(eval(code, given))  # noqa: S307  # our own page
        else:
            exec(compile(ast.Module([statement], []), "", "exec"), given)  # noqa: S102  # our own page
            made += [given.get("guarded")] if "guarded =" in ast.unparse(statement) else []
    return [one for one in made if isinstance(one, Guard)]


@pytest.mark.parametrize("label", [ClaimLabel.NEUTRAL, ClaimLabel.CONTRADICTION])
@pytest.mark.parametrize("page", EXAMPLES)
def test_no_example_lets_out_what_was_rejected(page: str, label: ClaimLabel) -> None:
    outputs = []
    for guard in (made := guards(page, names(label))):
        try:
            output = guard.invoke("why?")
        except AnswerRejected:
            output = "rejected"
        text = str(getattr(output, "text", output))
        outputs.append(text.partition("\n\nNote: ")[0] if "it is bad" in text else text)
    noted = {"bad"} if "Annotate()" in EXAMPLES[page] else set()
    assert set(outputs) <= {"good", REFUSAL, "rejected"} | noted
    assert len(made) > 6
    # Where all is taken out that fails, nothing is left here.
    assert outputs.count("good") >= (len(made) - 1) // 2


class Down(Checker):
    """Cannot decide."""

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        yield from ask_all(())
        return Evaluation(name="checker", error="the model is down")


@pytest.mark.parametrize("page", EXAMPLES)
def test_no_example_lets_out_what_a_failing_judge_could_not_check(page: str) -> None:
    down = Down(label=ClaimLabel.NEUTRAL)
    outputs = []
    for guard in guards(page, {**names(ClaimLabel.NEUTRAL), "cheap": down, "checker": down}):
        try:
            output = guard.invoke("why?")
        except AnswerRejected:
            output = "rejected"
        outputs.append(str(getattr(output, "text", output)))
    noted = [output for output in outputs if "\n\nNote: this answer could not be" in output]
    assert {*outputs} - {*noted} == {UNCHECKED, "rejected"}
    assert len(noted) == EXAMPLES[page].count("Annotate()")


def test_the_examples_recover_as_their_comments_say() -> None:
    by_label = {
        label: [
            [attempt.recovery for attempt in guard.with_trace().invoke("why?").trace.attempts[1:2]]
            for guard in guards("docs", names(label))[:6]
        ]
        for label in (ClaimLabel.NEUTRAL, ClaimLabel.CONTRADICTION)
    }
    first = [["regenerate"], ["repair"], ["regenerate"]]
    search = [["retrieve"]]
    assert by_label == {
        ClaimLabel.NEUTRAL: [*first, *search, *search, *search],
        ClaimLabel.CONTRADICTION: [*first, ["repair"], ["repair"], *search],
    }
