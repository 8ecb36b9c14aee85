"""Test that every option is in the signature, and is the field of the same name."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from demur import FEWL, Cascade, Guard, RefChecker, ReverseValidation
from demur.evaluators import (
    AllFalse,
    AnswerRelevance,
    LMvsLM,
    SelfCheck,
    SelfContradiction,
    ZeroShot,
)

CLASSES = (
    *(AllFalse, Cascade, FEWL, LMvsLM, RefChecker, ReverseValidation, SelfCheck, ZeroShot),
    *(AnswerRelevance, SelfContradiction, Guard),
)
MADE = {"on_fail", "budget"}
"""The options from which a guard makes a field of its own, even if they are not given."""


@pytest.mark.parametrize("made", CLASSES, ids=lambda made: made.__name__)
def test_a_signature_says_all_that_the_fields_do(made: Any) -> None:
    parameters = inspect.signature(made).parameters
    short = {"model"} if made is Guard else set()  # `model` is short for a whole `on_fail`.
    assert {*parameters} == {*made.model_fields} | short
    for name, parameter in parameters.items():
        if name in short:
            continue
        field = made.model_fields[name]
        assert parameter.annotation is not parameter.empty, name
        if name not in MADE and not field.is_required():
            assert parameter.default == field.get_default(call_default_factory=True), name
            first = name == next(iter(parameters))
            assert parameter.kind is parameter.KEYWORD_ONLY or first, name


@pytest.mark.parametrize("made", CLASSES, ids=lambda made: made.__name__)
def test_an_unknown_option_is_refused_by_name(made: Any) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'treshold'"):
        made(treshold=0.5)
