"""Carry the reason why something is undetermined to the evaluation that reports it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pydantic import JsonValue

from demur.schema import Claim


class UndeterminedError(Exception):
    """Report that nothing can be decided.

    An evaluator turns this error into an evaluation, so no user sees it.

    Args:
        why: The `error` of the evaluation.
        claims: The claims of the evaluation.
        details: The details of the evaluation.
        cause: The `cause` of the evaluation, where no call failed: a few words that anyone may see.
    """

    def __init__(
        self,
        why: str,
        claims: Sequence[Claim] = (),
        details: Mapping[str, JsonValue] | None = None,
        cause: str | None = None,
    ) -> None:
        super().__init__(why)
        self.cause = cause
        self.claims = tuple(claims)
        self.details = dict(details or {})


@contextmanager
def undetermined_with(details: Mapping[str, JsonValue]) -> Iterator[None]:
    """Add details to an `UndeterminedError` that leaves the block, as they are at that moment."""
    try:
        yield
    except UndeterminedError as error:
        error.details = {**details, **error.details}
        raise
