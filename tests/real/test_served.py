"""Test the real judge at an address: served by demur and by llama.cpp, ended, and changed."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler

pytest.importorskip("xllamacpp", reason="the local runtime is not installed: demur[local]")
pytest.importorskip("demur_judge")
pytest.importorskip("starlette", reason="the server is not installed: demur[serve]")

from demur import CallPolicy, ClaimLabel, Evaluation, RefChecker
from demur.local import ChatLocal
from support.served import demur_judge_serve, llama_cpp

pytestmark = pytest.mark.real

E, N, C = ClaimLabel.ENTAILMENT, ClaimLabel.NEUTRAL, ClaimLabel.CONTRADICTION
CONTEXTS = [
    "The library is open from nine to six. On Mondays it is closed.",
    "Books are lent for four weeks. Who is under sixteen pays nothing for a card.",
]
ANSWER = (
    "The library opens at nine o'clock. The library is open on Mondays. Books are lent for four "
    "weeks. There is a café on the first floor."
)
LABELS = [E, C, E, N]


def asked(model: str | ChatLocal, answer: str = ANSWER) -> Evaluation:
    policy = CallPolicy(attempts=2, first_delay=0.01)
    return RefChecker(model, call_policy=policy).invoke({"answer": answer, "contexts": CONTEXTS})


class _Killing(BaseCallbackHandler):
    """Kill a process after so many judgements."""

    def __init__(self, process: subprocess.Popen[str], after: int) -> None:
        self.process, self.left = process, after

    def on_llm_end(self, *_: Any, **__: Any) -> None:
        self.left -= 1
        if self.left == 0:
            self.process.kill()


def test_served_by_demur_it_says_what_it_says_in_this_process(model: ChatLocal) -> None:
    with demur_judge_serve() as (url, _):
        found = asked(f"judge:{url}")
    here = asked(model)
    assert [claim.label for claim in found.claims] == LABELS
    for one, other in zip(found.claims, here.claims, strict=True):
        assert one.probabilities == pytest.approx(other.probabilities, rel=1e-12)
    assert found.usage.input_tokens == here.usage.input_tokens


def test_served_by_llama_cpp_it_says_nearly_the_same(model: ChatLocal) -> None:
    with llama_cpp() as name:
        found = asked(name)
    assert [claim.label for claim in found.claims] == LABELS
    for one, other in zip(found.claims, asked(model).claims, strict=True):
        assert one.support == pytest.approx(other.support, abs=0.15)


def test_killed_in_the_middle_and_come_back_without_its_adapter_it_passes_nothing(
    model: ChatLocal,
) -> None:
    passing = "The library opens at nine o'clock."
    policy = CallPolicy(attempts=2, first_delay=0.01)
    with demur_judge_serve() as (url, process):
        port = int(url.rpartition(":")[2])
        checker = RefChecker(f"judge:{url}", call_policy=policy)
        assert checker.invoke({"answer": passing, "contexts": CONTEXTS}).passed is True
        many = " ".join(f"The library opens at nine on day {at}." for at in range(20))
        killing: Any = {"callbacks": [_Killing(process, after=3)]}
        found = checker.invoke({"answer": many, "contexts": CONTEXTS}, killing)
    assert found.passed is not True
    without = [claim for claim in found.claims if claim.label is None]
    assert 0 < len(without) < len(found.claims)
    assert all("connection" in str(claim.error).lower() for claim in without)
    with llama_cpp(port, with_adapter=False):
        found = checker.invoke({"answer": "It opens at nine.", "contexts": CONTEXTS})
        assert found.passed is None
        assert "does not judge as demur's adapter" in str(found.error)
    with llama_cpp(port):
        found = checker.invoke({"answer": "The library opens at 9.", "contexts": CONTEXTS})
        assert found.passed is True, found.error
