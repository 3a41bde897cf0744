from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

from recurgent import AsyncClient, CallFailed

from .fake import REPLY, SESSION, Daemon, answer, stream
from .test_client import CALLS, WithDaemon


class Async(WithDaemon):
    def client(self, *answers: Any) -> tuple[AsyncClient, Daemon]:
        daemon = self.daemon(*answers)
        client = AsyncClient(f"http://127.0.0.1:{daemon.server.server_port}", "")
        self.addCleanup(client.close)
        return client, daemon

    def test_calls(self) -> None:
        async def main() -> None:
            async with await client.session("counter") as session:
                counter = session.role()
                self.assertEqual(await asyncio.gather(counter.increment(1), counter.increment(2)), [5, 5])
                await counter["value="](7)
                self.assertEqual((await counter.increment.reply(1)).source, "generated")
            with self.assertRaises(CallFailed):
                await (await client.role("shop")).sell()

        failed = {**REPLY, "outcome": {"status": "error", "ok": False, "error_type": "x", "error_message": "y", "retriable": False, "authored": True}}
        client, daemon = self.client(answer(201, SESSION), *4 * [answer(200, REPLY)], answer(204), answer(201, SESSION), answer(200, failed))
        asyncio.run(main())
        self.assertEqual(daemon.lines(), ["POST /v1/sessions"] + 4 * [CALLS] + ["DELETE /v1/sessions/sess_1", "POST /v1/sessions", CALLS])

    def test_streams(self) -> None:
        async def main() -> list[str]:
            async with await (await client.role("counter")).increment.stream(1) as running:
                types = [event.type async for event in running]
                self.assertEqual((await running.reply()).value, 5)
            return types

        client, daemon = self.client(answer(201, SESSION), answer(202, {"call_id": "call_1"}),
                                     stream("id: 1\nevent: call.running\ndata: {}\n\nid: 2\nevent: call.finished\ndata: {}\n\n"), answer(200, REPLY))
        self.assertEqual(asyncio.run(main()), ["call.running", "call.finished"])
        self.assertEqual(daemon.lines()[1:], [CALLS, "GET /v1/calls/call_1/events", CALLS])

    def test_a_stream_that_is_left_is_canceled(self) -> None:
        async def main() -> None:
            async with await (await client.session("counter")).stream("increment"):
                pass

        client, daemon = self.client(answer(201, SESSION), answer(202, {"call_id": "call_1"}), answer(204))
        asyncio.run(main())
        self.assertEqual(daemon.lines()[2:], ["POST /v1/calls/call_1/cancel"])

    def test_lists_files_and_questions(self) -> None:
        async def main() -> None:
            self.assertEqual([tool["role"] async for tool in client.tools()], ["a", "b"])
            self.assertEqual((await client.upload(b"x", name="n")).reference, {"$file": "file_1"})
            self.assertEqual(await client.download("file_1"), b"x")
            self.assertEqual((await client.why("call_1"))["summary"], "s")
            self.assertEqual((await client.predict("colour", {"of": "sky"})).outputs, {"is": "blue"})

        client, daemon = self.client(
            answer(200, {"data": [{"role": "a"}], "next_cursor": "a"}), answer(200, {"data": [{"role": "b"}], "next_cursor": None}),
            answer(201, {"id": "file_1", "name": "n", "media_type": "", "bytes": 1, "sha256": ""}), answer(200, b"x"), answer(200, {"summary": "s"}),
            answer(200, {"outputs": {"is": "blue"}, "usage": REPLY["usage"], "attempts": 1, "call_id": "call_1"}))
        asyncio.run(main())
        self.assertEqual(len(daemon.asked), 6)

    def test_a_task_that_is_canceled_ends_its_stream(self) -> None:
        """The daemon sends one event and then nothing: it sees the connection end."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        ended = threading.Event()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nid: 1\nevent: call.finished\ndata: 1\n\n")
                while connection.recv(1):
                    pass
            ended.set()

        server = threading.Thread(target=serve, daemon=True)
        server.start()

        async def main() -> None:
            first = asyncio.Event()

            async def follow() -> None:
                async for _ in client.events():
                    first.set()

            task = asyncio.create_task(follow())
            await first.wait()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        client = AsyncClient(f"http://127.0.0.1:{listener.getsockname()[1]}", "")
        self.addCleanup(client.close)
        asyncio.run(main())
        self.assertTrue(ended.wait(60))  # machines are slow; nothing is measured with it
