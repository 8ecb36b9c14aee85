"""Test the server of the judge, in a process of its own: who may ask it, and what it answers."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from demur import CallPolicy, RefChecker
from demur.cli import run
from demur.local import bound
from support.commands import flat
from support.processes import posix
from support.waiting import until

pytestmark = pytest.mark.slow

_SERVE = """
import math, sys, time
sys.path.insert(0, sys.argv[1])
from langchain_core.messages import convert_to_messages
from demur import ClaimLabel
from demur.local import Judged, bound, serve
from support.judging import KNOWN, TOKENS, claim_of

def judge(messages):
    claim = claim_of({"messages": [{"role": role, "content": text} for role, text in messages]})
    print("judged", claim, file=sys.stderr, flush=True)
    if "slow" in claim:
        time.sleep(float(sys.argv[3]))
    if "long" in claim:
        raise ValueError("the prompt has 40000 tokens, and the judge reads at most 32768")
    wrong = ClaimLabel.NEUTRAL if "wrong" in claim else ClaimLabel.ENTAILMENT
    likely = TOKENS[KNOWN.get(claim, wrong)]
    logprobs = {one: math.log(0.98 if one == likely else 0.01) for one in TOKENS.values()}
    return Judged(logprobs, 99, 40)

key = sys.argv[2] or None
with bound("127.0.0.1", 0, key) as listening:
    print(listening.getsockname()[1], flush=True)
    serve(judge, listening, key)
"""
CONTEXTS = ["The gate opens at nine, slow or not."]


@dataclass(frozen=True)
class Served:
    url: str
    process: subprocess.Popen[str]
    log: Path

    def judged(self) -> list[str]:
        """Return the claims that were judged."""
        lines = self.log.read_text().splitlines()
        return [line.removeprefix("judged ") for line in lines if line.startswith("judged ")]

    def ask(self, body: Any = None, claim: str = "It opens.", **headers: str) -> httpx.Response:
        """Make one request as it is."""
        content = f"Claim:\n<claim-0123456789>\n{claim}\n</claim-0123456789>"
        asked = {"model": "demur-judge", "messages": [{"role": "user", "content": content}]}
        given = json.dumps(asked if body is None else body) if not isinstance(body, bytes) else body
        return httpx.post(
            f"{self.url}/v1/chat/completions", content=given, headers=headers, timeout=60
        )


@contextmanager
def serving(folder: Path, key: str = "", slow: float = 0.5) -> Iterator[Served]:
    """Serve a judge that supports everything but what is wrong."""
    log = folder / "log"
    command = [sys.executable, "-c", _SERVE, str(Path(__file__).parents[1]), key, str(slow)]
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    try:
        yield Served(f"http://127.0.0.1:{int(process.stdout.readline())}", process, log)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served")) as one:
        yield one


# -- What it answers -------------------------------------------------------------------------------


def test_a_checker_judges_by_it(served: Served) -> None:
    checker = RefChecker(f"judge:{served.url}")
    found = checker.invoke({"answer": "It opens at nine. That is wrong.", "contexts": CONTEXTS})
    assert [claim.support for claim in found.claims] == [pytest.approx(0.98), pytest.approx(0.01)]
    assert (found.usage.calls, found.usage.input_tokens) == (2, 2 * 99)
    assert httpx.get(f"{served.url}/health").json() == {"status": "ok"}


def test_many_ask_at_once(served: Served) -> None:
    checker = RefChecker(f"judge:{served.url}")
    samples: list[Any] = [
        {"answer": f"Gate {at} is {'wrong' if at % 2 else 'open'} today.", "contexts": CONTEXTS}
        for at in range(40)
    ]
    found = checker.batch(samples, {"max_concurrency": 40})
    assert [one.passed for one in found] == [at % 2 == 0 for at in range(40)]


def test_a_prompt_that_is_too_long_is_undetermined_with_the_reason(served: Served) -> None:
    found = RefChecker(f"judge:{served.url}").invoke(
        {"answer": "It was a long opening.", "contexts": CONTEXTS}
    )
    assert found.passed is None
    assert "the prompt has 40000 tokens" in str(found.error)


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"{", 400, "the request cannot be read: body: Invalid JSON"),
        ({"messages": []}, 400, "messages: List should have at least 1 item"),
        ({"messages": [{"role": "user", "content": 3}]}, 400, "messages.0.content"),
        ({"messages": [{"role": "user", "content": "x"}], "stream": True}, 400, "stream"),
        ({"model": "qwen", "messages": [{"role": "user", "content": "x"}]}, 404, "no model 'qwen'"),
        (b" " * 1_000_001, 413, "more than 1,000,000 bytes"),
    ],
    ids=["no JSON", "no message", "no text", "a stream", "another model", "too large"],
)
def test_what_it_cannot_answer_is_refused_with_the_reason(
    served: Served, body: Any, status: int, message: str
) -> None:
    before = served.judged()
    reply = served.ask(body)
    assert reply.status_code == status
    assert message in reply.json()["error"]["message"]
    assert served.judged() == before


def test_what_nobody_waits_for_any_more_is_not_judged(tmp_path: Path) -> None:
    with serving(tmp_path, slow=2) as served:
        first = threading.Thread(target=served.ask, kwargs={"claim": "A slow one."})
        first.start()
        until(lambda: served.judged() == ["A slow one."])
        port = int(served.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as gone:
            content = "Claim:\n<claim-0123456789>\nA gone one.\n</claim-0123456789>"
            body = json.dumps({"messages": [{"role": "user", "content": content}]})
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}"
            gone.sendall(f"{head}\r\n\r\n{body}".encode())
        first.join()
        assert served.ask(claim="A last one.").status_code == 200
        assert served.judged() == ["A slow one.", "A last one."]


# -- Who may ask it --------------------------------------------------------------------------------


def test_without_the_key_it_answers_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample: Any = {"answer": "It opens at nine.", "contexts": CONTEXTS}
    with serving(tmp_path, key="of ours") as served:
        for headers in ({}, {"Authorization": "Bearer of yours"}, {"Authorization": "of"}):
            assert served.ask(**headers).status_code == 401
        found = RefChecker(f"judge:{served.url}").invoke(sample)
        assert found.passed is None
        assert "401" in str(found.error)
        assert "DEMUR_JUDGE_KEY" in str(found.error)
        assert served.judged() == []
        monkeypatch.setenv("DEMUR_JUDGE_KEY", "of ours")
        assert RefChecker(f"judge:{served.url}").invoke(sample).passed is True


def test_web_pages_may_not_ask_it(served: Served) -> None:
    reply = served.ask(claim="A page asks.", Origin="http://127.0.0.1")
    assert reply.status_code == 403
    assert "A page asks." not in served.judged()


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_where_others_reach_it_it_needs_a_key(host: str, capsys: Any) -> None:
    with pytest.raises(ValueError, match="can be reached from other machines, and there is no key"):
        bound(host, 0, None)
    assert run(["judge", "serve", "--host", host, "--port", "0"]) == 64
    assert "set DEMUR_JUDGE_KEY" in flat(capsys.readouterr().err)


def test_with_a_key_others_may_reach_it() -> None:
    with bound("0.0.0.0", 0, "key") as listening:
        assert listening.getsockname()[1] > 0


def test_an_address_that_is_taken_is_refused(served: Served, capsys: Any) -> None:
    port = served.url.rpartition(":")[2]
    assert run(["judge", "serve", "--port", port]) == 64
    assert f"cannot listen at 127.0.0.1, port {port}" in flat(capsys.readouterr().err)


# -- When it ends ----------------------------------------------------------------------------------


@posix
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
def test_one_that_ends_in_the_middle_leaves_what_it_has_not_judged_undetermined(
    tmp_path: Path, sent: signal.Signals
) -> None:
    with serving(tmp_path, slow=60 if sent is signal.SIGKILL else 2) as served:
        checker = RefChecker(
            f"judge:{served.url}", call_policy=CallPolicy(attempts=2, first_delay=0.01)
        )
        answers = [
            "It opens at nine.",
            "A slow gate opens.",
            "Gate two opens.",
            "Gate three opens.",
        ]
        assert checker.invoke({"answer": answers[0], "contexts": CONTEXTS}).passed is True

        def end() -> None:
            until(lambda: "A slow gate opens." in served.judged())
            served.process.send_signal(sent)

        ending = threading.Thread(target=end)
        ending.start()
        found = checker.invoke(
            {"answer": "A slow gate opens. Gate two opens. Gate three opens.", "contexts": CONTEXTS}
        )
        ending.join()
        after = checker.invoke({"answer": "Gate four opens.", "contexts": CONTEXTS})
    if sent is signal.SIGKILL:
        assert (found.passed, found.score) == (None, None)
        assert "connection" in str(found.error).lower()
    else:  # it answers what it has begun to judge
        assert found.passed is not False
    assert after.passed is None
    assert "Nothing answers at 127.0.0.1" in str(after.error)
