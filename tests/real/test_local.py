"""Test that the local model with its own weights answers, and that its logprobs agree."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("xllamacpp", reason="the local runtime is not installed: demur[local]")

from demur.errors import LocalModelError
from demur.local import QWEN, ChatLocal

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def model(request: pytest.FixtureRequest) -> ChatLocal:
    try:
        found = ChatLocal(max_tokens=32)
    except LocalModelError as error:
        pytest.skip(f"the 1.5B model is not here: {error}")
    if found.fingerprint != QWEN.sha256:
        pytest.skip(f"DEMUR_GGUF names another model: {found.model_name}")
    return found


@pytest.mark.smoke
def test_it_answers_an_easy_question(model: ChatLocal) -> None:
    reply = model.invoke("What is the capital of France? Answer in one short sentence.")
    assert "Paris" in reply.text


@pytest.mark.smoke
def test_logprobs_prefer_the_true_answer(model: ChatLocal) -> None:
    def yes(question: str) -> float:
        reply = model.invoke(
            f"{question} Answer with one word: Yes or No.",
            logprobs=True,
            top_logprobs=10,
            max_tokens=1,
        )
        top = reply.response_metadata["logprobs"]["content"][0]["top_logprobs"]
        return sum(math.exp(t["logprob"]) for t in top if t["token"].strip().lower() == "yes")

    assert yes("Is Paris in France?") > yes("Is Paris in Japan?") + 0.2


def test_the_name_and_the_count_of_tokens(model: ChatLocal) -> None:
    assert model.model_name == "qwen2.5-coder-1.5b-instruct"
    assert model.get_num_tokens("Hello world") == 2
