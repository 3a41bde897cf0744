from __future__ import annotations

import http.client
import os
import socket
import time
import uuid
from types import TracebackType
from typing import IO, Any, Iterator, Mapping, Sequence, cast

from ._errors import Problem, RecurgentError, Unreachable
from ._events import Event, read
from ._http import FIRST_PAUSE, LONGEST_PAUSE, PASSING, Request, Transport, problem, query, segment
from ._session import Role, Session
from ._values import File, Prediction, Reply, Tool, Verdict, file_id, file_of, media_type_of, reply_of

MARGIN = 30.0  # seconds that a reply may take longer than its call
SILENCE = 45.0  # seconds: three pings missed, the connection is taken for dead
FIRST_LOOK = 0.02  # seconds until a call that runs is asked for again
LONGEST_LOOK = 1.0
LONGEST_WAIT = 600  # seconds that the daemon waits for a call at most
UNSET: Any = object()
PIECE = 1 << 16  # bytes of a download that are read at once


class Stop:
    """Ends an iteration over events from another thread."""

    def __init__(self) -> None:
        self.ended = False
        self._socket: socket.socket | None = None

    def watch(self, sock: socket.socket) -> None:
        """Says over which connection the events come."""
        self._socket = sock
        if self.ended:
            self.end()

    def end(self) -> None:
        """Has the iteration end, also while it waits for an event."""
        self.ended = True
        if self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it is closed


class Client:
    """A daemon: its sessions, calls, verdicts and tools.

    `timeout` is how many seconds a call may take. `retries` is how often a request is repeated that had no reply or was refused for the moment; calls carry an idempotency key, so that a repeated one runs once.
    """

    def __init__(self, url: str | None = None, token: str | None = None, *, timeout: float = 600, retries: int = 5) -> None:
        url = url or os.environ.get("RECURGENT_URL") or "http://127.0.0.1:8420"
        token = os.environ.get("RECURGENT_TOKEN", "") if token is None else token
        self.timeout = timeout
        self.transport = Transport(url, token, timeout + MARGIN, retries)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections that are kept. The client can be used again."""
        self.transport.close()

    # Sessions

    def session(self, role: str, *, context: Mapping[str, Any] | None = None, **more: Any) -> Session:
        """Creates a session. `more` is model, contract, debug and metadata."""
        body = {"role": role, "context": context, **more}
        made = self._json("POST", "/v1/sessions", body, repeatable=False)
        return Session(self, made["id"], role)

    def resume(self, session_id: str) -> Session:
        """A session that was created before."""
        found = self._json("GET", f"/v1/sessions/{segment(session_id)}")
        return Session(self, found["id"], found["role"])

    def role(self, name: str) -> Role:
        """A role in a session of its own."""
        return self.session(name).role()

    # Calls

    def call(self, path: str, body: Mapping[str, Any], timeout: float | None = None) -> Reply:
        """Sends a request that makes a call and returns its reply. A lost connection does not end the call: the request is sent again with the same idempotency key until the call has ended."""
        return self.await_call(path, body, str(uuid.uuid4()), timeout)

    def await_call(self, path: str, body: Mapping[str, Any], key: str, timeout: float | None = None) -> Reply:
        """Sends the request with that key until its call has ended. `timeout` bounds the wait, the client's where None."""
        timeout = self.timeout if timeout is None else timeout
        # A call that answers asynchronously goes on when its client's connection breaks; any other only while a model writes for it.
        headers = {"Idempotency-Key": key, "Prefer": f"respond-async, wait={min(int(timeout) + 1, LONGEST_WAIT)}"}
        give_up = time.monotonic() + timeout + MARGIN
        look = FIRST_LOOK
        while True:
            try:
                response = self.transport.send(Request("POST", path, body, headers, timeout=timeout + MARGIN))
                if response.status == 200:
                    return reply_of(response.json(), response.headers.get("Idempotent-Replayed") == "true")
            except Problem as refused:
                if refused.code != "idempotency_key_in_use":
                    raise
            if time.monotonic() > give_up:
                raise Unreachable(f"the call did not end within {timeout} seconds")
            self.transport.sleep(look)
            look = min(2 * look, LONGEST_LOOK)

    def run_function(self, name: str, arguments: Mapping[str, Any] | str, session: Session | None = None, *, strict: bool = False) -> Reply:
        """Runs a function tool with the arguments that a model wrote, in a session given or in one of its own. `strict` says that the model was shown functions(strict=True) or functions("gemini")."""
        body: dict[str, Any] = {"arguments": arguments}
        if strict:
            body["strict"] = True
        if session is not None:
            body["session_id"] = session.id
        return self.call(f"/v1/functions/{segment(name)}", body)

    def cancel(self, call_id: str) -> None:
        """Asks a call to end; one that has ended stays as it is."""
        self.transport.send(Request("POST", f"/v1/calls/{segment(call_id)}/cancel"))

    def call_log(self, call_id: str) -> dict[str, Any]:
        """The log entry of a call, with its outcome while that is kept."""
        return cast("dict[str, Any]", self._json("GET", f"/v1/calls/{segment(call_id)}"))

    def why(self, call_id: str) -> dict[str, Any]:
        """Why a call ended as it did: summary, selection, alternatives, effects, checks, cost, next and more."""
        return cast("dict[str, Any]", self._json("GET", f"/v1/calls/{segment(call_id)}/why"))

    def why_page(self, call_id: str) -> str:
        """The same as a page of plain text for people."""
        return self.transport.send(Request("GET", f"/v1/calls/{segment(call_id)}/why", accept="text/plain")).body.decode("utf-8", "replace")

    # Predictions

    def predict(self, signature: Mapping[str, Any] | str, inputs: Mapping[str, Any], *, session: Session | None = None,
                demos: Sequence[Mapping[str, Any]] | None = None, timeout: float | None = None, **more: Any) -> Prediction:
        """Answers by a signature, declared ({"instructions", "inputs", "outputs"}) or stored (its name). `more` is model, adapter and debug. It is not repeated after a lost reply, since the model was asked."""
        body: dict[str, Any] = {"inputs": inputs, **more}
        if demos is not None:
            body["demos"] = list(demos)
        if session is not None:
            body["session_id"] = session.id
        path = f"/v1/signatures/{segment(signature)}/predict" if isinstance(signature, str) else "/v1/predict"
        if not isinstance(signature, str):
            body["signature"] = signature
        found = self._json("POST", path, body, repeatable=False, timeout=(self.timeout if timeout is None else timeout) + MARGIN)
        return Prediction(found["outputs"], found["usage"], found["attempts"], found["call_id"])

    # Files

    def upload(self, data: bytes | IO[bytes] | os.PathLike[str], *, name: str | None = None, media_type: str | None = None,
               session: Session | None = None) -> File:
        """Uploads bytes, a binary file that is open, or the file at a path (pathlib.Path), whose name it gets, and the media type of that name. It is erased with the session given; else it expires. It is not sent again after a lost reply, which would make a second file."""
        if isinstance(data, str):
            raise TypeError("a text is neither bytes nor a path: write text.encode() or pathlib.Path(text)")
        if isinstance(data, os.PathLike):
            path = os.fspath(data)
            with open(path, "rb") as opened:
                return self.upload(opened, name=os.path.basename(path) if name is None else name,
                                   media_type=media_type or media_type_of(path), session=session)
        headers = {"Content-Type": media_type or "application/octet-stream"}
        path = "/v1/files" + query({"name": name, "session_id": session.id if session is not None else None})
        return file_of(self.transport.json(Request("POST", path, data=data, headers=headers, repeatable=False)))

    def file(self, file: File | Mapping[str, Any] | str) -> File:
        """What is known of a file, by its id or by {"$file": id}, as values of calls have it."""
        return file_of(self._json("GET", f"/v1/files/{segment(file_id(file))}"))

    def files(self) -> Iterator[File]:
        """Your files, newest first, those that programs made for you included."""
        return map(file_of, self.pages("/v1/files", "data"))

    def download(self, file: File | Mapping[str, Any] | str) -> bytes:
        """The whole content of a file."""
        return self.transport.send(Request("GET", f"/v1/files/{segment(file_id(file))}/content", accept="*/*")).body

    def download_to(self, file: File | Mapping[str, Any] | str, target: IO[bytes] | os.PathLike[str]) -> int:
        """Writes the content of a file to a binary file, or to the file at a path, piece by piece, and returns how many bytes it has. What was written stays where the connection breaks off."""
        if isinstance(target, os.PathLike):
            with open(target, "wb") as opened:
                return self.download_to(file, opened)
        sock, response = self.transport.open(Request("GET", f"/v1/files/{segment(file_id(file))}/content", accept="*/*", timeout=SILENCE))
        try:
            if response.status != 200:
                raise problem(response)
            written = 0
            while piece := response.read(PIECE):
                target.write(piece)
                written += len(piece)
            if response.length:  # http.client ends a body that is cut off without a word
                raise self.transport.unreachable(http.client.IncompleteRead(b"", response.length))
            return written
        except http.client.HTTPException as error:
            raise self.transport.unreachable(error) from error
        finally:
            response.close()
            sock.close()

    def delete_file(self, file: File | Mapping[str, Any] | str) -> None:
        """Deletes a file."""
        self.transport.send(Request("DELETE", f"/v1/files/{segment(file_id(file))}", repeatable=False))

    # Verdicts

    def right(self, call_id: str, note: str = "") -> Verdict:
        """Says that a call's answer is right: it becomes an example, which every later program must satisfy."""
        return self._judge(call_id, {"verdict": "right", "note": note})

    def wrong(self, call_id: str, *, expected: Any = UNSET, error_type: str = "", note: str = "", wait: int = 0) -> Verdict:
        """Says that a call's answer is wrong, and what is right: a value (`expected`, None included) or an error. `wait` is how many seconds to wait for the first attempt at a correction."""
        body: dict[str, Any] = {"verdict": "wrong", "note": note}
        if expected is not UNSET:
            body["expected"] = expected
        if error_type:
            body["expected_error_type"] = error_type
        return self._judge(call_id, body, wait)

    def _judge(self, call_id: str, body: Mapping[str, Any], wait: int = 0) -> Verdict:
        headers = {"Prefer": f"wait={wait}"} if wait else None
        return cast(Verdict, self._json("POST", f"/v1/calls/{segment(call_id)}/verdict", body, headers=headers))

    def verdict(self, call_id: str) -> Verdict:
        return cast(Verdict, self._json("GET", f"/v1/calls/{segment(call_id)}/verdict"))

    def drop_verdict(self, call_id: str) -> None:
        """Takes a verdict back, with the example that it made."""
        self.transport.send(Request("DELETE", f"/v1/calls/{segment(call_id)}/verdict", repeatable=False))

    # Tools

    def tools(self) -> Iterator[Tool]:
        """The known roles, by name."""
        return cast("Iterator[Tool]", self.pages("/v1/tools", "data"))

    def methods(self, role: str) -> Iterator[dict[str, Any]]:
        """The methods of a role that have a program, without its code."""
        return self.pages(f"/v1/tools/{segment(role)}/methods", "data")

    def functions(self, format: str = "openai", *, strict: bool = False) -> Iterator[dict[str, Any]]:
        """The methods as tools of model APIs (openai, openai-responses, anthropic, gemini) or of MCP (mcp). `strict` has schemas for models that are held to them (openai and openai-responses)."""
        return self.pages("/v1/tools", "tools", format=format, strict="true" if strict else None)

    # Events

    def events(self, after: str | None = None, stop: Stop | None = None) -> Iterator[Event]:
        """Every call that ends from now on, or after the call of that id, without gaps, until the caller stops."""
        return self.follow("/v1/events", after or "", stop)

    def follow(self, path: str, last: str = "", stop: Stop | None = None) -> Iterator[Event]:
        """The events behind the id `last`. A lost connection is made again, behind the last event that came, until the caller stops; where none succeeds at first, only as often as the client retries."""
        left, pause = self.transport.retries, FIRST_PAUSE
        while True:
            try:
                for event in self._connection(path, last, stop):
                    left, pause = -1, FIRST_PAUSE  # from now on without end
                    if event is not None:
                        last = event.id or last
                        yield event
            except Unreachable:
                if left == 0:
                    raise
            except Problem as refused:
                if left == 0 or refused.status not in PASSING:
                    raise
            if stop is not None and stop.ended:
                return
            left -= 1
            self.transport.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _connection(self, path: str, last: str, stop: Stop | None) -> Iterator[Event | None]:
        """The events of one connection, to its end; None first, when the daemon streams."""
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last else {})}
        sock, response = self.transport.open(Request("GET", path, headers=headers, timeout=SILENCE))
        if stop is not None:
            stop.watch(sock)
        try:
            if response.status != 200 or not response.headers.get("Content-Type", "").startswith("text/event-stream"):
                raise problem(response)
            yield None
            yield from read(response)
        except ValueError as error:
            raise RecurgentError(f"the stream is not what a recurgentd sends: {error}") from error
        except (OSError, http.client.HTTPException) as error:
            raise self.transport.unreachable(error) from error
        finally:
            response.close()
            sock.close()

    # What all of them need

    def pages(self, path: str, key: str, **values: Any) -> Iterator[Any]:
        """The entries of a list, page by page."""
        while True:
            page = self._json("GET", path + query(values))
            yield from page[key]
            if page["next_cursor"] is None:
                return
            values["after"] = page["next_cursor"]

    def _json(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        return self.transport.json(Request(method, path, body, **more))
