"""Score how alike two texts are, and whether one supports the other.

A similarity is given as a name, a model or a function. A public judge that answers yes or no is a
name or a description (`YesNoJudge`).

The room promises four things to other rooms. Each pair is scored once, in batches, for all threads
together. A score is a number in [0, 1], or an error says which pair has none. A `Similarity` has a
fingerprint, which distinguishes its scores from those of other similarities. torch is imported only
when a scorer that needs it is first used, and a missing package raises an error with the name of
the extra.
"""

from demur.similarity.encoders import weights_fingerprint
from demur.similarity.named import NAMED, NamedJudge
from demur.similarity.nli import NLI, load_nli
from demur.similarity.pairs import Similarity
from demur.similarity.resolving import COSINE, SimilarityLike, resolve_similarity
from demur.similarity.scorers import Pair
from demur.similarity.yes_no import YesNoJudge
from demur.similarity.yes_no_models import YesNoModel, load_yes_no

__all__ = [
    "COSINE",
    "NAMED",
    "NLI",
    "NamedJudge",
    "Pair",
    "Similarity",
    "SimilarityLike",
    "YesNoJudge",
    "YesNoModel",
    "load_nli",
    "load_yes_no",
    "resolve_similarity",
    "weights_fingerprint",
]
