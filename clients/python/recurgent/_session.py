from __future__ import annotations

import uuid
from types import TracebackType
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Sequence, cast

from ._events import Event
from ._http import Request, segment
from ._values import HistoryRecord, Reply, reply_of

if TYPE_CHECKING:
    from ._client import Client


class Session:
    """A conversation: a default role, a context and a history. Its calls run in order. In a `with` statement it is deleted at the end."""

    def __init__(self, client: Client, id: str, default_role: str) -> None:
        self.client = client
        self.id = id
        self.default_role = default_role
        self._path = f"/v1/sessions/{segment(id)}"

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.delete()

    def role(self, name: str | None = None) -> Role:
        """A role whose methods are called in this session; the session's own where no name is given."""
        return Role(self, name or self.default_role)

    def call(self, method: str, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, *,
             role: str | None = None, timeout: float | None = None, **more: Any) -> Reply:
        """Calls a method and returns the reply, of whatever outcome. `timeout` is in seconds; `more` is contract and history."""
        return self.client.call(self._path + "/calls", _body(method, args, kwargs, role, timeout, more), timeout)

    def stream(self, method: str, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, *,
               role: str | None = None, timeout: float | None = None, **more: Any) -> Stream:
        """Starts a call and returns its events. A call that ends at once has none but its end."""
        body = _body(method, args, kwargs, role, timeout, more)
        return Stream(self.client, self._path + "/calls", body, timeout)

    def responds(self, method: str) -> str | None:
        """How a method would answer without the model: setter, context or artifact; None where it would not."""
        return cast("str | None", self.client.transport.json(Request("GET", f"{self._path}/methods/{segment(method)}"))["via"])

    def context(self) -> dict[str, Any]:
        """What the session's programs share."""
        return cast("dict[str, Any]", self.client.transport.json(Request("GET", self._path + "/context")))

    def update_context(self, patch: Mapping[str, Any]) -> dict[str, Any]:
        """Merges the patch into the context (RFC 7396: None removes a key) and returns the whole."""
        return cast("dict[str, Any]", self.client.transport.json(Request("PATCH", self._path + "/context", patch)))

    def history(self, **filters: Any) -> Iterator[HistoryRecord]:
        """The session's calls, oldest first. Filters are method, role, status, since, until and order."""
        return cast("Iterator[HistoryRecord]", self.client.pages(self._path + "/history", "data", **filters))

    def delete(self) -> None:
        """Erases the session, its arguments and its values."""
        self.client.transport.send(Request("DELETE", self._path, repeatable=False))


def _body(method: str, args: Sequence[Any], kwargs: Mapping[str, Any] | None, role: str | None,
          timeout: float | None, more: Mapping[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {"method": method, "args": list(args), "kwargs": dict(kwargs or {}), **more}
    if role is not None:
        body["role"] = role
    if timeout is not None:
        body["timeout_ms"] = max(1, int(timeout * 1000))
    return body


class Stream:
    """The events of a call: iterate over them, then ask for the reply. In a `with` statement a call that has not ended is canceled at the end."""

    def __init__(self, client: Client, path: str, body: Mapping[str, Any], timeout: float | None) -> None:
        self._client, self._path, self._body, self._timeout = client, path, body, timeout
        self._key = str(uuid.uuid4())
        self._reply: Reply | None = None
        headers = {"Idempotency-Key": self._key, "Prefer": "respond-async"}
        response = client.transport.send(Request("POST", path, body, headers))
        started = response.json()
        self.call_id: str = started["call_id"]
        if response.status == 200:
            self._reply = reply_of(started, response.headers.get("Idempotent-Replayed") == "true")

    def __iter__(self) -> Iterator[Event]:
        """The events, from the first one to call.finished."""
        for event in self._client.follow(f"/v1/calls/{segment(self.call_id)}/events"):
            yield event
            if event.type == "call.finished":
                return

    def reply(self) -> Reply:
        """Waits for the end of the call and returns what Session.call would have returned."""
        if self._reply is None:
            self._reply = self._client.await_call(self._path, self._body, self._key, self._timeout)
        return self._reply

    def cancel(self) -> None:
        self._client.cancel(self.call_id)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._reply is None:
            self.cancel()


class Role:
    """A role. Its attributes are its methods, and assigning to one writes the context:

        counter.increment(2)
        counter.value = 7
        role["to celsius"](100)   # a name that is not an identifier

    It has no public attributes of its own, so that every name is a method.
    """

    __slots__ = ("_session", "_name")
    _session: Session
    _name: str

    def __init__(self, session: Session, name: str) -> None:
        object.__setattr__(self, "_session", session)
        object.__setattr__(self, "_name", name)

    def __getattr__(self, method: str) -> Method:
        if method.startswith("_"):  # what Python itself looks for
            raise AttributeError(method)
        return Method(self._session, self._name, method)

    def __getitem__(self, method: str) -> Method:
        return Method(self._session, self._name, method)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            raise AttributeError(name)
        Method(self._session, self._name, name + "=")(value)

    def __repr__(self) -> str:
        return f"<role {self._name} in {self._session.id}>"


class Method:
    """A method of a role. Calling it returns the value, or raises CallFailed."""

    __slots__ = ("_session", "_role", "_name")

    def __init__(self, session: Session, role: str, name: str) -> None:
        self._session, self._role, self._name = session, role, name

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.reply(*args, **kwargs).value

    def reply(self, /, *args: Any, **kwargs: Any) -> Reply:
        """Calls the method and returns the whole reply, of whatever outcome."""
        return self._session.call(self._name, args, kwargs, role=self._role)

    def stream(self, /, *args: Any, **kwargs: Any) -> Stream:
        """Starts a call and returns its events."""
        return self._session.stream(self._name, args, kwargs, role=self._role)

    def __repr__(self) -> str:
        return f"<method {self._role}.{self._name}>"
