"""Test the LlamaIndex distribution as pip installs it, beside openai 2 and without model packages.

The examples of docs/llama-index.md and of README.md are run there too. LlamaIndex's package for
OpenAI requires openai below 3, so pip takes openai 2 there for all distributions.
"""

from __future__ import annotations

import json
import textwrap
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest

from demur.errors import LocalModelError
from readme import PAGE, README, blocks
from support import installed
from support.openai_server import openai_server
from support.rag import application

# The first test that asks for the environment waits until pip has made it.
pytestmark = [pytest.mark.packaging, pytest.mark.timeout(600)]


def run(python: Path, folder: Path, code: str, **variables: str) -> Any:
    """Run code in the environment, and return the JSON in its last line of output."""
    return json.loads(installed.run(folder, python, "-c", code, **variables).splitlines()[-1])


# --- Dependencies ---------------------------------------------------------------------------------


def test_it_installs_beside_openai_2(everything: Path) -> None:
    (packages,) = everything.parents[1].glob("lib/*/site-packages")
    found = {one.name: one.version for one in distributions(path=[str(packages)])}
    assert found["openai"].partition(".")[0] == "2"
    assert found["llama-index-core"].startswith("0.14.")


def test_it_needs_no_package_of_a_model(everything: Path, tmp_path: Path) -> None:
    """Check what works without any model package, Chroma or embedding."""
    code = """
        import json, sys

        class Missing:
            names = ("llama_index.llms", "llama_index.embeddings", "chromadb", "onnxruntime")

            def find_spec(self, name, path=None, target=None):
                if name.startswith(self.names):
                    raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        sys.meta_path.insert(0, Missing())
        from llama_index.core import Document, Settings, SummaryIndex
        from llama_index.core.llms import MockLLM
        import llama_index.evaluation.demur as ours
        from llama_index.evaluation.demur import (
            GuardedChatEngine, GuardedQueryEngine, HallucinationEvaluator, RefCheckerEvaluator,
            ScoreEventHandler,
        )
        from llama_index.evaluation.demur.few_shot import FEWLExamples
        from demur import ExampleStore, MissingExtraError

        Settings.llm = MockLLM()
        index = SummaryIndex.from_documents([Document(text="The Louvre is in Paris.")])
        guarded = GuardedQueryEngine(index.as_query_engine(), RefCheckerEvaluator())
        outcome = guarded.query("Where is the Louvre?").metadata["demur"]["outcome"]
        try:
            ExampleStore()
        except MissingExtraError as error:
            missing = str(error)
        print(json.dumps({"names": ours.__all__, "outcome": outcome, "missing": missing,
                          "from": ours.__file__}))
    """
    found = run(everything, tmp_path, textwrap.dedent(code))
    assert {
        *("HallucinationEvaluator", "RefCheckerEvaluator"),
        *("GuardedQueryEngine", "GuardedChatEngine", "ScoreEventHandler"),
    } <= set(found["names"])
    # The model repeats its prompt and writes no claims, so the guard lets nothing through.
    assert found["outcome"] == "evaluator_failed"
    assert "demur[chroma]" in found["missing"]
    assert Path(found["from"]).is_relative_to(everything.parents[1])


# --- The examples of the page and of the README ---------------------------------------------------

TELL = """
import json
from pathlib import Path
from demur.observe.log import open_log, records
with open_log(Path("scores.sqlite")) as log:
    logged = list(records(log))
evaluated = results["refchecker"]
print(json.dumps({
    "passing": [one.passing for one in evaluated],
    "scores": [one.score for one in evaluated],
    "reasons": [one.invalid_reason for one in evaluated],
    "answer": str(response),
    "demur": response.metadata["demur"],
    "counts": {"recorded": handler.counts.recorded, "lost": handler.counts.lost},
    "logged": [[one.attempts[0].answer, one.attempts[0].evaluations[0].passed] for one in logged],
    "few_shot": str(few_shot_engine.query("Where is the Louvre?")),
}))
"""


@pytest.fixture
def embedding() -> None:
    """Skip the test, with the reason, if the weights of the page's embedding are missing."""
    from demur.local import MiniLM

    try:
        MiniLM()
    except LocalModelError as error:
        pytest.skip(f"NOT TESTED: the page's examples, whose embedding is not here: {error}")


@pytest.mark.usefixtures("embedding")
def test_the_pages_examples_run_as_typed(everything: Path, tmp_path: Path) -> None:
    judge = application("no answer")
    guarded = iter(["The Louvre opened in 1851.", "The Louvre, in Paris, opened in 1793."])

    def script(request: dict[str, Any], number: int) -> str:
        prompt = request["messages"][-1]["content"]
        if "<answer-" in prompt or "<claims-" in prompt:
            return judge(request, number)
        if "and since when" in prompt:
            return next(guarded)
        if "Since when is the Prado" in prompt:
            return "The Prado opened in 1819."
        if "Rijksmuseum is in Amsterdam." in prompt:
            return "As in the example: in Paris."
        return "In Paris since 1066."

    with openai_server(script) as server:
        here = {"OPENAI_API_BASE": server.url, "OPENAI_API_KEY": "key"}
        found = run(everything, tmp_path, "\n".join([*blocks(PAGE), TELL]), **here)
    assert found["passing"] == [False, True]
    assert found["scores"] == [0, 1]
    assert found["reasons"] == [None, None]
    assert found["answer"] == "The Louvre, in Paris, opened in 1793."
    assert (found["demur"]["outcome"], found["demur"]["attempts"]) == ("recovered", 2)
    evidence, *_ = found["demur"]["evidence"]
    assert evidence["text"] == "The Louvre, in Paris, opened as a museum in 1793."
    assert (evidence["start"], evidence["end"]) == (0, len(evidence["text"]))
    assert found["counts"] == {"recorded": 1, "lost": 0}
    assert found["logged"] == [["The Prado opened in 1819.", True]]
    assert found["few_shot"] == "As in the example: in Paris."


def test_the_readmes_example_runs_as_typed(everything: Path, tmp_path: Path) -> None:
    (example,) = blocks(README)
    tell = 'import json\nprint(json.dumps([str(response), response.metadata["demur"]["outcome"]]))'
    script = application("The Louvre opened in 1851.", "The Louvre opened as a museum in 1793.")
    with openai_server(script) as server:
        here = {"OPENAI_API_BASE": server.url, "OPENAI_API_KEY": "key"}
        found = run(everything, tmp_path, f"{example}\n{tell}", **here)
    assert found == ["The Louvre opened as a museum in 1793.", "recovered"]
