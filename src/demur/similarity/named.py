"""List the public yes-or-no judges that demur knows by name: all that is specific to each.

Templates, answers and limits are those of the models' cards and of their authors' code, as they
stood on 2026-11-30: they are what the models were trained with, and not demur's own words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from demur.similarity.encoders import HHEM, HHEM_2_1
from demur.similarity.yes_no import YesNoJudge


@dataclass(frozen=True)
class NamedJudge:
    """Hold a judge, and what its publishers say of it."""

    judge: YesNoJudge
    size: str
    licence: str
    accuracy: float | None = None
    """The balanced accuracy on LLM-AggreFact in percent, the macro mean of 11 sets, as it was
    published; None if none was found."""
    measured_by: str = ""
    served_as: str = ""
    """The names by which servers know a judge at an endpoint."""


_MINICHECK = "{document}{eos}{claim}"
_PREDICT = f"predict: {_MINICHECK}"
_FACTCG = (
    '{document}\n\nChoose your answer: based on the paragraph above can we conclude that "{claim}"?'
    "\n\nOPTIONS:\n- Yes\n- No\nI think the answer is "
)
_HHEM = (
    "<pad> Determine if the hypothesis is true given the premise?\n\nPremise: {document}\n\n"
    "Hypothesis: {claim}"
)
_BESPOKE = (
    (
        "system",
        "Determine whether the provided claim is consistent with the corresponding document. "
        "Consistency in this context implies that all information presented in the claim is "
        "substantiated by the document. If not, it should be considered inconsistent. Please "
        "assess the claim's consistency with the document by responding with either "
        '"Yes" or "No".',
    ),
    ("user", "Document: {document}\nClaim: {claim}"),
)
_LYNX = """
Given the following QUESTION, DOCUMENT and ANSWER you must analyze the provided answer and \
determine whether it is faithful to the contents of the DOCUMENT. The ANSWER must not offer new \
information beyond the context provided in the DOCUMENT. The ANSWER also must not contradict \
information provided in the DOCUMENT. Output your final verdict by strictly following this format: \
"PASS" if the answer is faithful to the DOCUMENT and "FAIL" if the answer is not faithful to the \
DOCUMENT. Show your reasoning.

--
QUESTION (THIS DOES NOT COUNT AS BACKGROUND INFORMATION):
{question}

--
DOCUMENT:
{document}

--
ANSWER:
{claim}

--

Your output should be in JSON FORMAT with the keys "REASONING" and "SCORE":
{"REASONING": <your reasoning as bullet points>, "SCORE": <your final score>}
"""
_CONTEXT = (("context", "{document}"), ("assistant", "{claim}"))
_DOCUMENTS = {"documents": [{"doc_id": "0", "text": "{document}"}]}
_READS = {"window": 600, "most": 2048}
_LEADERBOARD = "LLM-AggreFact's leaderboard"


def _classifier(
    template: str, weights: str, supported: int = 1, unsupported: int = 0, **options: Any
) -> YesNoJudge:
    return YesNoJudge(template, supported, unsupported, weights, **{**_READS, **options})


def _served(template: Any, supported: str, unsupported: str, **options: Any) -> YesNoJudge:
    return YesNoJudge(template, supported, unsupported, window=3000, **options)


def _guardian(key: str) -> dict[str, object]:
    return {"chat_template_kwargs": {"guardian_config": {key: "groundedness"}, "think": False}}


NAMED: Mapping[str, NamedJudge] = {
    "minicheck-roberta": NamedJudge(
        _classifier(_MINICHECK, "lytang/MiniCheck-RoBERTa-Large", window=400, most=512),
        "0.4B",
        "MIT",
    ),
    "minicheck-deberta": NamedJudge(
        _classifier(_MINICHECK, "lytang/MiniCheck-DeBERTa-v3-Large", window=400),
        *("0.4B", "MIT", 73.1, "FactCG's authors"),
    ),
    "minicheck-flan-t5": NamedJudge(
        _classifier(_PREDICT, "lytang/MiniCheck-Flan-T5-Large", supported=209, unsupported=3),
        *("0.8B", "MIT", 75.0, _LEADERBOARD),
    ),
    "factcg": NamedJudge(
        _classifier(_FACTCG, "yaxili96/FactCG-DeBERTa-v3-Large"),
        *("0.4B", "MIT", 75.6, "its authors"),
    ),
    "hhem": NamedJudge(
        _classifier(_HHEM, HHEM, revision=HHEM_2_1, base="google/flan-t5-base"),
        *("0.1B", "Apache-2.0", 71.8, "not known"),
    ),
    "bespoke-minicheck": NamedJudge(
        _served(_BESPOKE, "Yes", "No"),
        *("7B", "CC BY-NC 4.0", 77.4, _LEADERBOARD),
        "bespoke-minicheck (Ollama), bespokelabs/Bespoke-MiniCheck-7B (vLLM)",
    ),
    # A guardian is asked whether there is the risk of an ungrounded text: yes means unsupported.
    "granite-guardian": NamedJudge(
        _served(
            (("assistant", "{claim}"),),
            *("no", "yes"),
            options={"max_tokens": 16, "extra_body": {**_DOCUMENTS, **_guardian("criteria_id")}},
            verdict=r"<score>\s*(\w+)\s*</score>",
        ),
        *("8B", "Apache-2.0", 76.5, _LEADERBOARD),
        "ibm-granite/granite-guardian-3.3-8b (vLLM)",
    ),
    "granite-guardian-3.2": NamedJudge(
        _served(_CONTEXT, "No", "Yes", options={"extra_body": _guardian("risk_name")}),
        *("2B to 8B", "Apache-2.0"),
        served_as="ibm-granite/granite-guardian-3.2-5b, and 3.0 and 3.1 (vLLM)",
    ),
    "granite3-guardian": NamedJudge(
        _served((("system", "groundedness"), *_CONTEXT), "No", "Yes"),
        *("2B, 8B", "Apache-2.0"),
        served_as="granite3-guardian:2b, granite3-guardian:8b (Ollama)",
    ),
    "lynx": NamedJudge(
        _served(
            _LYNX,
            *("PASS", "FAIL"),
            options={"max_tokens": 600, "logprobs": None, "top_logprobs": None},
            verdict=r'[^{]*\{(?:(?!"SCORE").)*"SCORE":\s*"?(\w+)"?\s*\}[\s`]*',
        ),
        *("8B", "CC BY-NC 4.0"),
        served_as="PatronusAI/Llama-3-Patronus-Lynx-8B-Instruct (vLLM)",
    ),
}
"""The judges by name: those that run in this process, then those at an endpoint."""
