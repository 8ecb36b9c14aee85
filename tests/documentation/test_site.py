"""Test that the site builds strictly, documents all public names, and needs no other host."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.pages import DOCS, ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")


@pytest.mark.documentation
def test_the_site_is_whole_and_stands_alone() -> None:
    # This is one test, because two builds at the same time would disturb each other.
    built = subprocess.run(
        [sys.executable, "-m", "tools.site"], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert built.returncode == 0, built.stdout[-6000:]
    site = ROOT / "site"
    assert "Louvre" in (site / "search.json").read_text(encoding="utf-8")
    assert missing_names(site) == {"demur.__version__"}
    assert addresses_elsewhere(site) == []


def missing_names(site: Path) -> set[str]:
    """Return the public names that the reference does not describe."""
    told = {
        found
        for page in (site / "reference").rglob("index.html")
        for found in re.findall(r'id="(demur[\w.]*)"', page.read_text("utf-8"))
    }
    public = (ROOT / "tests" / "public_names.txt").read_text(encoding="utf-8").splitlines()
    names = {re.split(r"[( ]", line)[0] for line in public}
    # Names of `demur` itself are described in their modules, and listed on the first page.
    face = (DOCS / "reference" / "index.md").read_text(encoding="utf-8")
    return {
        name
        for name in names - told
        if not (name.count(".") == 1 and f"`{name.removeprefix('demur.')}`" in face)
    }


def addresses_elsewhere(site: Path) -> list[str]:
    """Return the addresses that a reader's browser would fetch from other hosts."""
    asks = r'<(?:script|img|iframe|link)[^>]*(?:src|href)="?(https?:[^" >]+)'
    own = "https://demur-dev.github.io/demur/"  # The canonical URLs of pages are allowed.
    return [
        address
        for page in site.rglob("*.html")
        for address in re.findall(asks, page.read_text("utf-8"))
        if not address.startswith(own)
    ]


def test_every_page_is_in_the_menu() -> None:
    menu = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]["nav"]
    told = set(re.findall(r"'([\w/-]+\.md)'", str(menu)))
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    decisions = {page for page in pages if page.startswith("decisions/0")}
    assert pages - decisions == told
