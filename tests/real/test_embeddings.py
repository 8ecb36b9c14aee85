"""Test the sentence embeddings of the real model, and what is computed from them."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from demur.errors import LocalModelError, MissingExtraError
from demur.evaluators import NeighborStore
from demur.local import MiniLM
from demur.similarity import resolve_similarity

pytestmark = pytest.mark.real

ASKED = "How do I copy a file?"
FITTING = "Copy data and metadata. Return the file's destination."
OTHER = "Return the sine of x."


@pytest.fixture
def minilm() -> MiniLM:
    try:
        return MiniLM()
    except (LocalModelError, MissingExtraError) as error:
        pytest.skip(f"no sentence embeddings: {error}")


@pytest.mark.smoke
def test_its_similarities_are_those_of_the_official_weights(minilm: MiniLM) -> None:
    """Compare with all-MiniLM-L6-v2 in sentence-transformers, which gives 0.6715 and 0.1687."""
    asked, fitting, other = map(np.array, minilm.embed_documents([ASKED, FITTING, OTHER]))
    assert asked.shape == (384,)
    assert asked @ asked == pytest.approx(1, abs=1e-5)
    assert asked @ fitting == pytest.approx(0.6715, abs=0.01)
    assert asked @ other == pytest.approx(0.1687, abs=0.01)


def test_a_vector_is_the_same_alone_among_others_and_in_threads(minilm: MiniLM) -> None:
    texts = [ASKED, "", "\ud800", FITTING * 40, OTHER]
    together = minilm.embed_documents(texts)
    with ThreadPoolExecutor(4) as pool:
        alone = list(pool.map(pickle.loads(pickle.dumps(minilm)).embed_query, texts))
    assert np.array(alone) == pytest.approx(np.array(together), abs=1e-5)


def test_what_is_behind_the_first_256_tokens_is_not_read(minilm: MiniLM) -> None:
    long = "copy " * 254  # This fills the window, with start and end tokens.
    first, second = minilm.embed_documents([long, long + OTHER])
    assert first == pytest.approx(second, abs=1e-5)
    shorter, different = minilm.embed_documents(["copy " * 200, "copy " * 200 + OTHER])
    assert np.array(shorter) @ np.array(different) < 0.99


def test_cosine_tells_what_is_alike_from_what_is_not(minilm: MiniLM) -> None:
    alike, unlike, same = resolve_similarity("cosine").scores(
        [
            ("Oslo is in Norway.", "Oslo lies in Norway."),
            ("Oslo is in Norway.", "Bread is baked from flour."),
            ("Oslo is in Norway.", "Oslo is in Norway."),
        ]
    )
    assert unlike + 0.3 < alike < same == pytest.approx(1.0)


def test_questions_of_one_subject_are_near_and_a_paraphrase_is_left_out(minilm: MiniLM) -> None:
    store = NeighborStore()
    for question in (
        "What is the capital city of France?",
        "What is the capital of Italy?",
        "Who wrote the play Hamlet?",
        "How many legs does a spider have?",
    ):
        store.add(question, ["It is known."])
    found = [one.question for one in store.nearest("What is the capital of France?", 2, 0.8)]
    assert found[0] == "What is the capital of Italy?"
    assert "What is the capital city of France?" not in found
    assert len(found) == 2
