from __future__ import annotations

import asyncio
import functools
import os
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import IO, Any, AsyncIterator, Callable, Iterator, Mapping, Sequence, TypeVar

from ._client import UNSET, Client, Stop
from ._events import Event
from ._http import segment
from ._session import Session, Stream
from ._values import File, HistoryRecord, Prediction, Reply, Tool, Verdict

T = TypeVar("T")
END: Any = object()


class AsyncClient:
    """A daemon, for programs with asyncio: what Client does, awaited.

    Requests run in threads of its own, at most `at_once` of them, over connections that are kept; further ones wait. A task that is canceled leaves its call running, as a program that ends does. In an `async with` statement it is closed at the end.
    """

    def __init__(self, url: str | None = None, token: str | None = None, *, timeout: float = 600, retries: int = 5, at_once: int = 32) -> None:
        self.client = Client(url, token, timeout=timeout, retries=retries)
        self._threads = ThreadPoolExecutor(at_once, "recurgent")

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections that are kept. Requests that are under way end by themselves; none can be sent any more."""
        self._threads.shutdown(wait=False)
        self.client.close()

    async def run(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Runs a function of the client in one of its threads, such as run(client.client.resume, id)."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, functools.partial(function, *args, **kwargs))

    async def iterate(self, entries: Iterator[T]) -> AsyncIterator[T]:
        """The entries of an iterator, of which each is fetched in a thread."""
        while (entry := await self.run(next, entries, END)) is not END:
            yield entry

    async def session(self, role: str, *, context: Mapping[str, Any] | None = None, **more: Any) -> AsyncSession:
        """Creates a session. `more` is model, contract, debug and metadata."""
        return AsyncSession(self, await self.run(self.client.session, role, context=context, **more))

    async def resume(self, session_id: str) -> AsyncSession:
        """A session that was created before."""
        return AsyncSession(self, await self.run(self.client.resume, session_id))

    async def role(self, name: str) -> AsyncRole:
        """A role in a session of its own."""
        return (await self.session(name)).role()

    async def run_function(self, name: str, arguments: Mapping[str, Any] | str, session: AsyncSession | None = None, *, strict: bool = False) -> Reply:
        """Runs a function tool with the arguments that a model wrote, in a session given or in one of its own."""
        return await self.run(self.client.run_function, name, arguments, _session(session), strict=strict)

    async def cancel(self, call_id: str) -> None:
        """Asks a call to end; one that has ended stays as it is."""
        await self.run(self.client.cancel, call_id)

    async def call_log(self, call_id: str) -> dict[str, Any]:
        """The log entry of a call, with its outcome while that is kept."""
        return await self.run(self.client.call_log, call_id)

    async def why(self, call_id: str) -> dict[str, Any]:
        """Why a call ended as it did."""
        return await self.run(self.client.why, call_id)

    async def why_page(self, call_id: str) -> str:
        """The same as a page of plain text for people."""
        return await self.run(self.client.why_page, call_id)

    async def predict(self, signature: Mapping[str, Any] | str, inputs: Mapping[str, Any], *, session: AsyncSession | None = None, **more: Any) -> Prediction:
        """Answers by a signature, declared or stored. `more` is demos, timeout, model, adapter and debug."""
        return await self.run(self.client.predict, signature, inputs, session=_session(session), **more)

    async def upload(self, data: bytes | IO[bytes] | os.PathLike[str], *, name: str | None = None, media_type: str | None = None,
                     session: AsyncSession | None = None) -> File:
        """Uploads bytes, a binary file that is open, or the file at a path."""
        return await self.run(self.client.upload, data, name=name, media_type=media_type, session=_session(session))

    async def file(self, file: File | Mapping[str, Any] | str) -> File:
        """What is known of a file."""
        return await self.run(self.client.file, file)

    def files(self) -> AsyncIterator[File]:
        """Your files, newest first."""
        return self.iterate(self.client.files())

    async def download(self, file: File | Mapping[str, Any] | str) -> bytes:
        """The whole content of a file."""
        return await self.run(self.client.download, file)

    async def download_to(self, file: File | Mapping[str, Any] | str, target: IO[bytes] | os.PathLike[str]) -> int:
        """Writes the content of a file to a binary file, or to the file at a path, and returns how many bytes it has."""
        return await self.run(self.client.download_to, file, target)

    async def delete_file(self, file: File | Mapping[str, Any] | str) -> None:
        """Deletes a file."""
        await self.run(self.client.delete_file, file)

    async def right(self, call_id: str, note: str = "") -> Verdict:
        """Says that a call's answer is right."""
        return await self.run(self.client.right, call_id, note)

    async def wrong(self, call_id: str, *, expected: Any = UNSET, error_type: str = "", note: str = "", wait: int = 0) -> Verdict:
        """Says that a call's answer is wrong, and what is right."""
        return await self.run(self.client.wrong, call_id, expected=expected, error_type=error_type, note=note, wait=wait)

    async def verdict(self, call_id: str) -> Verdict:
        """What was said of a call."""
        return await self.run(self.client.verdict, call_id)

    async def drop_verdict(self, call_id: str) -> None:
        """Takes a verdict back, with the example that it made."""
        await self.run(self.client.drop_verdict, call_id)

    def tools(self) -> AsyncIterator[Tool]:
        """The known roles, by name."""
        return self.iterate(self.client.tools())

    def methods(self, role: str) -> AsyncIterator[dict[str, Any]]:
        """The methods of a role that have a program, without its code."""
        return self.iterate(self.client.methods(role))

    def functions(self, format: str = "openai", *, strict: bool = False) -> AsyncIterator[dict[str, Any]]:
        """The methods as tools of model APIs or of MCP."""
        return self.iterate(self.client.functions(format, strict=strict))

    def events(self, after: str | None = None) -> AsyncIterator[Event]:
        """Every call that ends from now on, or after the call of that id, until the caller stops."""
        stop = Stop()
        return self.until(self.client.events(after, stop), stop)

    async def until(self, events: Iterator[Event], stop: Stop) -> AsyncIterator[Event]:
        """The events, whose connection ends when the caller stops or is canceled."""
        try:
            async for event in self.iterate(events):
                yield event
        finally:
            stop.end()


def _session(session: AsyncSession | None) -> Session | None:
    return session.session if session is not None else None


class AsyncSession:
    """A session: what Session does, awaited. In an `async with` statement it is deleted at the end."""

    def __init__(self, client: AsyncClient, session: Session) -> None:
        self.client = client
        self.session = session
        self.id = session.id

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.delete()

    def role(self, name: str | None = None) -> AsyncRole:
        """A role whose methods are called in this session; the session's own where no name is given."""
        return AsyncRole(self, name or self.session.default_role)

    async def call(self, method: str, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, *,
                   role: str | None = None, timeout: float | None = None, **more: Any) -> Reply:
        """Calls a method and returns the reply, of whatever outcome."""
        return await self.client.run(self.session.call, method, args, kwargs, role=role, timeout=timeout, **more)

    async def stream(self, method: str, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, *,
                     role: str | None = None, timeout: float | None = None, **more: Any) -> AsyncStream:
        """Starts a call whose events can be read."""
        return AsyncStream(self.client, await self.client.run(self.session.stream, method, args, kwargs, role=role, timeout=timeout, **more))

    async def responds(self, method: str) -> str | None:
        """How a method would answer without the model; None where it would not."""
        return await self.client.run(self.session.responds, method)

    async def context(self) -> dict[str, Any]:
        """What the session's programs share."""
        return await self.client.run(self.session.context)

    async def update_context(self, patch: Mapping[str, Any]) -> dict[str, Any]:
        """Merges the patch into the context (RFC 7396) and returns the whole."""
        return await self.client.run(self.session.update_context, patch)

    def history(self, **filters: Any) -> AsyncIterator[HistoryRecord]:
        """The session's calls, oldest first."""
        return self.client.iterate(self.session.history(**filters))

    async def delete(self) -> None:
        """Erases the session, its arguments and its values."""
        await self.client.run(self.session.delete)


class AsyncStream:
    """The events of a call: iterate over them, then await the reply. In an `async with` statement a call that has not ended is canceled at the end."""

    def __init__(self, client: AsyncClient, stream: Stream) -> None:
        self._client, self._stream = client, stream
        self._ended = False
        self.call_id = stream.call_id

    async def __aiter__(self) -> AsyncIterator[Event]:
        stop = Stop()
        events = self._client.client.follow(f"/v1/calls/{segment(self.call_id)}/events", stop=stop)
        async for event in self._client.until(events, stop):
            yield event
            if event.type == "call.finished":
                return

    async def reply(self) -> Reply:
        """Waits for the end of the call and returns what AsyncSession.call would have returned."""
        reply = await self._client.run(self._stream.reply)
        self._ended = True
        return reply

    async def cancel(self) -> None:
        """Asks the call to end."""
        await self._client.run(self._stream.cancel)

    async def __aenter__(self) -> AsyncStream:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if not self._ended:
            await self.cancel()


class AsyncRole:
    """A role. Its attributes are its methods:

        await counter.increment(2)
        await counter["value="](7)   # writes the context
    """

    __slots__ = ("_session", "_name")

    def __init__(self, session: AsyncSession, name: str) -> None:
        self._session, self._name = session, name

    def __getattr__(self, method: str) -> AsyncMethod:
        if method.startswith("_"):  # what Python itself looks for
            raise AttributeError(method)
        return AsyncMethod(self._session, self._name, method)

    def __getitem__(self, method: str) -> AsyncMethod:
        return AsyncMethod(self._session, self._name, method)

    def __repr__(self) -> str:
        return f"<role {self._name} in {self._session.id}>"


class AsyncMethod:
    """A method of a role. Awaiting a call of it returns the value, or raises CallFailed."""

    __slots__ = ("_session", "_role", "_name")

    def __init__(self, session: AsyncSession, role: str, name: str) -> None:
        self._session, self._role, self._name = session, role, name

    async def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return (await self.reply(*args, **kwargs)).value

    async def reply(self, /, *args: Any, **kwargs: Any) -> Reply:
        """Calls the method and returns the whole reply, of whatever outcome."""
        return await self._session.call(self._name, args, kwargs, role=self._role)

    async def stream(self, /, *args: Any, **kwargs: Any) -> AsyncStream:
        """Starts a call whose events can be read."""
        return await self._session.stream(self._name, args, kwargs, role=self._role)

    def __repr__(self) -> str:
        return f"<method {self._role}.{self._name}>"
