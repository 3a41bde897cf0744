from __future__ import annotations

import http.client
import json
import os
import select
import socket
import ssl
import threading
import time
import urllib.parse
from dataclasses import dataclass
from typing import IO, Any, Callable, Mapping, cast

from ._errors import Problem, RecurgentError, Unreachable

FIRST_PAUSE = 0.1  # seconds before the first retry; each further one waits twice as long
LONGEST_PAUSE = 10.0
REFUSED = (429, 503)  # statuses of a request that had no effect and may be accepted later
PASSING = (*REFUSED, 502, 504)  # statuses after which one that may be repeated may be accepted later
CONNECT_TIMEOUT = 5.0
KEPT = 16  # idle connections, at most


@dataclass
class Request:
    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str] | None = None
    repeatable: bool = True  # sending it twice does what sending it once does
    timeout: float | None = None  # seconds to wait for the reply; the transport's where None
    data: bytes | IO[bytes] | None = None  # instead of body: bytes that are sent as they are
    accept: str = "application/json"


@dataclass
class Response:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise RecurgentError(f"the reply is not in recurgentd's format: {error}") from error


class Transport:
    """Sends requests over connections that it keeps, and repeats those that may be repeated. It follows no redirect, which would take the token elsewhere. Several threads may use it."""

    def __init__(self, url: str, token: str, timeout: float, retries: int, sleep: Callable[[float], None] = time.sleep) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url} is not the address of a daemon, such as http://127.0.0.1:8420")
        self.url = url.rstrip("/")
        self.timeout = timeout
        self.sleep = sleep
        self._parts = parts
        self._token = token
        self.retries = retries
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []  # guarded by _lock; the newest last
        self._process = os.getpid()  # of _idle; guarded by _lock

    def json(self, request: Request) -> Any:
        return self.send(request).json()

    def send(self, request: Request) -> Response:
        """Returns the response; a status of 300 or more is a Problem. A refusal that passes is repeated, and a lost reply where the request is repeatable."""
        start = _position(request.data)
        pause = FIRST_PAUSE
        for left in range(self.retries, -1, -1):
            try:
                return self._once(request)
            except Unreachable:
                if left == 0 or not request.repeatable:
                    raise
                wait = pause
            except Problem as problem:
                if left == 0 or start is None or problem.status not in (PASSING if request.repeatable else REFUSED):
                    raise
                wait = max(pause, problem.retry_after or 0)
            self.sleep(min(wait, LONGEST_PAUSE))
            pause *= 2
            if start and request.data is not None and not isinstance(request.data, bytes):
                request.data.seek(start - 1)
        raise AssertionError("the last try returns or raises")

    def _once(self, request: Request) -> Response:
        """Sends a request over a kept connection where it may be repeated: the daemon may have closed that in the meantime, and then it is sent again over a new one."""
        kept = self._take() if request.repeatable else None
        if kept is not None:
            try:
                return self._over(kept, request)
            except Unreachable as error:
                if isinstance(error.__cause__, TimeoutError):
                    raise
        return self._over(self._connection(), request)

    def _over(self, connection: http.client.HTTPConnection, request: Request) -> Response:
        """Sends a request over the connection, which is kept or closed then."""
        _, response = self._ask(connection, request)
        try:
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise self.unreachable(error) from error
        if response.will_close:
            connection.close()
        else:
            self._keep(connection)
        if response.status >= 300:
            raise _problem(response, body)
        return Response(response.status, response.headers, body)

    def open(self, request: Request) -> tuple[socket.socket, http.client.HTTPResponse]:
        """Sends the request once over a new connection and returns its socket and the response, whose body is not read yet. The caller closes both."""
        return self._ask(self._connection(), request)

    def _ask(self, connection: http.client.HTTPConnection, request: Request) -> tuple[socket.socket, http.client.HTTPResponse]:
        headers = {"Accept": request.accept, **(request.headers or {})}
        if self._token:
            headers["Authorization"] = "Bearer " + self._token
        body: Any = request.data
        if request.body is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps(request.body, allow_nan=False, default=_plain).encode()
        try:
            if connection.sock is None:
                connection.connect()
            sock = cast(socket.socket, connection.sock)  # which the connection forgets where the reply ends with it
            sock.settimeout(self.timeout if request.timeout is None else request.timeout)
            try:
                connection.request(request.method, self._parts.path.rstrip("/") + request.path, body, headers)
            except (BrokenPipeError, ConnectionResetError):
                if request.data is None:
                    raise
                # A daemon that refuses a large body says so before it has read all of it.
            return sock, connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise self.unreachable(error) from error

    def _take(self) -> http.client.HTTPConnection | None:
        """A kept connection that the daemon has not closed, as far as is known."""
        while True:
            with self._lock:
                if self._process != os.getpid():  # a fork: the connections are the other process's
                    self._idle, self._process = [], os.getpid()
                if not self._idle:
                    return None
                connection = self._idle.pop()
            try:
                if not select.select([connection.sock], [], [], 0)[0]:  # what can be read of an idle connection is its end
                    return connection
            except (OSError, ValueError):
                pass
            connection.close()

    def _keep(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if self._process == os.getpid() and len(self._idle) < KEPT:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Closes the connections that are kept. Later requests make new ones."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=CONNECT_TIMEOUT, context=ssl.create_default_context())
        return http.client.HTTPConnection(host, port, timeout=CONNECT_TIMEOUT)

    def unreachable(self, error: Exception) -> Unreachable:
        return Unreachable(f"no reply from {self.url}: {error or type(error).__name__}; is recurgentd serve running?")


def _position(data: bytes | IO[bytes] | None) -> int | None:
    """One more than where a file begins, 0 for what needs no seeking, None for a stream that cannot be sent twice."""
    if data is None or isinstance(data, bytes):
        return 0
    return data.tell() + 1 if data.seekable() else None


def _plain(value: Any) -> Any:
    """What JSON has in the place of an object with a reference, such as File."""
    reference = getattr(value, "reference", None)
    if isinstance(reference, dict):
        return reference
    raise TypeError(f"{type(value).__name__} is not a value of JSON")


def _problem(response: http.client.HTTPResponse, body: bytes) -> Problem:
    try:
        members = json.loads(body)
    except ValueError:
        members = None
    if not isinstance(members, dict):
        members = {"title": response.reason}
    after = response.headers.get("Retry-After", "")
    return Problem(response.status, members, float(after) if after.isdigit() else None)


def problem(response: http.client.HTTPResponse) -> Problem:
    """Reads the problem of a response that was opened."""
    return _problem(response, response.read(1 << 20))


def segment(name: str) -> str:
    """A role, a method or an id as part of a path."""
    return urllib.parse.quote(name, safe="")


def query(values: Mapping[str, Any]) -> str:
    """Those of the values that are not None, as a query."""
    given = {name: value for name, value in values.items() if value is not None}
    return "?" + urllib.parse.urlencode(given) if given else ""
