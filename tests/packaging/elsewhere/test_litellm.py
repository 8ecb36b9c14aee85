"""Test the recipe for LiteLLM in a proxy with the configuration of the page."""

from __future__ import annotations

from typing import Any

import pytest

from agent_server import Reply

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(600)]

SECTION, NAME = "LiteLLM proxy", "litellm"
PACKAGES = ("litellm[proxy]>=1.108,<2",)
RIGHT, WRONG = "The Louvre is in Paris.", "The Louvre is in Rome."
NOTHING = "I don't know."
SUPPORTED = ("right", "tool", "right_stream", "right_anthropic", "sourceless")
CONTRADICTED = (
    *("wrong", "wrong_tool", "wrong_stream", "wrong_anthropic", "wrong_anthropic_stream"),
    *("sourceless_stream", "completion", "completion_stream"),
)
REPLIES: dict[str, list[Reply]] = {
    **{case: [RIGHT] for case in SUPPORTED},
    **{case: [WRONG] for case in CONTRADICTED},
    "nothing": [NOTHING],
}
DRIVER = """
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

# `anthropic` asks the same server by chat completions; for OpenAI, LiteLLM asks by responses.
config = Path("config.yaml")
other = {"model": "hosted_vllm/test", "api_key": "key", "api_base": os.environ["OPENAI_BASE_URL"]}
other = json.dumps({"model_name": "anthropic", "litellm_params": other})
config.write_text(config.read_text().replace("model_list:", f"model_list:\\n  - {other}"))

key = "sk-" + secrets.token_hex(32)
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{free.getsockname()[1]}"
command = [Path(sys.executable).with_name("litellm"), "--config", config, "--host", "127.0.0.1"]
with open("proxy.log", "wb") as log:
    proxy = subprocess.Popen(
        [*command, "--port", url.rpartition(":")[2]],
        env={**os.environ, "LITELLM_MASTER_KEY": key},
        stdout=log,
        stderr=log,
        start_new_session=True,
    )


def ask(path, **body):
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    request = urllib.request.Request(url + path, json.dumps(body).encode() or None, headers)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return [answer.status, answer.read().decode()]
    except urllib.error.HTTPError as error:
        return [error.code, error.read().decode()]


def chat(text, *messages, path="/v1/chat/completions", model="chat", **options):
    asked = [{"role": "user", "content": text}, *messages]
    return ask(path, model=model, messages=asked, **options)


SOURCE = "The Louvre, in Paris, opened as a museum in 1793."
GIVEN = f"<context>{SOURCE}</context> "
WHERE = ": where is the Louvre?"
call = {"id": "1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
FOUND = [
    {"role": "assistant", "content": "I look it up.", "tool_calls": [call]},
    {"role": "tool", "tool_call_id": "1", "content": SOURCE},
]
ANTHROPIC = {"path": "/v1/messages", "model": "anthropic", "max_tokens": 99}
try:
    while True:
        try:
            urllib.request.urlopen(f"{url}/health/liveliness", timeout=60)
            break
        except OSError:
            if proxy.poll() is not None:
                sys.exit(Path("proxy.log").read_text()[-2000:])
            time.sleep(0.1)
    text = "/v1/completions"
    found = {
        "right": chat(GIVEN + "right" + WHERE),
        "wrong": chat(GIVEN + "wrong" + WHERE),
        "tool": chat("tool" + WHERE, *FOUND),
        "wrong_tool": chat("wrong_tool" + WHERE, *FOUND),
        "sourceless": chat("sourceless" + WHERE),
        "nothing": chat("nothing" + WHERE),
        "right_stream": chat(GIVEN + "right_stream" + WHERE, stream=True),
        "wrong_stream": chat(GIVEN + "wrong_stream" + WHERE, stream=True),
        "sourceless_stream": chat("sourceless_stream" + WHERE, stream=True),
        "right_anthropic": chat(GIVEN + "right_anthropic" + WHERE, **ANTHROPIC),
        "wrong_anthropic": chat(GIVEN + "wrong_anthropic" + WHERE, **ANTHROPIC),
        "wrong_anthropic_stream": chat(
            GIVEN + "wrong_anthropic_stream" + WHERE, **ANTHROPIC, stream=True
        ),
        "completion": ask(text, model="chat", prompt=GIVEN + "completion" + WHERE),
        "completion_stream": ask(
            text, model="chat", prompt=GIVEN + "completion_stream" + WHERE, stream=True
        ),
    }
    print(json.dumps(found))
finally:
    os.killpg(proxy.pid, signal.SIGKILL)
    proxy.wait()
"""


@pytest.mark.parametrize("case", ["right", "tool", "nothing", "right_anthropic"])
def test_an_answer_that_the_sources_support_or_that_states_nothing_passes(
    told: dict[str, Any], case: str
) -> None:
    status, body = told[case]["said"]
    assert status == 200, body
    assert str(REPLIES[case][0]) in body


@pytest.mark.parametrize("case", ["wrong", "wrong_tool", "wrong_anthropic"])
def test_a_wrong_answer_is_replaced_by_the_reasons(told: dict[str, Any], case: str) -> None:
    status, body = told[case]["said"]
    assert status == 422
    assert "Contradicted by the sources: The Louvre is in Rome." in body
    assert "opened as a museum in 1793" in body
    assert len(told[case]["requests"]) == 1


@pytest.mark.parametrize("case", ["sourceless", "completion"])
def test_an_answer_without_sources_is_stopped(told: dict[str, Any], case: str) -> None:
    status, body = told[case]["said"]
    assert status == 422
    assert "RefChecker could not decide about it (no contexts)." in body
    assert str(REPLIES[case][0]) not in body


@pytest.mark.parametrize("case", ["wrong_stream", "wrong_anthropic_stream", "sourceless_stream"])
def test_a_stream_has_nothing_of_an_answer_that_does_not_pass(
    told: dict[str, Any], case: str
) -> None:
    _, body = told[case]["said"]
    assert told[case]["requests"][0]["stream"]
    assert '"content"' not in body
    assert '"delta"' not in body
    assert '"text"' not in body
    assert "not supported" in body


def test_a_right_answer_is_streamed(told: dict[str, Any]) -> None:
    status, body = told["right_stream"]["said"]
    assert status == 200
    assert body.count('"delta"') > len(RIGHT)
    assert "not supported" not in body


def test_a_stream_without_messages_is_refused_before_the_model_is_asked(
    told: dict[str, Any],
) -> None:
    status, body = told["completion_stream"]["said"]
    assert status == 422
    assert "a stream needs messages" in body
    assert told["completion_stream"]["requests"] == []
