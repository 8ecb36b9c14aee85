"""Test that the local model judges by demur's adapter, and generates as if there were none."""

from __future__ import annotations

import asyncio
import gzip
import importlib
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    SystemMessage,
    convert_to_openai_messages,
)

pytest.importorskip("xllamacpp", reason="the local runtime is not installed: demur[local]")
pytest.importorskip("demur_judge")

from demur import ClaimLabel, Evaluation, RefChecker
from demur.local import (
    ADAPTED,
    JUDGE_FILES,
    QWEN,
    ChatLocal,
    adapted_judge,
    find_judge,
    model_dir,
    prepare,
)
from demur.runtime.prompting import label_shares
from demur.schema import NLI_LABELS

pytestmark = pytest.mark.real

E, N, C = ClaimLabel.ENTAILMENT, ClaimLabel.NEUTRAL, ClaimLabel.CONTRADICTION
LOUVRE = "The Louvre, in Paris, opened as a museum in 1793."
DEDENT = (
    "textwrap.dedent(text) removes any common leading whitespace from every line in text. This can "
    "be used to make triple-quoted strings line up with the left edge of the display."
)
COPY = (
    "copy.copy(obj) returns a shallow copy of obj. copy.deepcopy(obj) returns a deep copy of obj."
)


def check(model: Any, answer: str, *references: str) -> Evaluation:
    return RefChecker(model).invoke({"answer": answer, "contexts": [*references]})


# -- What it judges --------------------------------------------------------------------------------


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("answer", "labels"),
    [
        (
            "textwrap.dedent removes the common leading whitespace from every line. "
            "textwrap.dedent removes all leading whitespace from every line.",
            [E, None],
        ),
        ("copy.copy makes a shallow copy. copy.copy makes a deep copy.", [E, C]),
        ("The Louvre is in Paris. It opened as a museum in 1851.", [E, C]),
    ],
)
def test_a_wrong_sentence_is_told_from_a_right_one(
    model: ChatLocal, answer: str, labels: list[ClaimLabel | None]
) -> None:
    found = check(model, answer, DEDENT, COPY, LOUVRE)
    for claim, label in zip(found.claims, labels, strict=True):
        assert claim.label is label or (label is None and claim.label in (N, C)), claim
    assert found.passed is False
    assert found.details["checker"] == "adapter"
    assert found.usage.calls == len(labels)


def test_what_it_depends_on_has_the_adapter_in_it(model: ChatLocal) -> None:
    found = RefChecker(model).fingerprints["checker"]
    assert any(find_judge(file).sha256 in found for file in JUDGE_FILES)
    assert found.endswith("the least support")


def told(message: AIMessage) -> dict[str, float]:
    """Return the log-probabilities of a reply's first token."""
    (first,) = message.response_metadata["logprobs"]["content"]
    return {one["token"]: one["logprob"] for one in first["top_logprobs"]}


def test_sync_async_and_streams_give_one_judgement(model: ChatLocal) -> None:
    async def gather() -> tuple[AIMessage, list[AIMessageChunk]]:
        chunks = [chunk async for chunk in model.astream(messages, **judging)]
        return await model.ainvoke(messages, **judging), chunks

    assert model.judging is not None
    messages, judging = ADAPTED.messages(reference=LOUVRE, claim="It is in Paris."), model.judging
    one = model.invoke(messages, **judging)
    other, chunks = asyncio.run(gather())
    for message in (other, *chunks, *model.stream(messages, **judging)):
        assert told(message) == told(one)
        assert message.text == one.text
        assert message.usage_metadata is not None
        assert one.usage_metadata is not None
        assert message.usage_metadata["input_tokens"] == one.usage_metadata["input_tokens"]


def test_it_says_what_llama_cpp_says_with_the_same_adapter(model: ChatLocal) -> None:
    runtime = importlib.import_module("xllamacpp")
    params, adapter = runtime.CommonParams(), runtime.CommonAdapterLoraInfo()
    (file,) = (file for file in JUDGE_FILES if file.endswith(".gguf"))
    params.model.path = str(model_dir() / QWEN.file)
    adapter.path, adapter.scale = str(find_judge(file).path), 1.0
    params.lora_adapters = [adapter]
    params.n_ctx, params.n_parallel, params.warmup, params.verbosity = 1024, 1, False, -1
    params.hostnames, params.port = ["127.0.0.1"], 0
    server = runtime.Server(params)
    everyday = find_judge(file).path.with_name("everyday.jsonl.gz")
    lines = gzip.decompress(everyday.read_bytes()).splitlines()
    rows = [json.loads(line) for line in lines[::200]]
    apart = []
    for row in rows:
        messages = ADAPTED.messages(reference=row["passages"], claim=row["claim"])
        asked = {"messages": convert_to_openai_messages(messages), "max_tokens": 1}
        reply = server.handle_chat_completions({**asked, "logprobs": True, "top_logprobs": 1000})
        likely = reply["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        theirs = label_shares({one["token"]: one["logprob"] for one in likely[:1000]})
        assert model.judging is not None
        ours = label_shares(told(model.invoke(messages, **model.judging)))
        apart += [abs(ours[label] - theirs[label]) for label in NLI_LABELS]
    assert len(apart) == 3 * 4
    assert fmean(apart) < 0.05


# -- What it shares --------------------------------------------------------------------------------

_MEMORY = """
from demur import RefChecker
sample = {"answer": "The Louvre is in Paris.", "contexts": ["The Louvre is a museum."]}
print(RefChecker("local").invoke(sample).error)
print([line.split()[1] for line in open("/proc/self/status") if line.startswith("RssAnon")][0])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux alone tells")
def test_processes_share_the_memory_of_its_weights(model: ChatLocal) -> None:
    check(model, "The Louvre is in Paris.", LOUVRE)  # makes the files, if they are not there
    ran = subprocess.run(
        [sys.executable, "-c", _MEMORY], check=True, stdout=subprocess.PIPE, text=True
    )
    error, kilobytes = ran.stdout.split()
    assert error == "None"
    assert int(kilobytes) < 800_000  # the weights alone have 1.3 GB


def test_files_that_are_not_as_they_were_made_are_refused(
    model: ChatLocal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, weights = prepare(), model_dir() / QWEN.file
    folder = tmp_path / made.name
    folder.mkdir()
    for file in made.iterdir():
        (folder / file.name).symlink_to(file)
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.json").write_text("{}")
    (tmp_path / weights.name).symlink_to(weights)
    monkeypatch.setenv("DEMUR_MODELS", str(tmp_path))
    adapted_judge.cache_clear()
    found = check(ChatLocal(), "The Louvre is in Paris.", LOUVRE)
    adapted_judge.cache_clear()
    assert found.passed is None
    assert "tokenizer.json: it is not as it was made" in str(found.error)


# -- What it does not change -----------------------------------------------------------------------


def generated(model: ChatLocal, messages: list[BaseMessage]) -> tuple[str, Any]:
    """Return what the model writes, and the log-probabilities of its first token."""
    reply = model.invoke(messages, logprobs=True, top_logprobs=5, max_tokens=6)
    first = reply.response_metadata["logprobs"]["content"][0]["top_logprobs"]
    return reply.text, [(one["token"], one["logprob"]) for one in first]


@pytest.mark.smoke
def test_what_the_model_writes_is_the_same_as_without_it(model: ChatLocal) -> None:
    assert model.judging is not None
    judged = ADAPTED.messages(reference=LOUVRE, claim="The Louvre opened in 1851.")
    other = [SystemMessage("You are brief."), *judged[1:]]
    # What a server has in its cache may change the last digits.
    expected = [generated(model, messages) for messages in (other, judged, other, judged)][2:]
    with ThreadPoolExecutor(2) as pool:
        judging = [pool.submit(model.invoke, judged, **model.judging) for _ in range(2)]
        assert [generated(model, messages) for messages in (other, judged)] == expected
        one, again = (told(future.result()) for future in judging)
    assert one == again
    assert max(one, key=one.__getitem__) == "Contr"


def test_a_second_claim_about_the_same_references_reads_only_the_claim(model: ChatLocal) -> None:
    assert model.judging is not None

    def cached(claim: str) -> float:
        """Return the share of the prompt that was not read again."""
        messages = ADAPTED.messages(reference=f"{LOUVRE} {DEDENT} {COPY}", claim=claim)
        usage = model.invoke(messages, **model.judging).usage_metadata
        assert usage is not None
        return usage["input_token_details"]["cache_read"] / usage["input_tokens"]

    cached("The Louvre is in Paris.")
    assert cached("The Louvre opened in 1793.") > 0.7
    model.invoke("Say hello.", max_tokens=2)
    assert cached("The Louvre is in Rome.") > 0.7
