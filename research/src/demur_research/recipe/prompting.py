"""Ask in training as demur asks in use, so that the two can never differ.

The adapter reads demur's own prompt, with its delimiters. The encoder reads the texts as demur's
small judge shows them.
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import convert_to_openai_messages

from demur.local import ADAPTED
from demur.runtime.prompting import as_shown
from demur.schema import ClaimLabel
from demur_research.recipe.rows import TrainingRow

WORDS = (ClaimLabel.ENTAILMENT, ClaimLabel.CONTRADICTION, ClaimLabel.NEUTRAL)
"""What the adapter replies for each of the first three labels of `rows.LABELS`."""


def messages(row: TrainingRow) -> list[dict[str, Any]]:
    """Return the request that judges a row, as messages with a role and a content.

    A claim that has a question stands behind it.
    """
    found = convert_to_openai_messages(ADAPTED.messages(reference=row.passages, claim=row.shown))
    assert isinstance(found, list)
    return found


def prompt_tokens(tokenizer: Any, row: TrainingRow) -> list[int]:
    """Return the tokens of the request that judges a row, up to where the reply begins.

    Args:
        tokenizer: A tokenizer of transformers with the chat template of the model.
        row: Any row. A claim with a question stands behind it.
    """
    asked = messages(row)
    return list(tokenizer.apply_chat_template(asked, add_generation_prompt=True, return_dict=False))


def label_tokens(tokenizer: Any) -> tuple[int, ...]:
    """Return the first token of the reply for each of the three labels, in their order.

    Raises:
        ValueError: Two labels begin with the same token, so that it cannot tell them apart.
    """
    found = tuple(tokenizer(word.value, add_special_tokens=False)["input_ids"][0] for word in WORDS)
    if len(set(found)) < len(found):
        raise ValueError(
            f"the tokenizer begins two of {', '.join(word.value for word in WORDS)} with the same "
            f"token, got {found}: choose another base model"
        )
    return found


def pair_texts(row: TrainingRow) -> tuple[str, str]:
    """Return the claim and the passages of a row as demur's small judge reads them."""
    return as_shown(row.shown).strip(), as_shown(row.passages).strip()
