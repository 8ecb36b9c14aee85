"""Define the tables of Reverse Validation (arXiv 2310.06498): PHD, WikiBio-GPT3, and the costs.

The publishers recorded what ChatGPT and Llama-2 said, and those replies are judged again. Other
tables ask a model now.
"""

from __future__ import annotations

from collections.abc import Sequence

from demur_research.bench import NotRun, Table
from demur_research.replay import PERCENTAGE
from demur_research.tables.judges import JUDGE_OPTION
from demur_research.tables.reverse_validation import judges, live, recorded, sampled
from demur_research.tables.reverse_validation.judged import PHD, WIKIBIO

_SOURCE = "Reverse Validation"
_LEAST = "the least that entity matching has to give, from 0 to 100"
_RECORDS = {
    "records": "the file or folder of the recorded replies [default: beside the data]",
    "percentage": f"{_LEAST} [default: {PERCENTAGE:g}]",
}
_OF_PHD = {
    **_RECORDS,
    "wikibio-records": "the recorded replies of WikiBio, for SelfCheck's threshold [default: "
    "beside the data]",
}
_METHODS = {"methods": f"the methods, with commas between [default: {','.join(live.METHODS)}]"}
_LIVE = {**_METHODS, "percentage": f"{_LEAST} [default: {live.PERCENTAGE:g}]"}


def _models(default: Sequence[str]) -> str:
    every = ", ".join(judges.MODELS)
    return f"some of {every}, with commas between [default: {','.join(default)}]"


TABLES = (
    Table(
        "rv-table-1",
        f"{_SOURCE}, Table 1",
        "How many passages of each domain of PHD are factual.",
        (PHD,),
        recorded.labels,
        asks=False,
    ),
    Table(
        "rv-table-3",
        f"{_SOURCE}, Table 3",
        "Detection on PHD and its domains, from what ChatGPT said.",
        (PHD, WIKIBIO),
        recorded.chatgpt,
        options=_OF_PHD,
    ),
    Table(
        "rv-table-4",
        f"{_SOURCE}, Table 4",
        "How much of WikiBio-GPT3 is rejected, where every passage is wrong.",
        (WIKIBIO,),
        recorded.wikibio,
        asks=False,
        options=_RECORDS,
    ),
    Table(
        "rv-table-5",
        f"{_SOURCE}, Table 5",
        "Tokens and seconds of each method on a passage of PHD.",
        (PHD,),
        live.costs,
        options=_METHODS,
    ),
    Table(
        "rv-table-6",
        f"{_SOURCE}, Table 6",
        "Detection on PHD and its domains, from what Llama-2 said.",
        (PHD, WIKIBIO),
        recorded.llama_2,
        options=_OF_PHD,
    ),
    Table(
        "rv-live",
        f"{_SOURCE}, Table 3 with a model that is asked now",
        "Detection on PHD and its domains, with a model that is asked now.",
        (PHD,),
        live.detected,
        options=_LIVE,
    ),
    Table(
        "rv-matching",
        "demur",
        "Whether a judge of demur's own tells that a recorded reply names the entity.",
        (PHD,),
        judges.matched,
        options={**_RECORDS, "judge": JUDGE_OPTION, "models": _models(judges.MODELS)},
    ),
    Table(
        "rv-selfcheck",
        "demur",
        "How well SelfCheck's variants find wrong passages of PHD, from the recorded samples.",
        (PHD,),
        sampled.compared,
        options={"records": _RECORDS["records"], "models": _models(sampled.MODELS[:1])},
    ),
)

NOT_RUN = (
    NotRun(f"{_SOURCE}, Table 2", "The prompts.", "demur has prompts of its own."),
    NotRun(f"{_SOURCE}, Figure 1", "The three stages of the method.", "It is a drawing."),
    NotRun(
        f"{_SOURCE}, Table 7",
        "Two rejected passages that are right.",
        "They are cases of the tests.",
    ),
    NotRun(f"{_SOURCE}, Table 8", "Two wrong passages that pass.", "They are cases of the tests."),
)
