"""Reverse Validation: does what an answer says lead back to what it speaks of?"""

from demur.evaluators.reverse_validation.evaluator import ReverseValidation
from demur.evaluators.reverse_validation.prompts import ReverseValidationPrompts

__all__ = ["ReverseValidation", "ReverseValidationPrompts"]
