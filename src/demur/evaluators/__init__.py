"""Score answers: the evaluators are Runnables that turn a `Sample` into an `Evaluation`.

This room promises the other rooms:

- An evaluator sends every request through `demur.runtime`, and shows a judged text to a model only
  in a `Prompt`.
- An evaluation that could not be decided has an `error`, and neither score nor label.
- The `fingerprints` of an evaluation say what its score depends on.
"""

from demur.evaluators.accepted import EvaluatorLike, as_evaluator
from demur.evaluators.accepted import as_evaluators as as_evaluators
from demur.evaluators.accepted import decides_nothing as decides_nothing
from demur.evaluators.accepted import is_mistake as is_mistake
from demur.evaluators.base import ClaimEvaluator as ClaimEvaluator
from demur.evaluators.base import Evaluator
from demur.evaluators.base import ExtractedClaims as ExtractedClaims
from demur.evaluators.base import LabelledClaims as LabelledClaims
from demur.evaluators.base import as_sample as as_sample
from demur.evaluators.baselines import AllFalse, LMvsLM, SelfCheck, ZeroShot
from demur.evaluators.call_grounding import CallGrounding, MissingValue, missing_values
from demur.evaluators.call_grounding import call_in as call_in
from demur.evaluators.cascade import Cascade
from demur.evaluators.citation_support import CitationSupport
from demur.evaluators.fewl import FEWL, FEWLPrompts, Fitted, NeighborStore, Pairs
from demur.evaluators.fewl.configurations import CONFIGURATIONS as CONFIGURATIONS
from demur.evaluators.fewl.configurations import DESCRIPTIONS as DESCRIPTIONS
from demur.evaluators.fewl.configurations import default_configuration as default_configuration
from demur.evaluators.fewl.fitting import Learned as Learned
from demur.evaluators.fewl.fitting import fit as fit
from demur.evaluators.fewl.parsing import normalized_text as normalized_text
from demur.evaluators.refchecker import RefChecker, RefCheckerPrompts, Summary, summarize
from demur.evaluators.refchecker.assertion import only_asks as only_asks
from demur.evaluators.refchecker.assertion import tells_fact as tells_fact
from demur.evaluators.refchecker.content_words import content_words as content_words
from demur.evaluators.refchecker.context import refers as refers
from demur.evaluators.refchecker.judges import Judge as Judge
from demur.evaluators.refchecker.judges import resolve_judge as resolve_judge
from demur.evaluators.refchecker.languages import likely as likely
from demur.evaluators.refchecker.localization import nearest_quote as nearest_quote
from demur.evaluators.refchecker.units import Piece as Piece
from demur.evaluators.refchecker.units import piece_at as piece_at
from demur.evaluators.refchecker.units import pieces as pieces
from demur.evaluators.refchecker.units import units as units
from demur.evaluators.reverse_validation import ReverseValidation, ReverseValidationPrompts
from demur.evaluators.reverse_validation.matching import Matcher
from demur.evaluators.thresholds import AnyThreshold as AnyThreshold
from demur.evaluators.thresholds import ShareThreshold as ShareThreshold
from demur.evaluators.thresholds import ThresholdOrFile as ThresholdOrFile
from demur.evaluators.thresholds import number as number
from demur.evaluators.thresholds import refuse_foreign as refuse_foreign
from demur.evaluators.whole_answer import AnswerRelevance, SelfContradiction
from demur.similarity import YesNoJudge

__all__ = [  # other names serve other rooms and are not part of the public interface
    "FEWL",
    "AllFalse",
    "AnswerRelevance",
    "CallGrounding",
    "Cascade",
    "CitationSupport",
    "Evaluator",
    "EvaluatorLike",
    "FEWLPrompts",
    "Fitted",
    "LMvsLM",
    "Matcher",
    "MissingValue",
    "NeighborStore",
    "Pairs",
    "RefChecker",
    "RefCheckerPrompts",
    "ReverseValidation",
    "ReverseValidationPrompts",
    "SelfCheck",
    "SelfContradiction",
    "Summary",
    "YesNoJudge",
    "ZeroShot",
    "as_evaluator",
    "missing_values",
    "summarize",
]
