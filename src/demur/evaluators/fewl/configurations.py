"""Define every row of the papers' tables, as arguments of `FEWL`.

Each line has the name of a row, how the row differs from the papers' first choice, and the tables
that contain the row:

    single                  one reference answer, no penalty       v1 1, 3; v2 1, 2, 7, 8, 10, 14
    single-penalty          with the laziness penalty              the same
    single-best             the answer of highest expertise        v2 15
    multi                   five answers, no penalty               as single
    multi-weighted          weights by expertise, no penalty       none
    fewl                    weights by expertise, penalty ("ours") all
    fewl-uniform            uniform weights                        v1 2, 10; v2 12, 13
    fewl-ideal              weights by labelled answers            the same
    fewl-agreement          expertise by asking the references     v1 figure 4
    ...-js, ...-kl          another divergence                     v2 16
    ...-random              random in place of near questions      v1 9; v2 11
    ...-mean-one            weights of mean one                    none

By default, `FEWL` is multi-weighted-mean-one under cosine, and fewl-mean-one under any other
similarity (`default_configuration`).

You choose the reference models and the similarity. The tables use the similarity "hhem" for v2's
main tables. They use "hhem-1.0" for v1's tables, and for v2's tables 7 (second rows), 8 and 10 to
16.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from types import MappingProxyType
from typing import Any

from demur.similarity import COSINE, Similarity

_BASES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "single": ("one reference answer", {"weighting": "first", "penalty": False}),
    "single-penalty": (
        "one reference answer, laziness penalty",
        {"weighting": "first", "penalty": True},
    ),
    "single-best": (
        "the reference answer of highest expertise",
        {"weighting": "best", "penalty": False},
    ),
    "multi": ("all reference answers alike", {"weighting": "uniform", "penalty": False}),
    "multi-weighted": (
        "reference answers by expertise, no penalty",
        {"weighting": "expertise", "penalty": False},
    ),
    "fewl-uniform": (
        "all reference answers alike, laziness penalty",
        {"weighting": "uniform", "penalty": True},
    ),
    "fewl": (
        "reference answers by expertise, laziness penalty",
        {"weighting": "expertise", "penalty": True},
    ),
    "fewl-agreement": (
        "reference answers by what they agree with when asked, laziness penalty",
        {"weighting": "agreement", "penalty": True},
    ),
    "fewl-ideal": (
        "reference answers by labelled answers, laziness penalty",
        {"weighting": "ideal", "penalty": True},
    ),
}
_DIVERGENCES = {
    "": ("", {"divergence": "tv"}),
    "-js": (", Jensen-Shannon", {"divergence": "js"}),
    "-kl": (", KL", {"divergence": "kl"}),
}
_NEIGHBORS = {
    "": ("", {"neighbor_choice": "nearest"}),
    "-random": (" of random questions", {"neighbor_choice": "random"}),
}
_NORMALIZATIONS = {
    "": ("", {"normalization": "paper"}),
    "-mean-one": (", weights of mean one", {"normalization": "mean_one"}),
}


def _all() -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for (base, (text, options)), divergence, neighbors, normalization in product(
        _BASES.items(), _DIVERGENCES.items(), _NEIGHBORS.items(), _NORMALIZATIONS.items()
    ):
        if neighbors[0] and not options["penalty"]:
            continue
        if normalization[0] and options["weighting"] in ("first", "best"):
            continue  # a single reference has the weight 1 either way
        name = f"{base}{divergence[0]}{neighbors[0]}{normalization[0]}"
        parts = (neighbors[1], divergence[1], normalization[1])
        merged = {**options, **{key: value for _, more in parts for key, value in more.items()}}
        yield name, text + "".join(words for words, _ in parts), merged


CONFIGURATIONS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {name: MappingProxyType(dict(options)) for name, _, options in _all()}
)
"""The arguments of `FEWL`, by the name of the configuration."""

DESCRIPTIONS: Mapping[str, str] = MappingProxyType({name: text for name, text, _ in _all()})
"""A description in a few words, by the name of the configuration."""


def default_configuration(similarity: Similarity) -> str:
    """Return the name of the configuration that `FEWL` uses by default with a similarity."""
    return "multi-weighted-mean-one" if similarity.name == COSINE else "fewl-mean-one"
