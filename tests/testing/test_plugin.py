"""Test the pytest plugin as its users have it: in runs of pytest of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest

from demur.observe import Record
from demur.observe.log import open_log, records
from support.openai_server import openai_server

pytestmark = pytest.mark.slow

HEAD = """
import os
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_openai import ChatOpenAI
from demur.testing import assert_grounded

GUIDE = "The Louvre, in Paris, opened as a museum in 1793."
PROMPT = ChatPromptTemplate.from_template("From {context} answer: {question}")
MODEL = ChatOpenAI(model="test", base_url=os.environ.get("URL"), api_key="key", max_retries=0)
CHAIN = RunnablePassthrough.assign(answer=PROMPT | MODEL | StrOutputParser())

def asked(question):
    return {"context": GUIDE, "question": question}
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that runs pytest in a folder of its own, without a network."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n")

    def ran(
        *options: str, tests: str = "", url: str = "http://127.0.0.1:9", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        if tests:
            (tmp_path / "test_answers.py").write_text(HEAD + tests)
        command = [sys.executable, "-m", "pytest", "-p", "no:randomly", "-p", "no:cacheprovider"]
        return subprocess.run(
            [*command, *options],
            cwd=tmp_path,
            env={**os.environ, "URL": url, "PYTEST_ADDOPTS": "", **environment},
            capture_output=True,
            text=True,
        )

    return ran


def summary(ran: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the lines of demur's part at the end of a run."""
    _, _, rest = ran.stdout.partition(" demur ===")
    return rest.partition("\n=====")[0].splitlines()[1:]


def judged(summed: list[str]) -> set[str]:
    """Return the counts of the first line."""
    return {*re.split(", |: ", summed[0])}


MIXED = """
def test_right():
    assert_grounded("The Louvre opened in 1793.", GUIDE, "When did it open?")

def test_wrong():
    assert_grounded("The Louvre is in Paris. It opened in 1851.", GUIDE, "When did it open?")

def test_undecided():
    assert_grounded("The Louvre opened in 1793.", [])
"""


def test_a_run_fails_by_its_answers_and_sums_them_up(run: Run, tmp_path: Path) -> None:
    ran = run(
        "--demur-report=page.html", "--demur-log=log.sqlite", "--junitxml=junit.xml", tests=MIXED
    )
    assert ran.returncode == 1, ran.stdout
    assert ">   It opened in 1851." in ran.stdout
    assert "1 passed" in ran.stdout
    assert "2 failed" in ran.stdout
    said = summary(ran)
    assert judged(said) == {"3 answers judged", "1 failed", "1 undetermined", "1 passed"}
    assert re.fullmatch(r"RefChecker: mean score 0\.\d\d", said[1])
    assert said[3].startswith("judging: 0 calls, 0 + 0 tokens")
    assert said[4] == "undetermined: test_answers.py::test_undecided: no contexts"
    assert said[5] == "report: 3 answers written to page.html"
    assert "It opened in 1851." not in (tmp_path / "page.html").read_text()[:200]
    with open_log(tmp_path / "log.sqlite") as log:
        found = [one for one in records(log) if isinstance(one, Record)]
    assert {one.name: one.verdict for one in found} == {
        "test_answers.py::test_right": "passed",
        "test_answers.py::test_wrong": "failed",
        "test_answers.py::test_undecided": "undetermined",
    }
    told = {
        case.attrib["name"]: {
            one.attrib["name"]: one.attrib["value"] for one in case.iter("property")
        }
        for case in ElementTree.parse(tmp_path / "junit.xml").iter("testcase")
    }
    assert told["test_wrong"]["demur RefChecker finding"] == "failed"
    assert 0 < float(told["test_wrong"]["demur RefChecker score"]) < 0.5
    assert told["test_undecided"] == {"demur RefChecker finding": "undetermined"}


def test_processes_of_xdist_share_one_summary_and_one_report(run: Run, tmp_path: Path) -> None:
    ran = run("-n", "2", "--demur-report=page.html", tests=MIXED)
    assert ran.returncode == 1, ran.stdout
    assert "3 answers judged" in judged(summary(ran))
    assert (tmp_path / "page.html").is_file()


def test_the_same_test_has_the_same_id_in_each_run(run: Run, tmp_path: Path) -> None:
    elsewhere = "def test_right(tmp_path, monkeypatch):\n    monkeypatch.chdir(tmp_path)"
    run("--demur-log=log.sqlite", tests=MIXED.replace("def test_right():", elsewhere))
    run("--demur-log=log.sqlite")
    with open_log(tmp_path / "log.sqlite") as log:
        assert len(log) == 3


def test_a_run_sums_up_its_own_answers_and_not_those_in_its_log(run: Run, tmp_path: Path) -> None:
    run("--demur-log=log.jsonl", tests=MIXED)
    ran = run("--demur-log=log.jsonl", "--demur-report=page.html", "-k", "right")
    assert ran.returncode == 0, ran.stdout
    assert judged(summary(ran)) == {"1 answer judged", "1 passed"}
    assert summary(ran)[-1] == "report: 1 answer written to page.html"
    with open_log(tmp_path / "log.jsonl") as log:
        assert len(log) == 3


def test_a_run_without_answers_says_that_it_writes_no_report(run: Run, tmp_path: Path) -> None:
    ran = run("--demur-report=page.html", "--collect-only", tests=MIXED)
    assert ran.returncode == 0, ran.stdout
    assert summary(ran) == ["page.html is not written: no answer was checked"]
    assert not (tmp_path / "page.html").exists()


def test_an_evaluator_of_any_name_leaves_the_xml_well_formed(run: Run, tmp_path: Path) -> None:
    tests = """
from demur import Evaluation

def odd(sample):
    return Evaluation(name="<odd>\\x00\\x1b\\ud800", passed=True, score=1)

def test_odd():
    assert_grounded("The Louvre opened in 1793.", GUIDE, evaluator=odd)
"""
    ran = run("--junitxml=junit.xml", "-n", "1", tests=tests)
    assert ran.returncode == 0, ran.stdout
    (found, _) = ElementTree.parse(tmp_path / "junit.xml").iter("property")
    assert found.attrib == {"name": "demur <odd>␀␛\ufffd finding", "value": "passed"}


def test_a_run_needs_no_package_of_the_command_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "import sys\nsys.modules |= dict.fromkeys(['rich', 'typer'])\n"
    )
    ran = run(tests=MIXED)
    assert ran.returncode == pytest.ExitCode.TESTS_FAILED, ran.stderr
    assert "3 answers judged" in judged(summary(ran))


GUARDED = """
import asyncio

def test_each_answer(demur_guarded):
    chain = demur_guarded(CHAIN)
    assert chain.invoke(asked("When did it open?"))["answer"] == "It opened in 1793."
    assert asyncio.run(chain.ainvoke(asked("When did it open?")))["answer"]
    assert [one["answer"] for one in chain.batch([asked("When did it open?")] * 2)]
    chain.invoke(asked("Who built it?"))
"""


def replies(request: dict[str, object], number: int) -> str:
    return "Robots built it." if "Who" in str(request["messages"]) else "It opened in 1793."


def test_every_answer_of_a_guarded_chain_is_checked(run: Run) -> None:
    with openai_server(replies) as server:
        ran = run(tests=GUARDED, url=server.url)
    assert ran.returncode == 1
    assert "E       AssertionError: not grounded: Robots built it." in ran.stdout
    # The failure stands at the call in the test, and shows no frame of demur or LangChain.
    assert "site-packages" not in ran.stdout
    assert "checking.py" not in ran.stdout
    assert judged(summary(ran)) == {"5 answers judged", "1 failed", "4 passed"}


def test_a_recording_replaces_the_model_and_a_new_request_fails(run: Run, tmp_path: Path) -> None:
    passing = GUARDED.replace('    chain.invoke(asked("Who built it?"))\n', "")
    with openai_server(replies) as server:
        first = run("--demur-record", tests=passing, url=server.url)
    assert first.returncode == 0, first.stdout
    assert "demur: replies are recorded in" in first.stdout
    again = run()
    assert again.returncode == 0, again.stdout
    assert "demur: replies are replayed from" in again.stdout
    assert summary(again)[2].startswith("answering: 0 calls (4 more answered from a cache)")
    in_parallel = run("-n", "2")
    assert in_parallel.returncode == 0, in_parallel.stdout
    changed = run(tests=passing.replace("When did it open?", "When was it opened?"))
    assert changed.returncode == 1
    assert "holds no reply" in changed.stdout
    assert "answer: When did it open?" in changed.stdout
    assert "answer: When was it opened?" in changed.stdout
    assert "Record it, with pytest --demur-record" in changed.stdout


def test_a_judge_that_asks_a_model_replays_too(run: Run) -> None:
    tests = """
from demur import RefChecker

def test_judged_by_a_model():
    judge = RefChecker(MODEL, claims="sentences")
    assert_grounded("The Louvre opened in 1793.", GUIDE, evaluator=judge)
"""
    with openai_server(["1. Entailment"]) as server:
        assert run("--demur-record", tests=tests, url=server.url).returncode == 0
    again = run()
    assert again.returncode == 0, again.stdout
    changed = run(tests=tests.replace("in 1793.", "in 1794."))
    assert changed.returncode == 1
    assert "AssertionError: undetermined, which is no pass" in changed.stdout
    assert "holds no reply" in changed.stdout


def test_tests_without_demur_keep_their_models(run: Run, tmp_path: Path) -> None:
    tests = """
from langchain_core.language_models import FakeListChatModel

def test_theirs():
    assert FakeListChatModel(responses=["hello"]).invoke("anything").content == "hello"

def test_ours(demur_replies):
    assert MODEL.invoke("When did it open?").content == "It opened in 1793."
"""
    with openai_server(replies) as server:
        assert run("--demur-record", tests=tests, url=server.url).returncode == 0
    assert run().returncode == 0
    assert len((tmp_path / "demur-replies.jsonl").read_text().splitlines()) == 1


def test_a_recording_under_another_name_says_how_it_is_replayed(run: Run, tmp_path: Path) -> None:
    tests = """
def test_ours(demur_replies):
    assert MODEL.invoke("When did it open?").content == "It opened in 1793."
"""
    with openai_server(replies) as server:
        ran = run("--demur-record=other.jsonl", tests=tests, url=server.url)
    assert f"set demur_replies in pytest's settings: {tmp_path / 'other.jsonl'}" in ran.stdout
    assert run("-o", "demur_replies=other.jsonl").returncode == 0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--demur-record", "-n", "2"], "only one process can record"),
        (["--demur-record", "test_answers.py"], "expected a file that ends in .jsonl"),
        (["--demur-record=nowhere/a.jsonl"], "there is no folder for nowhere/a.jsonl"),
        (["--demur-report=nowhere/page.html"], "there is no folder for nowhere/page.html"),
        (["--demur-log=nowhere/log.sqlite"], "there is no folder for nowhere/log.sqlite"),
    ],
)
def test_options_that_cannot_work_end_the_run_at_once(
    run: Run, options: list[str], told: str
) -> None:
    ran = run(*options, tests=MIXED)
    assert ran.returncode == pytest.ExitCode.USAGE_ERROR
    assert told in ran.stderr


def test_a_report_that_cannot_be_written_fails_the_run(run: Run, tmp_path: Path) -> None:
    (tmp_path / "page.html").mkdir()
    ran = run("--demur-report=page.html", "-k", "right", tests=MIXED)
    assert ran.returncode == pytest.ExitCode.INTERNAL_ERROR
    assert any(line.startswith("ERROR: no report was written") for line in summary(ran))


def test_a_run_that_does_not_use_the_plugin_loads_nothing_for_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "test_plain.py").write_text(
        "import sys\n"
        "def test_plain():\n"
        "    assert not {'langchain_core', 'pydantic', 'numpy', 'rich'} & {*sys.modules}\n"
    )
    ran = run("-p", "demur.testing.plugin", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert ran.returncode == 0, ran.stdout
    assert " demur ===" not in ran.stdout
