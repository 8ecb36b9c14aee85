"""Check whether the statements of an answer lead back to its entity (Reverse Validation)."""

from demur.evaluators.reverse_validation.evaluator import ReverseValidation
from demur.evaluators.reverse_validation.prompts import ReverseValidationPrompts

__all__ = ["ReverseValidation", "ReverseValidationPrompts"]
