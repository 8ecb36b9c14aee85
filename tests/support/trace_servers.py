"""Answer as LangSmith's and Langfuse's services do, so that their own clients talk over HTTP.

The servers parse what the clients send, and refuse what does not follow the protocol.
"""

from __future__ import annotations

import base64
import gzip
import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.parser import BytesParser
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import zstandard
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces

from demur import Evaluation, Sample
from demur.observe import Record, TraceLink
from support import records
from support.serving import Handler, served

KEY = "hush-hush-key"
PROJECT = "0d3c4a5e-38d9-4b60-8c53-9f3d7a2f4c11"
TENANT = "5f1f5b0e-6d52-4a7e-9c9e-6f2f6f0f4a22"

SECRET = "sk-very-secret"
"""A value that a test puts into the environment, under a name that says that it is secret."""

Reply = tuple[int, Any]
S = TypeVar("S", bound="Service")


@dataclass
class Service:
    """Hold what a running service has taken, and how it is to fail."""

    url: str = ""
    asked: list[str] = field(default_factory=list)
    """The method and the path of every request."""
    bodies: list[bytes] = field(default_factory=list)
    """The bodies of all requests, decompressed."""
    fail: dict[str, int] = field(default_factory=dict)
    """How many requests to a path are still to be answered with the status 500."""

    def reply(self, method: str, path: str, query: dict[str, str], body: bytes, kind: str) -> Reply:
        raise NotImplementedError

    def allowed(self, headers: Any) -> bool:
        raise NotImplementedError

    def count(self, request: str) -> int:
        return self.asked.count(request)

    def knows_no_text(self) -> bool:
        """Return whether it was sent no key, no secret, and no text of `telling` or its sample."""
        sent = b"".join(self.bodies).decode()
        return not any(text in sent for text in (SECRET, "Mary", "Danube", KEY))


def telling(sample: Sample) -> Evaluation:
    """Judge with an explanation that quotes a secret."""
    return records.refuted("judge", explanation=f"{SECRET} is no answer")


def refuting(sample: Sample) -> Evaluation:
    """Judge an answer as wrong."""
    return records.refuted("judge")


def link(record: Record) -> TraceLink:
    """Return the only link of a record."""
    (one,) = record.traces
    return one


@dataclass
class LangSmith(Service):
    """Take runs and feedback as LangSmith does."""

    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The runs that were posted, by id."""
    feedback: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The feedback, by id."""
    projects: dict[str, str] = field(default_factory=dict)
    """The ids of projects by name. A project begins with its first run."""
    replaces: bool = True
    """Whether feedback with a known id replaces the earlier one; else it is a conflict."""
    slow: bool = False
    """Whether the service needs until the second request to store a run."""
    version: str = "0.13.3"
    compressed: bool = True
    """Whether runs are to be sent in one compressed stream."""

    def allowed(self, headers: Any) -> bool:
        return bool(headers.get("x-api-key") == KEY)

    def reply(self, method: str, path: str, query: dict[str, str], body: bytes, kind: str) -> Reply:
        what = method, path
        if what == ("GET", "/info"):
            sizes = {"size_limit": 100, "size_limit_bytes": 20_000_000}
            scaling = {"scale_up_nthreads_limit": 16, "scale_up_qsize_trigger": 1000}
            return 200, {
                "version": self.version,
                "batch_ingest_config": {"use_multipart_endpoint": True, **sizes, **scaling},
                "instance_flags": {"zstd_compression_enabled": self.compressed},
            }
        if what == ("POST", "/runs/multipart"):
            for name, part in _parts(kind, body):
                event, run, *rest = name.split(".")
                if event == "post" and not rest:
                    self.runs[run] = sent = json.loads(part)
                    self.projects.setdefault(sent["session_name"], PROJECT)
            return 202, {}
        if what == ("GET", "/sessions"):
            project = self.projects.get(query["name"])
            told = {"id": project, "name": query["name"], "tenant_id": TENANT}
            times = {"start_time": "2026-11-20T10:00:00", "reference_dataset_id": None}
            return 200, [told | times] if project else []
        if what == ("POST", "/feedback"):
            one = json.loads(body)
            assert one["session_id"] == PROJECT
            assert len(str(one.get("score", 0)).partition(".")[2]) <= 4
            if one["run_id"] not in self.runs or self.slow:
                self.slow = False
                return 404, {"detail": "Run not found"}
            if one["id"] in self.feedback and not self.replaces:
                return 409, {"detail": "Feedback exists"}
            self.feedback[one["id"]] = one
            return 200, one
        if method == "PATCH" and path.startswith("/feedback/"):
            self.feedback[path.rpartition("/")[2]] |= json.loads(body)
            return 200, {}
        return 404, {"detail": f"unexpected {method} {path}"}

    @property
    def by_key(self) -> dict[str, dict[str, Any]]:
        """Return the feedback by key; there must be one for each."""
        found = {one["key"]: one for one in self.feedback.values()}
        assert len(found) == len(self.feedback)
        return found


@dataclass
class Langfuse(Service):
    """Take spans and scores as Langfuse does."""

    public: str = field(default_factory=lambda: f"pk-lf-{uuid.uuid4()}")
    """The public key of the project. A process has one client for each key."""
    spans: list[Any] = field(default_factory=list)
    scores: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    """The scores by id and timestamp, which name a score together."""
    reject: int = 0
    """How many scores of each batch are rejected."""

    def allowed(self, headers: Any) -> bool:
        login = base64.b64encode(f"{self.public}:{KEY}".encode()).decode()
        return bool(headers.get("Authorization") == f"Basic {login}")

    def reply(self, method: str, path: str, query: dict[str, str], body: bytes, kind: str) -> Reply:
        what = method, path
        if what == ("POST", "/api/public/otel/v1/traces"):
            assert kind == "application/x-protobuf"
            request = traces.ExportTraceServiceRequest.FromString(body)
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    self.spans += scope.spans
            return 200, traces.ExportTraceServiceResponse().SerializeToString()
        if what == ("GET", "/api/public/projects"):
            organization = {"id": "o", "name": "our organization"}
            one = {"id": "our-project", "name": "ours", "organization": organization}
            return 200, {"data": [one | {"metadata": {}}]}
        if what == ("POST", "/api/public/scores"):
            batch = json.loads(body)
            for one in batch[: len(batch) - self.reject]:
                assert isinstance(one["value"], str) == (one["dataType"] == "CATEGORICAL")
                self.scores[one["id"], one["timestamp"]] = one
            if not self.reject:
                return 202, {"message": "Accepted"}
            errors = [{"message": "no"}] * self.reject
            accepted = len(batch) - self.reject
            return 207, {"accepted": accepted, "rejected": self.reject, "errors": errors}
        return 404, {"detail": f"unexpected {method} {path}"}

    def span(self, name: str) -> tuple[str, str]:
        """Return the trace id and the span id of the only span with this name."""
        (found,) = (span for span in self.spans if span.name == name)
        return found.trace_id.hex(), found.span_id.hex()

    @property
    def by_name(self) -> dict[str, dict[str, Any]]:
        """Return the scores by name; there must be one for each."""
        found = {one["name"]: one for one in self.scores.values()}
        assert len(found) == len(self.scores)
        return found


def _parts(kind: str, body: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each part of a form."""
    assert kind.startswith("multipart/form-data")
    message = BytesParser().parsebytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
    for part in message.get_payload():
        assert not isinstance(part, str)
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        assert isinstance(name, str)
        assert isinstance(content, bytes)
        yield name, content


def _plain(encoding: str | None, body: bytes) -> bytes:
    if encoding == "zstd":
        return zstandard.ZstdDecompressor().decompressobj().decompress(body)
    return gzip.decompress(body) if encoding == "gzip" else body


@contextmanager
def serving(service: S) -> Iterator[S]:
    """Serve on a free port of the loopback for the length of the block."""
    busy = threading.Lock()

    class Serving(Handler):
        def respond(self) -> None:
            body = self._body()
            url = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            with busy:
                service.asked.append(f"{self.command} {url.path}")
                plain = _plain(self.headers.get("Content-Encoding"), body)
                service.bodies.append(plain)
                if service.fail.get(url.path, 0):
                    service.fail[url.path] -= 1
                    status, said = 500, {"detail": "down"}
                elif not service.allowed(self.headers):
                    status, said = 401, {"detail": "who are you?"}
                else:
                    kind = self.headers.get("Content-Type", "")
                    try:
                        status, said = service.reply(self.command, url.path, query, plain, kind)
                    except Exception as error:  # the client has broken the protocol
                        status, said = 422, {"detail": repr(error)}
            if isinstance(said, bytes):
                self.answer(said, "application/x-protobuf", status)
            else:
                self.answer(json.dumps(said).encode(), "application/json", status)

        def _body(self) -> bytes:
            if "chunked" not in self.headers.get("Transfer-Encoding", ""):
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

    with served(Serving) as service.url:
        yield service
