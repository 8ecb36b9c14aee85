"""How alike two texts are: from a name, a model or a function to scores of pairs.

What the room promises to the others: each pair is scored once, in batches, for all threads
together; a score is a number in [0, 1], or an error says which pair had none; a `Similarity` has a
fingerprint that tells its scores from those of others; torch is imported when a scorer that needs
it is first used, and a missing package is an error with the extra's name.
"""

from demur.similarity.encoders import weights_fingerprint as weights_fingerprint
from demur.similarity.nli import NLI, load_nli
from demur.similarity.pairs import Similarity
from demur.similarity.resolving import COSINE as COSINE
from demur.similarity.resolving import resolve_similarity
from demur.similarity.scorers import Pair

__all__ = [  # what is not named here serves other rooms, and is not promised
    "NLI",
    "Pair",
    "Similarity",
    "load_nli",
    "resolve_similarity",
]
