"""Define the errors that demur raises: one small tree in which every message says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class DemurError(Exception):
    """Base class of every error that demur raises on purpose."""


class MissingExtraError(DemurError, ImportError):
    """Report that an optional dependency is not installed, and name the extra to install."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        """Make the message: `package` is the import that failed, `extra` the extra to install."""
        super().__init__(f"{purpose} needs {package}. Run: pip install 'demur[{extra}]'")
        self.package = package
        self.extra = extra

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the error by its message, because the constructor builds the message itself."""
        return (_restore_missing_extra, (self.args[0], self.package, self.extra))


def _restore_missing_extra(message: str, package: str, extra: str) -> MissingExtraError:
    error = MissingExtraError.__new__(MissingExtraError, message)
    error.args = (message,)
    error.package, error.extra = package, extra
    return error


@contextmanager
def needs(package: str | None, extra: str, purpose: str) -> Iterator[None]:
    """Raise a `MissingExtraError` if an import in the block fails.

    Args:
        package: The package that is imported. None: the one that is missing, out of several.
        extra: The extra that brings it.
        purpose: What it is needed for, as the beginning of a sentence.
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(package or error.name or "a package", extra, purpose) from error


class LocalModelError(DemurError):
    """Report that the local model cannot be used.

    Its weights are missing or wrong, or its server did not start.
    """


class ModelCallError(DemurError):
    """Report that a model call gave no usable reply, after the retries its error allows."""
