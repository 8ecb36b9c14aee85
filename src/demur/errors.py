"""The errors demur raises: one small tree, every message saying what to do."""

from __future__ import annotations


class DemurError(Exception):
    """Base of every error that demur raises on purpose."""


class MissingExtraError(DemurError, ImportError):
    """An optional dependency is not installed; the message names the extra to install."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        """`package` is the import that failed, `extra` demur's extra that brings it."""
        super().__init__(f"{purpose} needs {package}. Run: pip install 'demur[{extra}]'")
        self.package = package
        self.extra = extra

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by message, since the constructor builds the message itself."""
        return (_restore_missing_extra, (self.args[0], self.package, self.extra))


def _restore_missing_extra(message: str, package: str, extra: str) -> MissingExtraError:
    error = MissingExtraError.__new__(MissingExtraError, message)
    error.args = (message,)
    error.package, error.extra = package, extra
    return error


class LocalModelError(DemurError):
    """The local model cannot be had: weights missing or wrong, or its server did not start."""


class ModelCallError(DemurError):
    """A model call gave no usable reply, after the retries that its class of error allows."""
