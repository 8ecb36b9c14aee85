"""Why something is undetermined, on its way to the evaluation that says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pydantic import JsonValue

from demur.schema import Claim


class UndeterminedError(Exception):
    """Nothing can be decided. An evaluator makes an evaluation of it, so no user sees it.

    Args:
        why: The evaluation's `error`.
        claims: Its claims.
        details: Its details.
        cause: Its `cause`: in a few words for anyone to see, where no call failed.
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
    """Give these details, as they are by then, to an `UndeterminedError` that leaves the block."""
    try:
        yield
    except UndeterminedError as error:
        error.details = {**details, **error.details}
        raise
