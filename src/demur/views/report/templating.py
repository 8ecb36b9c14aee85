"""Load the templates of the pages, which escape every value and make it harmless."""

from __future__ import annotations

from importlib import resources
from typing import Any

from markupsafe import Markup

from demur._text import harmless
from demur.errors import needs
from demur.views import stylesheet
from demur.views.report.embedding import as_data


def template(name: str) -> Any:
    """Return a template of this package as a Jinja template.

    Raises:
        MissingExtraError: Jinja is not installed.
    """
    with needs("jinja2", "cli", "a report"):
        import jinja2
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("demur.views.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
    )
    environment.filters["data"] = as_data
    return environment.get_template(name)


def page_style() -> Markup:
    """Return the style of all pages."""
    own = resources.files("demur.views.report") / "templates" / "page.css"
    return Markup(stylesheet() + own.read_text(encoding="utf-8"))


def _shown(value: Any) -> Any:
    """Return a value as the template writes it, which then escapes all but `Markup`."""
    return harmless(value) if isinstance(value, str) and not isinstance(value, Markup) else value
