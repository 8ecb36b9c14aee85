"""Choose few-shot exemplars and training data by FEWL's scores, without gold answers."""

from demur.exemplars.entries import Candidate, Entry
from demur.exemplars.finetuning import Exported, export_finetuning
from demur.exemplars.judge import Comparison, PairwiseJudge, PairwiseVerdict
from demur.exemplars.prompts import few_shot_prompt
from demur.exemplars.rates import WinRates, win_rates
from demur.exemplars.selector import FEWLExampleSelector
from demur.exemplars.store import ExampleStore

__all__ = [
    "Candidate",
    "Comparison",
    "Entry",
    "ExampleStore",
    "Exported",
    "FEWLExampleSelector",
    "PairwiseJudge",
    "PairwiseVerdict",
    "WinRates",
    "export_finetuning",
    "few_shot_prompt",
    "win_rates",
]
