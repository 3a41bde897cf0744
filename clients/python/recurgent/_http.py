from __future__ import annotations

import http.client
import json
import ssl
import time
import urllib.parse
from dataclasses import dataclass
from typing import Any, Callable, Mapping

from ._errors import Problem, RecurgentError, Unreachable

FIRST_PAUSE = 0.1  # seconds before the first retry; each further one waits twice as long
LONGEST_PAUSE = 10.0
REFUSED = (429, 503)  # statuses of a request that had no effect and may be accepted later
PASSING = (*REFUSED, 502, 504)  # statuses after which one that may be repeated may be accepted later
CONNECT_TIMEOUT = 5.0


@dataclass
class Request:
    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str] | None = None
    repeatable: bool = True  # sending it twice does what sending it once does
    timeout: float | None = None  # seconds to wait for the reply; the transport's where None


@dataclass
class Response:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise RecurgentError(f"the reply is not what a recurgentd answers: {error}") from error


class Transport:
    """Sends requests, each over a connection of its own, and repeats those that may be repeated. It follows no redirect, which would take the token elsewhere."""

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

    def json(self, request: Request) -> Any:
        return self.send(request).json()

    def send(self, request: Request) -> Response:
        """Returns the response; a status of 300 or more is a Problem. A refusal that passes is repeated, and a lost reply where the request is repeatable."""
        pause = FIRST_PAUSE
        for left in range(self.retries, -1, -1):
            try:
                return self._once(request)
            except Unreachable:
                if left == 0 or not request.repeatable:
                    raise
                wait = pause
            except Problem as problem:
                if left == 0 or problem.status not in (PASSING if request.repeatable else REFUSED):
                    raise
                wait = max(pause, problem.retry_after or 0)
            self.sleep(min(wait, LONGEST_PAUSE))
            pause *= 2
        raise AssertionError("the last try returns or raises")

    def _once(self, request: Request) -> Response:
        connection, response = self.open(request)
        try:
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise self.unreachable(error) from error
        finally:
            connection.close()
        if response.status >= 300:
            raise _problem(response, body)
        return Response(response.status, response.headers, body)

    def open(self, request: Request) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Sends the request once and returns the connection, which the caller closes, and the response, whose body is not read yet."""
        headers = {"Accept": "application/json", **(request.headers or {})}
        if self._token:
            headers["Authorization"] = "Bearer " + self._token
        body = None
        if request.body is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps(request.body, allow_nan=False).encode()
        connection = self._connection()
        try:
            connection.connect()
            connection.sock.settimeout(self.timeout if request.timeout is None else request.timeout)
            connection.request(request.method, self._parts.path.rstrip("/") + request.path, body, headers)
            return connection, connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise self.unreachable(error) from error

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=CONNECT_TIMEOUT, context=ssl.create_default_context())
        return http.client.HTTPConnection(host, port, timeout=CONNECT_TIMEOUT)

    def unreachable(self, error: Exception) -> Unreachable:
        return Unreachable(f"no reply from {self.url}: {error or type(error).__name__}; is recurgentd serve running?")


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
