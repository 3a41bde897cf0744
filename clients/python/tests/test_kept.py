from __future__ import annotations

import threading

from recurgent import Problem, Unreachable

from .fake import DROP, REPLY, SESSION, answer, refusal
from .test_client import CALLS, WithDaemon


class KeptConnections(WithDaemon):
    def test_requests_follow_each_other_over_one_connection(self) -> None:
        daemon = self.daemon(answer(201, SESSION), answer(200, REPLY), answer(200, REPLY), answer(204), answer(200, REPLY), kept=True)
        with daemon.client() as client:
            calculator = client.role("calculator")
            for _ in range(2):
                self.assertEqual(calculator.add(2, 3), 5)
            client.cancel("call_1")
            calculator.add(2, 3)
        self.assertEqual(len({asked.port for asked in daemon.asked}), 1)

    def test_what_may_not_be_repeated_gets_a_connection_of_its_own(self) -> None:
        daemon = self.daemon(answer(201, SESSION), kept=True)
        client = daemon.client()
        self.addCleanup(client.close)
        client.session("calculator")
        client.session("calculator")
        self.assertEqual(len({asked.port for asked in daemon.asked}), 2)

    def test_a_connection_that_was_closed_meanwhile(self) -> None:
        """The daemon drops the connection when the next request comes: it is sent again over another, with the same key, at once."""
        daemon = self.daemon(answer(201, SESSION), answer(200, REPLY), DROP, answer(200, REPLY), kept=True)
        client = daemon.client(retries=0)
        self.addCleanup(client.close)
        calculator = client.role("calculator")
        calculator.add(2, 3)
        self.assertEqual(calculator.add(2, 3), 5)
        self.assertEqual((daemon.lines()[1:], daemon.pauses), (3 * [CALLS], []))
        self.assertEqual(daemon.asked[2].headers["Idempotency-Key"], daemon.asked[3].headers["Idempotency-Key"])

    def test_a_daemon_that_is_gone(self) -> None:
        daemon = self.daemon(answer(201, SESSION), DROP, kept=True)
        client = daemon.client(retries=0)
        self.addCleanup(client.close)
        session = client.session("calculator")
        with self.assertRaises(Unreachable):
            session.call("add")
        self.assertEqual(daemon.lines()[1:], 2 * [CALLS])

    def test_a_refusal_leaves_the_connection(self) -> None:
        daemon = self.daemon(answer(200, {"via": None}), refusal(404, "not_found"), answer(200, REPLY), kept=True)
        client = daemon.client()
        self.addCleanup(client.close)
        client.why("call_1")
        with self.assertRaises(Problem):
            client.why("call_2")
        client.why("call_3")
        self.assertEqual(len({asked.port for asked in daemon.asked}), 1)

    def test_threads_share_a_client(self) -> None:
        daemon = self.daemon(answer(201, SESSION), answer(200, REPLY), kept=True)
        client = daemon.client()
        self.addCleanup(client.close)
        calculator = client.role("calculator")
        values: list[int] = []
        threads = [threading.Thread(target=lambda: values.append(calculator.add(2, 3))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(values, 8 * [5])
        self.assertLessEqual(len({asked.port for asked in daemon.asked}), 9)
