from __future__ import annotations

import copy
import io
import unittest
from typing import Any

import recurgent
from recurgent import CallFailed, Event, Problem, RecurgentError, Unreachable
from recurgent._events import read

from .fake import DROP, REPLY, SESSION, Daemon, answer, refusal, stream

CALLS = "POST /v1/sessions/sess_1/calls"


class WithDaemon(unittest.TestCase):
    def daemon(self, *answers: Any, kept: bool = False) -> Daemon:
        daemon = Daemon(*answers, kept=kept)
        self.addCleanup(daemon.close)
        return daemon


class Calls(WithDaemon):
    def test_attribute_access_is_a_call(self) -> None:
        daemon = self.daemon(answer(201, SESSION), answer(200, REPLY))
        calculator = daemon.client(token="secret").role("calculator")
        self.assertEqual(calculator.add(2, b=3), 5)
        self.assertEqual(calculator["to celsius"](100), 5)
        calculator.value = 7
        self.assertEqual(daemon.lines(), ["POST /v1/sessions"] + 3 * [CALLS])
        bodies = [asked.body for asked in daemon.asked[1:]]
        self.assertEqual(bodies[0], {"method": "add", "args": [2], "kwargs": {"b": 3}, "role": "calculator"})
        self.assertEqual([body["method"] for body in bodies], ["add", "to celsius", "value="])
        self.assertEqual(bodies[2]["args"], [7])
        for asked in daemon.asked:
            self.assertEqual(asked.headers["Authorization"], "Bearer secret")
        self.assertEqual(len({asked.headers["Idempotency-Key"] for asked in daemon.asked[1:]}), 3)

    def test_names_of_python_are_no_methods(self) -> None:
        role = self.daemon(answer(201, SESSION)).client().role("calculator")
        self.assertFalse(hasattr(role, "_private"))
        self.assertFalse(hasattr(role, "__array__"))
        with self.assertRaises(AttributeError):
            role._private = 1
        self.assertEqual(repr(role), "<role calculator in sess_1>")
        self.assertEqual(repr(copy.copy(role.add)), "<method calculator.add>")

    def test_an_error_outcome_is_an_exception_of_the_value(self) -> None:
        outcome = {"status": "error", "ok": False, "error_type": "not_today", "error_message": "closed", "retriable": False, "authored": True}
        daemon = self.daemon(answer(201, SESSION), answer(200, {**REPLY, "outcome": outcome}))
        shop = daemon.client().role("shop")
        self.assertFalse(shop.sell.reply(1).ok)
        with self.assertRaises(CallFailed) as caught:
            shop.sell(1)
        self.assertEqual((caught.exception.error_type, caught.exception.authored, caught.exception.call_id), ("not_today", True, "call_1"))

    def test_a_newer_daemon_may_say_more(self) -> None:
        daemon = self.daemon(answer(201, SESSION), answer(200, {**REPLY, "mood": "good"}, Idempotent_Replayed="true"))
        reply = daemon.client().session("calculator").call("add", [2, 3], timeout=1.5)
        self.assertEqual((reply.value, reply.source, reply.replayed), (5, "generated", True))
        self.assertEqual(daemon.asked[1].body["timeout_ms"], 1500)

    def test_values_that_are_not_json_are_not_sent(self) -> None:
        daemon = self.daemon(answer(201, SESSION))
        with self.assertRaises(ValueError):
            daemon.client().role("calculator").add(float("nan"))
        self.assertEqual(len(daemon.asked), 1)


class Retries(WithDaemon):
    def test_a_lost_reply_is_asked_for_with_the_same_key(self) -> None:
        daemon = self.daemon(answer(201, SESSION), DROP, refusal(503, "queue_full", Retry_After="3"),
                             refusal(409, "idempotency_key_in_use"), answer(202, {"call_id": "call_1"}), answer(200, REPLY))
        self.assertEqual(daemon.client().session("calculator").call("add", [2, 3]).value, 5)
        calls = daemon.asked[1:]
        self.assertEqual([asked.line for asked in calls], 5 * [CALLS])
        self.assertEqual(len({asked.headers["Idempotency-Key"] for asked in calls}), 1)
        for asked in calls:  # so that a lost connection does not cancel the call
            self.assertTrue(asked.headers["Prefer"].startswith("respond-async, wait="))
        self.assertEqual(daemon.pauses, [0.1, 3, 0.02, 0.04])

    def test_retries_end(self) -> None:
        daemon = self.daemon(answer(201, SESSION), DROP)
        session = daemon.client(retries=2).session("calculator")
        with self.assertRaises(Unreachable):
            session.call("add")
        self.assertEqual(len(daemon.asked), 1 + 3)

    def test_what_may_not_be_repeated_is_sent_once(self) -> None:
        for lost, kind in (DROP, Unreachable), (answer(502, "<html>"), Problem):
            daemon = self.daemon(lost)
            with self.assertRaises(kind):
                daemon.client().session("calculator")
            self.assertEqual(len(daemon.asked), 1)

    def test_a_refusal_is_a_problem(self) -> None:
        daemon = self.daemon(refusal(422, "validation_failed"))
        with self.assertRaises(Problem) as caught:
            daemon.client().session("")
        problem = caught.exception
        self.assertEqual((problem.status, problem.code, problem.hint, str(problem)), (422, "validation_failed", "what to do", "422 No: why (what to do)"))
        self.assertEqual((len(daemon.asked), daemon.pauses), (1, []))

    def test_something_else_answers(self) -> None:
        daemon = self.daemon(answer(302, "<html>", Location="http://127.0.0.1:9/"), answer(500, "[]"), answer(201, "<html>"))
        for kind in Problem, Problem, RecurgentError:
            with self.assertRaises(kind):
                daemon.client().session("calculator")
        self.assertEqual(len(daemon.asked), 3)
        with self.assertRaises(ValueError):
            recurgent.Client("ftp://127.0.0.1")


EVENTS = "GET /v1/calls/call_1/events"


class Streams(WithDaemon):
    def test_a_stream_goes_on_behind_the_last_event(self) -> None:
        daemon = self.daemon(answer(201, SESSION), answer(202, {"call_id": "call_1"}),
                             DROP, stream("retry: 2000\n\nid: 1\nevent: call.forging\ndata: {\"a\":\ndata: 1}\n\nid: 2\nevent: call.running\ndata: {"),
                             DROP, refusal(503, "draining"),
                             stream(": ping\n\nid: 2\nevent: call.running\ndata: {}\n\nid: 3\nevent: call.finished\ndata: {}\n\n"), answer(200, REPLY))
        with daemon.client().role("calculator").add.stream(2, 3) as running:
            self.assertEqual([(e.id, e.type, e.data) for e in running],
                             [("1", "call.forging", {"a": 1}), ("2", "call.running", {}), ("3", "call.finished", {})])
            self.assertEqual(running.reply().value, 5)
        self.assertEqual(daemon.lines()[1:], [CALLS] + 5 * [EVENTS] + [CALLS])
        self.assertEqual([asked.headers["Last-Event-ID"] for asked in daemon.asked[2:7]], [None, None, "1", "1", "1"])
        self.assertEqual(daemon.asked[1].headers["Idempotency-Key"], daemon.asked[7].headers["Idempotency-Key"])

    def test_a_stream_that_is_left_cancels_its_call(self) -> None:
        daemon = self.daemon(answer(201, SESSION), answer(202, {"call_id": "call_1"}), answer(204))
        with daemon.client().session("calculator").stream("add"):
            pass
        self.assertEqual(daemon.lines()[2:], ["POST /v1/calls/call_1/cancel"])

    def test_a_stream_of_something_else(self) -> None:
        with self.assertRaises(RecurgentError) as caught:
            list(self.daemon(stream("data: {\n\n")).client().events())
        self.assertNotIsInstance(caught.exception, Unreachable)

    def test_a_stream_that_was_never_there(self) -> None:
        for refused in refusal(404, "not_found"), refusal(503, "draining"), answer(200, "<html>", Content_Type="text/html"):
            with self.assertRaises(Problem):
                next(self.daemon(refused).client().events())
        daemon = self.daemon(DROP)
        with self.assertRaises(Unreachable):
            next(daemon.client(retries=2).events())
        self.assertEqual(len(daemon.asked), 3)

    def test_bytes_of_a_stream(self) -> None:
        for text, want in (
            (b"data: 1\r\n\r\n", [Event("", "", 1)]),
            (b"id: 7\nevent: x\ndata:2\n\ndata: 3\n\n", [Event("7", "x", 2), Event("7", "", 3)]),
            (b"event: x\n\n: comment\nid: a\0b\nfoo\ndata: \"\xc3\xa4\"\n\n", [Event("", "", "ä")]),
            (b"data: 1\n", []), (b"data: 1", []), (b"", []),
        ):
            self.assertEqual(list(read(io.BytesIO(text))), want, text)
        with self.assertRaises(ValueError):
            list(read(io.BytesIO(b"data: " + (17 << 20) * b"x" + b"\n\n")))


class Rest(WithDaemon):
    def test_lists_come_page_by_page(self) -> None:
        daemon = self.daemon(answer(201, SESSION), answer(200, {"data": [{"seq": 1}], "next_cursor": "1"}), answer(200, {"data": [{"seq": 2}], "next_cursor": None}))
        records = list(daemon.client().session("calculator").history(status="ok"))
        self.assertEqual([record["seq"] for record in records], [1, 2])
        self.assertEqual(daemon.lines()[1:], ["GET /v1/sessions/sess_1/history?status=ok", "GET /v1/sessions/sess_1/history?status=ok&after=1"])

    def test_verdicts(self) -> None:
        daemon = self.daemon(answer(200, {"verdict": "wrong"}))
        client = daemon.client()
        client.right("call_1")
        client.wrong("call_1", expected=None, wait=10)
        client.wrong("call_1", error_type="not_found", note="n")
        bodies = [asked.body for asked in daemon.asked]
        self.assertEqual(bodies, [{"verdict": "right", "note": ""}, {"verdict": "wrong", "note": "", "expected": None},
                                  {"verdict": "wrong", "note": "n", "expected_error_type": "not_found"}])
        self.assertEqual(daemon.asked[1].headers["Prefer"], "wait=10")

    def test_names_in_paths_are_escaped(self) -> None:
        daemon = self.daemon(answer(200, {"data": [], "next_cursor": None}))
        self.assertEqual(list(daemon.client().methods("a b/ü%")), [])
        self.assertEqual(daemon.lines(), ["GET /v1/tools/a%20b%2F%C3%BC%25/methods"])


if __name__ == "__main__":
    unittest.main()
