"""The site is built strictly, has all that is public, and asks no other host for anything."""

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

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site() -> Path:
    built = subprocess.run(
        [sys.executable, "-m", "tools.site"], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert built.returncode == 0, built.stdout[-6000:]
    return ROOT / "site"


def test_it_is_built_without_a_warning_and_can_be_searched(site: Path) -> None:
    assert (site / "index.html").exists()
    assert "Louvre" in (site / "search.json").read_text(encoding="utf-8")


def test_every_public_name_stands_in_the_reference(site: Path) -> None:
    told = {
        found
        for page in (site / "reference").rglob("index.html")
        for found in re.findall(
            r'id="((?:demur|langchain_demur|llama_index)[\w.]*)"', page.read_text("utf-8")
        )
    }
    public = (ROOT / "tests" / "public_names.txt").read_text(encoding="utf-8").splitlines()
    names = {re.split(r"[( ]", line)[0] for line in public}
    # What `demur` itself has is described where it lives, and named on the first page.
    face = (DOCS / "reference" / "index.md").read_text(encoding="utf-8")
    missing = {
        name
        for name in names - told
        if not (name.count(".") == 1 and f"`{name.removeprefix('demur.')}`" in face)
    }
    assert missing == {"demur.__version__"}


def test_no_page_asks_another_host(site: Path) -> None:
    for page in site.rglob("*.html"):
        asked = re.findall(
            r'<(?:script|img|iframe|link)[^>]*(?:src|href)="?(https?:[^" >]+)',
            page.read_text("utf-8"),
        )
        own = ("https://demur-dev.github.io/demur/",)  # the canonical address of the page
        assert [address for address in asked if not address.startswith(own)] == [], page


def test_every_page_is_in_the_menu() -> None:
    menu = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]["nav"]
    told = set(re.findall(r"'([\w/-]+\.md)'", str(menu)))
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    decisions = {page for page in pages if page.startswith("decisions/0")}
    assert pages - decisions == told
