"""Define the few-shot prompt, with the papers' structure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.example_selectors import BaseExampleSelector
from langchain_core.messages import SystemMessage

if TYPE_CHECKING:
    from langchain_core.prompts import ChatPromptTemplate

INSTRUCTION = """\
You answer questions. Every answer is accurate, short, respectful and fit for any reader, and all \
of your answers have the same form and style."""
"""The instruction reads right with examples and without, so that compared prompts differ in nothing
else."""


def few_shot_prompt(
    selector: BaseExampleSelector | None = None, instruction: str = INSTRUCTION
) -> ChatPromptTemplate:
    """Return the prompt of in-context learning: instruction, examples, question (v1 D.7, v2 D.13).

    Examples are earlier turns of a conversation: a person's question and the model's answer.
    Neither the examples nor the instruction are read as templates, so braces in them stay as they
    are.

    Args:
        selector: The selector of the examples, each `{"question": ..., "answer": ...}`, for the
            input `{"question": ...}`. Asynchronous calls use its `aselect_examples`. None: there
            are no examples, and the rest of the prompt is the same.
        instruction: The system message.

    Returns:
        A prompt with one input variable, `question`.
    """
    # LangChain's templates are imported here, since the import takes time.
    from langchain_core.prompts import (
        AIMessagePromptTemplate,
        ChatPromptTemplate,
        FewShotChatMessagePromptTemplate,
        HumanMessagePromptTemplate,
    )

    question = HumanMessagePromptTemplate.from_template("{question}")
    if selector is None:
        return ChatPromptTemplate([SystemMessage(instruction), question])
    turns = ChatPromptTemplate([question, AIMessagePromptTemplate.from_template("{answer}")])
    examples = FewShotChatMessagePromptTemplate(
        input_variables=["question"], example_selector=selector, example_prompt=turns
    )
    return ChatPromptTemplate([SystemMessage(instruction), examples, question])
