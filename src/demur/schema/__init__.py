"""Define the values that pass between demur's parts: samples, evaluations, usage and thresholds.

All are frozen pydantic models. Each survives a JSON round trip:
`Evaluation.model_validate_json(evaluation.model_dump_json())`. What a score depends on is kept as
fingerprints, whose making and comparing is a room inside this one (`fingerprints`).
"""

from demur.schema.base import Text
from demur.schema.claims import (
    NLI_LABELS,
    WORST_FIRST,
    ActionOutcome,
    Calculation,
    Category,
    Claim,
    ClaimLabel,
    Evidence,
    Failure,
    MissingString,
    Span,
    failure_of,
)
from demur.schema.documents import Contexts
from demur.schema.evaluations import ABSTAIN, FACTUAL, NON_FACTUAL, Evaluation, Finding
from demur.schema.invalid import in_words, validated
from demur.schema.notebook import ShownInNotebooks
from demur.schema.samples import Sample
from demur.schema.shares import Share, wilson
from demur.schema.thresholds import OnAbstain, Threshold, ThresholdMethod
from demur.schema.usage import Prices, Usage

__all__ = [
    "ABSTAIN",
    "FACTUAL",
    "NLI_LABELS",
    "NON_FACTUAL",
    "WORST_FIRST",
    "ActionOutcome",
    "Calculation",
    "Category",
    "Claim",
    "ClaimLabel",
    "Contexts",
    "Evaluation",
    "Evidence",
    "Failure",
    "Finding",
    "MissingString",
    "OnAbstain",
    "Prices",
    "Sample",
    "Share",
    "ShownInNotebooks",
    "Span",
    "Text",
    "Threshold",
    "ThresholdMethod",
    "Usage",
    "failure_of",
    "in_words",
    "validated",
    "wilson",
]
