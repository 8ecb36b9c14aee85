"""Choose few-shot exemplars and training data by FEWL's scores, without gold answers."""

from demur.exemplars.entries import Candidate, Entry
from demur.exemplars.finetuning import Exported, export_finetuning
from demur.exemplars.prompts import few_shot_prompt
from demur.exemplars.selector import FEWLExampleSelector
from demur.exemplars.store import ExampleStore

__all__ = [
    "Candidate",
    "Entry",
    "ExampleStore",
    "Exported",
    "FEWLExampleSelector",
    "export_finetuning",
    "few_shot_prompt",
]
