"""Provide values that show themselves in notebooks, without importing the views above them."""

from __future__ import annotations

from importlib import import_module


class ShownInNotebooks:
    """Base class of the values that `demur.views.notebook_html` can show."""

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows for this value."""
        return str(import_module("demur.views").notebook_html(self))
