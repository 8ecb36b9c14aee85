"""Serve HTTP on a free port of the loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Handler(BaseHTTPRequestHandler):
    """Respond to requests, keep connections open, and log nothing."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else a body waits 40 ms for the head's acknowledgement

    def respond(self) -> None:
        """Respond to a request of any kind; each subclass does it in its way."""
        raise NotImplementedError

    def do_GET(self) -> None:
        """Respond to a GET."""
        self.respond()

    def do_POST(self) -> None:
        """Respond to a POST."""
        self.respond()

    def do_PATCH(self) -> None:
        """Respond to a PATCH."""
        self.respond()

    def answer(self, content: bytes, kind: str, status: int = 200) -> None:
        """Send a whole answer of this content type."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # In some tests a client leaves on purpose.


@contextmanager
def served(handler: type[Handler]) -> Iterator[str]:
    """Serve for the length of the block, and yield the URL."""
    server = _Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
