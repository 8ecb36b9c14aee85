"""Test the content of wheels and sdists, and that they install on every supported Python."""

from __future__ import annotations

import json
import tarfile
import zipfile
from collections.abc import Callable
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

import pytest

from support.installed import PROJECTS, ROOT, Built, run
from support.openai_server import openai_server
from support.rag import FACTS, RIGHT, WRONG, application

pytestmark = pytest.mark.packaging

NAMES = list(PROJECTS)
VERSIONS = ("3.10", "3.11", "3.12", "3.13")  # The first version installs the sdists.


def _metadata(built: Built) -> Message:
    with zipfile.ZipFile(built.wheel) as file:
        (name,) = (one for one in file.namelist() if one.endswith(".dist-info/METADATA"))
        return HeaderParser().parsestr(file.read(name).decode())


# --- The content of the files ---------------------------------------------------------------------


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
    assert here == {one for one in inside if ".dist-info/" not in one}
    assert any(one.endswith("/py.typed") for one in here)


@pytest.mark.parametrize("name", NAMES)
def test_an_sdist_holds_what_its_tests_and_its_readers_need(
    built: dict[str, Built], name: str
) -> None:
    with tarfile.open(built[name].sdist) as file:
        inside = {one.name.partition("/")[2] for one in file.getmembers()}
    assert {"LICENSE", "README.md", "pyproject.toml", "PKG-INFO"} <= inside
    tops = {one.partition("/")[0] for one in inside}
    assert {"src", "tests"} <= tops
    assert not tops & {"integrations", "research", ".github", ".venv", ".peers", "site"}


def test_the_package_index_takes_the_files(built: dict[str, Built], tools: Path) -> None:
    files = [str(file) for one in built.values() for file in (one.wheel, one.sdist)]
    run(ROOT, tools, "-m", "twine", "check", "--strict", *files)


@pytest.mark.parametrize("name", NAMES)
def test_the_description_has_no_link_into_the_checkout(built: dict[str, Built], name: str) -> None:
    metadata = _metadata(built[name])
    assert metadata["Description-Content-Type"] == "text/markdown"
    text = str(metadata.get_payload())
    links = [part.partition(")")[0] for part in text.split("](")[1:]]
    assert links
    assert not [link for link in links if not link.startswith(("https://", "#"))]
    assert "$HFPR" not in text


def test_a_ray_cluster_is_found_by_its_entry_point(built: dict[str, Built]) -> None:
    with zipfile.ZipFile(built["demur-ray"].wheel) as file:
        (points,) = (one for one in file.namelist() if one.endswith("entry_points.txt"))
        assert "ray = demur_ray.command:cluster" in file.read(points).decode()


# --- Every supported Python -----------------------------------------------------------------------

SMOKE = """
import json
from importlib.metadata import version
from langchain_core.language_models import FakeListChatModel
import demur, demur_ray, demur_research, langchain_demur
import llama_index.evaluation.demur as llama_index_demur

model = FakeListChatModel(responses=["1. Contradiction"])
checker = demur.RefChecker(model, claims="sentences")
evaluation = checker.invoke({
    "answer": "The Louvre opened as a museum in 1851.",
    "contexts": ["The Louvre opened as a museum in 1793."],
})
ours = (demur, demur_ray, demur_research, langchain_demur, llama_index_demur)
print(json.dumps({
    "passed": evaluation.passed,
    "files": [one.__file__ for one in ours],
    "versions": sorted({version(name) for name in %r}),
}))
"""


@pytest.fixture(params=VERSIONS)
def python(request: pytest.FixtureRequest, everything: Callable[[str], Path]) -> Path:
    """Return the interpreter of an environment with all distributions; the oldest has sdists."""
    return everything(request.param)


def test_all_distributions_install_and_judge(
    python: Path, built: dict[str, Built], tmp_path: Path
) -> None:
    said = json.loads(run(tmp_path, python, "-c", SMOKE % NAMES).splitlines()[-1])
    assert said["passed"] is False
    assert said["versions"] == [_metadata(built["demur"])["Version"]]
    for file in said["files"]:
        assert Path(file).is_relative_to(python.parents[1])


def test_the_commands_run(python: Path, tmp_path: Path) -> None:
    command = f"{python.parent / 'demur'} check --model openai:judge --json"
    with openai_server(application("no answer")) as server:
        at = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "key", "NO_PROXY": "*"}
        code = "import subprocess, sys; print(subprocess.run(sys.argv[1:]).returncode)"
        for answer, status in ((RIGHT, "0"), (WRONG, "1")):
            asked = [*command.split(), "--answer", answer, "--reference", FACTS[0]]
            *_, said = run(tmp_path, python, "-c", code, *asked, **at).split()
            assert said == status
    assert "fewl-v1-table-1" in run(tmp_path, python.parent / "demur-bench", "tables")
