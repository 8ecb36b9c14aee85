"""Texts that tell models, prompts and functions from others, and what differs between two of them.

What was kept of one must not be taken for another's: scores, thresholds, references' answers. Equal
texts mean that nothing that is known to matter differs. They hold no credential. A text is a list
of parts, many of them `name=value`, so that a refusal can name the one that differs; of a value
that is long, structured or may be secret there is a digest, `#` and twelve hexadecimal digits.
"""

from demur._fingerprints.comparing import (
    Difference,
    differences_between,
    flat,
    hosts_in,
    told,
    with_hosts,
)
from demur._fingerprints.functions import digest, function_fingerprint, prompts_fingerprint
from demur._fingerprints.models import endpoint_of, fingerprint, model_fingerprint
from demur._fingerprints.values import host_of

__all__ = [
    "Difference",
    "differences_between",
    "digest",
    "endpoint_of",
    "fingerprint",
    "flat",
    "function_fingerprint",
    "host_of",
    "hosts_in",
    "model_fingerprint",
    "prompts_fingerprint",
    "told",
    "with_hosts",
]
