"""A scripted daemon: it gives the answers in turn, the last one again and again, and notes what it was asked."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from recurgent import Client

DROP = object()  # an answer: the connection ends without a reply
REPLY: dict[str, Any] = {"call_id": "call_1", "session_id": "sess_1", "trace_id": "t", "role": "calculator", "method": "add",
         "outcome": {"status": "ok", "ok": True, "value": 5, "tool_role": "calculator", "method_name": "add"},
         "program": {"source": "generated", "artifact_hit": False, "selection": {}}, "attempts": 1, "duration_ms": 1.5,
         "usage": {"model_requests": 1, "prompt_tokens": 1, "completion_tokens": 1}}
SESSION: dict[str, Any] = {"id": "sess_1", "role": "calculator"}


def answer(status: int, body: Any = None, **headers: str) -> tuple[int, Any, dict[str, str]]:
    return status, body, {name.replace("_", "-"): value for name, value in headers.items()}


def refusal(status: int, code: str, **headers: str) -> tuple[int, Any, dict[str, str]]:
    return answer(status, {"status": status, "code": code, "title": "No", "detail": "why", "hint": "what to do"}, **headers)


def stream(text: str) -> tuple[int, Any, dict[str, str]]:
    return answer(200, text, Content_Type="text/event-stream")


class Asked:
    def __init__(self, handler: BaseHTTPRequestHandler) -> None:
        self.line = f"{handler.command} {handler.path}"
        self.headers = handler.headers
        self.data = _body(handler)
        self.body = json.loads(self.data) if self.data and handler.headers["Content-Type"] == "application/json" else None
        self.port = handler.client_address[1]  # of the connection


def _body(handler: BaseHTTPRequestHandler) -> bytes:
    if handler.headers["Transfer-Encoding"] != "chunked":
        return handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
    data = b""
    while size := int(handler.rfile.readline(), 16):
        data += handler.rfile.read(size)
        handler.rfile.readline()
    handler.rfile.readline()
    return data


class Daemon:
    """With `kept` it leaves connections open."""

    def __init__(self, *answers: Any, kept: bool = False) -> None:
        self.asked: list[Asked] = []
        self.pauses: list[float] = []
        lock, left = threading.Lock(), list(answers)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1" if kept else "HTTP/1.0"

            def handle_one(handler) -> None:
                with lock:
                    self.asked.append(Asked(handler))
                    given = left.pop(0) if len(left) > 1 else left[0]
                if given is DROP:
                    handler.close_connection = True
                    return
                status, body, headers = given
                text = body if isinstance(body, (str, bytes)) else "" if body is None else json.dumps(body)
                data = text.encode() if isinstance(text, str) else text
                if kept and status != 204:
                    headers = {"Content-Length": str(len(data)), **headers}
                handler.send_response(status)
                for name, value in headers.items():
                    handler.send_header(name, value)
                handler.end_headers()
                handler.wfile.write(data)

            do_GET = do_POST = do_PATCH = do_DELETE = handle_one

            def log_message(handler, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def client(self, **options: Any) -> Client:
        """A client that notes its pauses instead of sleeping."""
        client = Client(f"http://127.0.0.1:{self.server.server_port}", options.pop("token", ""), **options)
        client.transport.sleep = self.pauses.append
        return client

    def lines(self) -> list[str]:
        return [asked.line for asked in self.asked]

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
