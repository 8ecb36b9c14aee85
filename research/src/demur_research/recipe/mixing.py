"""Mix the rows that judges are trained on: with labels of people, and made by rules."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import chain

from demur_research.recipe.deduplicating import Evaluated, Kept, deduplicated
from demur_research.recipe.made import docstrings, from_texts
from demur_research.recipe.rows import Own, TrainingRow
from demur_research.recipe.spoken import with_texts
from demur_research.recipe.worlds import from_worlds

TEXTS = ("fool-me-twice", "wice")
"""The sources whose passages are English texts of several sentences, from which rows are made."""
_SPOKEN_SHARE = 0.01


def mixed(
    labelled: Sequence[TrainingRow],
    own: Sequence[Own],
    worlds: int,
    evaluated: Evaluated,
    seed: int,
) -> Kept:
    """Return all rows to train on, less those that are evaluated.

    Args:
        labelled: The rows of public sources. If there are some, rows are made from texts among them
            and from the docstrings of Python's standard library too.
        own: Your own rows and documents. Rows are made from all documents.
        worlds: The number of invented worlds to make rows of.
        evaluated: What must not be trained on.
        seed: The seed of every choice.
    """
    rng = random.Random(seed)
    texts = [row.passages for row in labelled if row.source in TEXTS]
    found = [
        *labelled,
        *chain.from_iterable(one.rows for one in own),
        *from_texts(texts, "made", rng),
        *from_texts(docstrings() if labelled else (), "made-python", rng),
        *from_texts(chain.from_iterable(one.documents for one in own), "made-own", rng, weight=1.0),
        *from_worlds(worlds, rng),
    ]
    spoken = with_texts(found, round(_SPOKEN_SHARE * len(found)), rng)
    return deduplicated([*found, *spoken], evaluated)
