"""Values that show themselves in notebooks: the views stand above them, and are found by name."""

from __future__ import annotations

from importlib import import_module


class ShownInNotebooks:
    """Base of the values that `demur.views.notebook_html` knows."""

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        return str(import_module("demur.views").notebook_html(self))
