"""Test that the local model judges by demur's adapter, and generates as if there were none."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

pytest.importorskip("xllamacpp", reason="the local runtime is not installed: demur[local]")
pytest.importorskip("demur_judge")

from demur import ClaimLabel, Evaluation, RefChecker
from demur.evaluators.refchecker.prompts import ADAPTED
from demur.local import JUDGE_FILES, ChatLocal, find_judge

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


# -- What it does not change -----------------------------------------------------------------------


def generated(model: ChatLocal, messages: list[BaseMessage], **options: Any) -> tuple[str, Any]:
    """Return what the model writes, and the log-probabilities of its first token."""
    reply = model.invoke(messages, logprobs=True, top_logprobs=5, max_tokens=6, **options)
    first = reply.response_metadata["logprobs"]["content"][0]["top_logprobs"]
    return reply.text, [(one["token"], one["logprob"]) for one in first]


@pytest.mark.smoke
def test_what_the_model_writes_is_the_same_as_without_it(
    model: ChatLocal, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = ADAPTED.messages(reference=LOUVRE, claim="The Louvre opened in 1851.")
    other = [SystemMessage("You are brief."), *judged[1:]]
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "demur_judge", None)
        without = ChatLocal()
    assert without.judging is None
    assert model.judging is not None
    # What a server has in its cache may change the last digits, so both begin with the same there.
    for begun in (without, model):
        generated(begun, [HumanMessage("Say hello.")], extra_body={"cache_prompt": False})
    expected = [generated(without, messages) for messages in (judged, judged, other)]

    judgement = generated(model, judged, **model.judging)
    assert judgement != expected[0]
    assert generated(model, judged) == expected[0]  # right after a judgement that begins alike
    again = generated(model, judged, **model.judging)
    assert generated(model, judged) == expected[1]
    with ThreadPoolExecutor(2) as pool:
        judging = [pool.submit(generated, model, judged, **model.judging) for _ in range(2)]
        assert generated(model, other) == expected[2]
        assert [future.result() for future in judging] == [again, again]


def test_a_second_claim_about_the_same_references_reads_only_the_claim(model: ChatLocal) -> None:
    assert model.judging is not None

    def cached(claim: str) -> float:
        """Return the share of the prompt that was not read again."""
        messages = ADAPTED.messages(reference=f"{LOUVRE} {DEDENT} {COPY}", claim=claim)
        reply = model.invoke(messages, max_tokens=1, **model.judging)
        usage = reply.response_metadata["token_usage"]
        return float(usage["prompt_tokens_details"]["cached_tokens"] / usage["prompt_tokens"])

    cached("The Louvre is in Paris.")
    assert cached("The Louvre opened in 1793.") > 0.7
    model.invoke("Say hello.", max_tokens=2)
    assert cached("The Louvre is in Rome.") > 0.7
