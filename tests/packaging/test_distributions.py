"""Test the content of the wheels, and what they do where pip installs them."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Callable
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from support.installed import PROJECTS, ROOT, Built, run
from support.openai_server import openai_server
from support.rag import FACTS, WRONG, application

# The first test that asks for an environment waits until pip has made it.
pytestmark = [pytest.mark.packaging, pytest.mark.timeout(600)]

NAMES = list(PROJECTS)


def _metadata(built: Built) -> Message:
    with zipfile.ZipFile(built.wheel) as file:
        (name,) = (one for one in file.namelist() if one.endswith(".dist-info/METADATA"))
        return HeaderParser().parsestr(file.read(name).decode())


def _left_out(project: Path) -> list[str]:
    """Return the files that a project says its wheel leaves out, such as a README for authors."""
    data = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    found = data["tool"].get("hatch", {}).get("build", {}).get("targets", {}).get("wheel", {})
    left_out: list[str] = found.get("exclude", [])
    return left_out


@pytest.mark.parametrize("name", NAMES)
def test_a_wheel_holds_the_sources_the_types_and_the_licence(
    built: dict[str, Built], name: str
) -> None:
    with zipfile.ZipFile(built[name].wheel) as file:
        inside = file.namelist()
        (licence,) = (one for one in inside if one.endswith(".dist-info/licenses/LICENSE"))
        assert file.read(licence) == (ROOT / "LICENSE").read_bytes()
    sources = PROJECTS[name] / "src"
    here = {
        one.relative_to(sources).as_posix()
        for one in sources.rglob("*")
        if one.is_file() and "__pycache__" not in one.parts
    }
    left_out = {one.removeprefix("src/") for one in _left_out(PROJECTS[name])}
    assert left_out <= here
    assert here - left_out == {one for one in inside if ".dist-info/" not in one}
    assert any(one.endswith("/py.typed") for one in here)


@pytest.mark.parametrize("name", NAMES)
def test_the_description_has_no_link_into_the_checkout(built: dict[str, Built], name: str) -> None:
    metadata = _metadata(built[name])
    assert metadata["Description-Content-Type"] == "text/markdown"
    text = str(metadata.get_payload())
    links = [part.partition(")")[0] for part in text.split("](")[1:]]
    assert links
    assert not [link for link in links if not link.startswith(("https://", "#"))]
    assert "$HFPR" not in text


SMOKE = """
import json
from importlib.metadata import version
from langchain_core.language_models import FakeListChatModel
import demur, demur_judge, demur_ray, demur_research, langchain_demur
import llama_index.evaluation.demur as llama_index_demur

model = FakeListChatModel(responses=["1. Contradiction"])
checker = demur.RefChecker(model, claims="sentences")
evaluation = checker.invoke({
    "answer": "The Louvre opened as a museum in 1851.",
    "contexts": ["The Louvre opened as a museum in 1793."],
})
ours = (demur, demur_judge, demur_ray, demur_research, langchain_demur, llama_index_demur)
print(json.dumps({
    "passed": evaluation.passed,
    "files": [one.__file__ for one in ours],
    "versions": sorted({version(name) for name in %r}),
}))
"""


def test_all_distributions_install_judge_and_have_their_commands(
    version: str, environments: Callable[[str], Path], built: dict[str, Built], tmp_path: Path
) -> None:
    python = environments(version)
    said = json.loads(run(tmp_path, python, "-c", SMOKE % NAMES).splitlines()[-1])
    assert said["passed"] is False
    assert said["versions"] == [_metadata(built["demur"])["Version"]]
    for file in said["files"]:
        assert Path(file).is_relative_to(python.parents[1])

    command = f"{python.parent / 'demur'} check --model openai:judge --json"
    with openai_server(application("no answer")) as server:
        at = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "key", "NO_PROXY": "*"}
        asked = [*command.split(), "--answer", WRONG, "--reference", FACTS[0]]
        run(tmp_path, *asked, status=1, **at)
    assert "fewl-v1-table-1" in run(tmp_path, python.parent / "demur-bench", "tables")
