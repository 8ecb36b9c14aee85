"""Make texts that identify models, prompts and functions, and compare two such texts.

Scores, thresholds and references' answers that were kept for one model must not be used for
another. If two texts are equal, nothing that is known to matter differs. The texts hold no
credentials.

A text is a list of parts, many of them `name=value`, so that a refusal can name the part that
differs. A value that is long, structured or possibly secret is replaced by a digest: `#` and twelve
hexadecimal digits.
"""

from demur.schema.fingerprints.comparing import (
    Difference,
    differences_between,
    flat,
    hosts_in,
    told,
    with_hosts,
)
from demur.schema.fingerprints.functions import digest, function_fingerprint, prompts_fingerprint
from demur.schema.fingerprints.models import (
    endpoint_of,
    fingerprint,
    model_fingerprint,
    request_fingerprint,
)
from demur.schema.fingerprints.values import host_of

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
    "request_fingerprint",
    "told",
    "with_hosts",
]
