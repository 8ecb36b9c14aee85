"""Test that a release's files parse, and agree on the version, the bounds and the addresses."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import demur
import demur_judge
from support.installed import PROJECTS, ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # On Python 3.10, pytest installs it.

SITE = "https://demur-dev.github.io/demur/"
REPOSITORY = "https://github.com/demur-dev/demur"
NAMES = list(PROJECTS)


def _toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _yaml(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def _project(name: str) -> dict[str, Any]:
    project: dict[str, Any] = _toml(PROJECTS[name] / "pyproject.toml")["project"]
    return project


def _stands_for(link: str) -> Path:
    """Return the file of this checkout that a URL of the site or of the repository shows."""
    link = link.partition("#")[0]
    if link.startswith(SITE):
        page = link[len(SITE) :].strip("/") or "index"
        pages = (ROOT / "docs" / f"{page}.md", ROOT / "docs" / page / "index.md")
        return next((one for one in pages if one.is_file()), pages[0])
    return ROOT / link.partition(f"/v{demur.__version__}/")[2]


def _links(text: str) -> list[str]:
    without_code = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"\]\(([^)\s]+)\)", without_code)


# --- Versions -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_distribution_has_the_version(name: str) -> None:
    project = _project(name)
    assert project["name"] == name
    if name in ("demur", "demur-judge"):
        assert "version" in project["dynamic"]
        return
    assert project["version"] == demur.__version__
    major, minor, _ = demur.__version__.split(".")
    (bound,) = (one for one in project["dependencies"] if re.match(r"demur\b", one))
    assert bound.endswith(f">={major}.{minor}.0,<{major}.{int(minor) + 1}")


def test_the_judge_has_the_version_and_the_extras_that_need_it_bound_it() -> None:
    assert demur_judge.__version__ == demur.__version__
    assert _project("demur-judge")["dependencies"] == []
    major, minor, _ = demur.__version__.split(".")
    bound = f"demur-judge>={major}.{minor},<{major}.{int(minor) + 1}"
    extras = _project("demur")["optional-dependencies"]
    assert {name for name, needed in extras.items() if bound in needed} == {"local", "small"}


def test_the_citation_is_of_the_version() -> None:
    citation = _yaml("CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == demur.__version__
    assert (citation["url"], citation["repository-code"]) == (SITE, REPOSITORY)
    cited = {one["url"] for one in citation["references"]}
    methods = "".join(one.read_text(encoding="utf-8") for one in ROOT.glob("docs/methods/*.md"))
    assert {one.rpartition("/")[2] for one in cited} <= set(re.findall(r"\d{4}\.\d{5}", methods))
    assert len(cited) == 3


def test_the_changelog_tells_the_version_and_links_nowhere_in_the_checkout() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## \[(.+)\] - (not released yet|\d{4}-\d\d-\d\d)$", text, re.MULTILINE)
    assert newest is not None
    assert newest[1] == demur.__version__
    assert all(link.startswith("https://") for link in _links(text))


# --- Addresses ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_addresses_are_the_same_everywhere(name: str) -> None:
    urls = _project(name)["urls"]
    assert _stands_for(urls["Documentation"]).is_file()
    del urls["Documentation"]
    assert urls == {
        "Homepage": SITE,
        "Repository": REPOSITORY,
        "Issues": f"{REPOSITORY}/issues",
        "Changelog": f"{SITE}changelog/",
    }


def test_the_site_has_its_address() -> None:
    assert _toml(ROOT / "zensical.toml")["project"]["site_url"] == SITE


@pytest.mark.parametrize("name", NAMES)
def test_the_description_on_the_index_links_to_what_there_is(name: str) -> None:
    text = (PROJECTS[name] / "README.md").read_text(encoding="utf-8")
    hooks = _toml(PROJECTS[name] / "pyproject.toml")["tool"]["hatch"].get("metadata", {})
    hook = hooks.get("hooks", {}).get("fancy-pypi-readme", {})
    for one in hook.get("substitutions", []):
        text = re.sub(one["pattern"], one["replacement"], text)
    text = text.replace("$HFPR_VERSION", demur.__version__)
    links = [one for one in _links(text) if not one.startswith("#")]
    assert not [one for one in links if not one.startswith("https://")]
    ours = [one for one in links if "demur-dev" in one and one != REPOSITORY]
    assert ours
    assert not [one for one in ours if not _stands_for(one).exists()]


# --- The metadata of a distribution ---------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_distribution_has_the_licence_and_the_types(name: str) -> None:
    assert (PROJECTS[name] / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert list((PROJECTS[name] / "src").rglob("py.typed"))
    project = _project(name)
    assert (project["license"], project["license-files"]) == ("Apache-2.0", ["LICENSE"])
    pythons = {f"Programming Language :: Python :: 3.{minor}" for minor in (10, 11, 12, 13)}
    assert pythons | {"Typing :: Typed"} <= set(project["classifiers"])
    assert ("Private :: Do Not Upload" in project["classifiers"]) == (name == "demur-research")


@pytest.mark.parametrize("name", ["ci", "release"])
def test_a_workflow_runs_what_there_is_with_few_rights(name: str) -> None:
    workflow = _yaml(f".github/workflows/{name}.yml")
    assert workflow["permissions"] == {"contents": "read"}
    assert "concurrency" in workflow
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    for step in steps:
        assert re.search(r"@(v\d+|release/v\d+)$", step.get("uses", "@v0"))
    run = "\n".join(step.get("run", "") for step in steps)
    targets = set(re.findall(r"^([\w-]+)[\w -]*:", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake ([\w-]+)", run)) <= targets
    assert all((ROOT / path).exists() for path in re.findall(r"integrations/[\w-]+|\.ci/run", run))


def test_the_release_publishes_all_but_the_laboratory() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    (listed,) = re.findall(r"for project in (.*); do", text)
    published = {(ROOT / one).resolve() for one in listed.split()}
    assert published == set(PROJECTS.values()) - {PROJECTS["demur-research"]}


def test_ci_runs_every_python_that_the_package_names() -> None:
    matrix = _yaml(".github/workflows/ci.yml")["jobs"]["check"]["strategy"]["matrix"]["python"]
    named = {one.rpartition(" ")[2] for one in _project("demur")["classifiers"] if "3." in one}
    assert set(matrix) == named
