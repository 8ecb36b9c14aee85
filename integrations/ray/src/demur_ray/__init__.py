"""Score data sets of answers on a Ray cluster: workers score, and the driver writes the results.

`score` takes a Ray data set. `demur score FILE --ray ADDRESS` takes a file.
"""

from demur_ray.scoring import score

__all__ = ["score"]
