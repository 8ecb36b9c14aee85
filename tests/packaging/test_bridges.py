"""Test the sinks for Phoenix and MLflow against their real servers, in environments of their own.

A system has an environment with its server alone. Another one has demur with both clients, as its
extras install them, and the systems' own instrumentation of LangChain.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from support.installed import Built, environment, run

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(600)]

DRIVER = Path(__file__).with_name("bridge_driver.py")
TRACING = ("langchain", "openinference-instrumentation-langchain>=0.1.60", "arize-phoenix-otel")
RUNS = ("chain", "async", "model")
PASSWORD = "s3cret-pass"


def port() -> int:
    """Return a port of this machine that is free now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def got(address: str, **sent: Any) -> str:
    """Return the text at an address that answers with the status 200."""
    body = json.dumps(sent).encode() if sent else None
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200
        return str(answer.read().decode())


@contextmanager
def server(folder: Path, url: str, *command: str | Path, **variables: str) -> Iterator[str]:
    """Serve for the length of the block, and yield the URL once the server answers."""
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [*map(str, command)],
            cwd=folder,
            env={**os.environ, "PYTHONNOUSERSITE": "1", **variables},
            stdout=log,
            stderr=log,
            start_new_session=True,  # the server has processes of its own
        )
    try:
        while True:
            try:
                got(url)
                break
            except OSError:
                if process.poll() is not None:
                    pytest.fail((folder / "server.log").read_text()[-3000:])
                time.sleep(0.1)
        yield url
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def made(folder: Path, *what: str | Path) -> Iterator[Path]:
    """Make an environment for the length of the block, since it is large, and yield its Python."""
    yield environment(folder, *what)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def clients(built: dict[str, Built], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the interpreter of an environment with demur and the light clients."""
    folder = tmp_path_factory.mktemp("clients") / "environment"
    with made(folder, f"{built['demur'].wheel}[phoenix,mlflow]", *TRACING) as python:
        yield python


@pytest.fixture(scope="module")
def phoenix(clients: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Return what the driver tells of Phoenix, whose server goes on until the last test."""
    folder = tmp_path_factory.mktemp("phoenix")
    place = port()
    variables = {
        **{"PHOENIX_WORKING_DIR": str(folder), "PHOENIX_HOST": "127.0.0.1"},
        **{"PHOENIX_PORT": str(place), "PHOENIX_GRPC_PORT": str(port())},
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    url = f"http://127.0.0.1:{place}"
    with made(folder / "environment", "arize-phoenix>=20,<21") as python:
        command = (python.with_name("phoenix"), "serve")
        with server(folder, f"{url}/healthz", *command, **variables):
            yield told("phoenix", folder, clients, url, PHOENIX_COLLECTOR_ENDPOINT=secret(url))


@pytest.fixture(scope="module")
def mlflow(clients: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Return what the driver tells of MLflow, whose server goes on until the last test."""
    folder = tmp_path_factory.mktemp("mlflow")
    place = port()
    options = (
        *("server", "--workers", "1", "--host", "127.0.0.1", "--port", str(place)),
        *("--backend-store-uri", f"sqlite:///{folder}/store.db"),
        *("--default-artifact-root", folder / "artifacts"),
    )
    variables = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    url = f"http://127.0.0.1:{place}"
    with made(folder / "environment", "mlflow>=3.17,<4") as python:
        command = (python.with_name("mlflow"), *options)
        with server(folder, f"{url}/health", *command, **variables):
            yield told("mlflow", folder, clients, url, MLFLOW_TRACKING_URI=secret(url))


def secret(url: str) -> str:
    """Return a URL with a password, which the servers here do not ask for."""
    return url.replace("://", f"://me:{PASSWORD}@")


def told(system: str, folder: Path, python: Path, url: str, **variables: str) -> dict[str, Any]:
    """Run the driver, and return what it prints, with the server's URL."""
    dead = f"http://127.0.0.1:{port()}"
    printed = run(folder, python, DRIVER, system, dead, **variables)
    assert PASSWORD not in printed
    return {**json.loads(printed.splitlines()[-1]), "url": url}


# --- Phoenix --------------------------------------------------------------------------------------


def test_phoenix_has_the_scores_on_the_spans_of_the_runs(phoenix: dict[str, Any]) -> None:
    assert phoenix["counts"] == [True, 3, 0]
    assert phoenix["first"].keys() == set(RUNS)
    for name, found in phoenix["first"].items():
        assert found["span"] == name
        value, label, comment, kind = found["scores"]["half"]
        assert (value, label, kind) == (0.5, "failed", "LLM")
        assert "One claim of two holds." in comment


def test_phoenix_has_no_number_of_what_is_undetermined(phoenix: dict[str, Any]) -> None:
    for found in phoenix["first"].values():
        value, label, comment, kind = found["scores"]["unsure"]
        assert (value, label, kind) == (None, "undetermined", "CODE")
        assert "The judge did not answer." in comment


def test_phoenix_has_a_record_once_that_comes_twice(phoenix: dict[str, Any]) -> None:
    assert phoenix["again"] == phoenix["first"]
    assert {found["number"] for found in phoenix["again"].values()} == {2}


def test_records_go_to_the_fallback_file_while_phoenix_is_away(phoenix: dict[str, Any]) -> None:
    assert phoenix["away"] == [True, 3]
    assert phoenix["fallback"] == sorted(RUNS)


def test_the_address_of_a_record_leads_to_its_span_in_phoenix(phoenix: dict[str, Any]) -> None:
    query = "query($id: String!) { getSpanByOtelId(spanId: $id) { name trace { traceId } } }"
    for name, link in phoenix["links"].items():
        assert link["address"] == f"{phoenix['url']}/redirects/spans/{link['span_id']}"
        page = got(link["address"])
        # The page's script leads on, after it has asked the server as this test does.
        (script,) = re.findall(r'src="(/assets/index-[^"]+\.js)"', page)
        assert "/redirects/spans/:span_otel_id" in got(phoenix["url"] + script)
        asked = got(f"{phoenix['url']}/graphql", query=query, variables={"id": link["span_id"]})
        assert json.loads(asked)["data"]["getSpanByOtelId"] == {
            "name": name,
            "trace": {"traceId": link["trace_id"]},
        }


# --- MLflow ---------------------------------------------------------------------------------------


def test_mlflow_has_the_scores_on_the_traces_of_the_runs(mlflow: dict[str, Any]) -> None:
    assert mlflow["counts"] == [True, 3, 0]
    assert mlflow["first"].keys() == set(RUNS)
    for name, found in mlflow["first"].items():
        assert found["span"] == name
        value, label, comment, kind, error = found["scores"]["half"]
        assert (value, label, kind, error) == (0.5, "failed", "LLM_JUDGE", None)
        assert "One claim of two holds." in comment


def test_mlflow_has_no_number_of_what_is_undetermined(mlflow: dict[str, Any]) -> None:
    for found in mlflow["first"].values():
        value, label, comment, _, error = found["scores"]["unsure"]
        assert (value, label, error) == (None, "undetermined", "The judge did not answer.")
        assert "The judge did not answer." in comment


def test_mlflow_has_a_record_once_that_comes_twice(mlflow: dict[str, Any]) -> None:
    assert mlflow["again"] == mlflow["first"]
    assert {found["number"] for found in mlflow["again"].values()} == {2}


def test_records_go_to_the_fallback_file_while_mlflow_is_away(mlflow: dict[str, Any]) -> None:
    assert mlflow["away"] == [True, 3]
    assert mlflow["fallback"] == sorted(RUNS)


def test_the_address_of_a_record_leads_to_its_trace_in_mlflow(mlflow: dict[str, Any]) -> None:
    for name, link in mlflow["links"].items():
        there = urlsplit(link["address"])
        assert f"{there.scheme}://{there.netloc}" == mlflow["url"]
        place, _, query = there.fragment.partition("?")
        assert place == f"/experiments/{mlflow['first'][name]['experiment']}/traces"
        assert parse_qs(query) == {"selectedEvaluationId": [link["trace_id"]]}
        (script,) = re.findall(r'src="([^"]*static/js/main[^"]+\.js)"', got(link["address"]))
        scripts = got(f"{mlflow['url']}/{script.removeprefix('./').removeprefix('/')}")
        assert "experiments/:experimentId/traces" in scripts
