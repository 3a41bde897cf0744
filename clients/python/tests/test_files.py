from __future__ import annotations

import io
import json
import pathlib
import tempfile

from recurgent import File, Problem, Unreachable
from recurgent._values import media_type_of

from .fake import REPLY, SESSION, answer, refusal
from .test_client import WithDaemon

STORED = {"id": "file_1", "name": "a.csv", "media_type": "text/csv", "bytes": 4, "sha256": "00", "session_id": None, "created_at": "2026-11-21T02:10:00.123Z"}
CSV = File("file_1", "a.csv", "text/csv", 4, "00")


class Files(WithDaemon):
    def test_uploads(self) -> None:
        daemon = self.daemon(answer(201, SESSION), answer(201, STORED))
        client = daemon.client()
        session = client.session("calculator")
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "ä b.csv"
            path.write_bytes(b"a,b\n")
            self.assertEqual(client.upload(path), CSV)
            with self.assertRaisesRegex(TypeError, "pathlib.Path"):
                client.upload(str(path))  # type: ignore[arg-type]
        self.assertEqual(client.upload(io.BytesIO(b"a,b\n"), name="x", session=session), CSV)
        self.assertEqual(client.upload(b"a,b\n"), CSV)
        self.assertEqual(daemon.lines()[1:], ["POST /v1/files?name=%C3%A4+b.csv", "POST /v1/files?name=x&session_id=sess_1", "POST /v1/files"])
        self.assertEqual([asked.data for asked in daemon.asked[1:]], 3 * [b"a,b\n"])
        self.assertEqual([asked.headers["Content-Type"] for asked in daemon.asked[1:]], ["text/csv", "application/octet-stream", "application/octet-stream"])

    def test_media_types_of_names(self) -> None:
        self.assertEqual([media_type_of(name) for name in ("a.CSV", "/x/a.log", "a.html", "a.csv.gz", "a")],
                         ["text/csv", "text/plain", "text/html", None, None])

    def test_functions_for_models_that_are_held_to_schemas(self) -> None:
        daemon = self.daemon(answer(200, {"tools": [], "next_cursor": None}), answer(200, {"tools": [], "next_cursor": None}), answer(200, REPLY), answer(200, REPLY))
        client = daemon.client()
        self.assertEqual([*client.functions("openai-responses", strict=True), *client.functions()], [])
        client.run_function("f", {}, strict=True)
        client.run_function("f", {})
        self.assertEqual(daemon.lines()[:2], ["GET /v1/tools?format=openai-responses&strict=true", "GET /v1/tools?format=openai"])
        self.assertEqual([json.loads(asked.data) for asked in daemon.asked[2:]], [{"arguments": {}, "strict": True}, {"arguments": {}}])

    def test_an_upload_that_is_refused_for_the_moment_begins_again(self) -> None:
        daemon = self.daemon(refusal(503, "bodies_full"), answer(201, STORED))
        opened = io.BytesIO(b"xxa,b\n")
        opened.seek(2)
        self.assertEqual(daemon.client().upload(opened), CSV)
        self.assertEqual([asked.data for asked in daemon.asked], 2 * [b"a,b\n"])

    def test_a_stream_is_sent_once(self) -> None:
        class Pipe(io.BytesIO):
            def seekable(self) -> bool:
                return False

        daemon = self.daemon(refusal(503, "bodies_full"))
        with self.assertRaises(Problem):
            daemon.client().upload(Pipe(b"a"))
        self.assertEqual(len(daemon.asked), 1)

    def test_files_are_values(self) -> None:
        value = {**REPLY, "outcome": {"status": "ok", "ok": True, "value": {"$file": "file_1"}, "tool_role": "t", "method_name": "m"}}
        daemon = self.daemon(answer(201, SESSION), answer(200, value), answer(200, STORED), answer(200, b"a,b\n"), answer(204))
        client = daemon.client()
        tables = client.role("tables")
        result = tables.sort(CSV, [CSV], by={"file": CSV})
        reference = {"$file": "file_1"}
        self.assertEqual((daemon.asked[1].body["args"], daemon.asked[1].body["kwargs"]), ([reference, [reference]], {"by": {"file": reference}}))
        self.assertEqual(client.file(result), CSV)
        self.assertEqual(client.download(result), b"a,b\n")
        client.delete_file("file_1")
        self.assertEqual(daemon.lines()[2:], ["GET /v1/files/file_1", "GET /v1/files/file_1/content", "DELETE /v1/files/file_1"])
        with self.assertRaises(ValueError):
            client.file({"file": "file_1"})
        with self.assertRaises(TypeError):
            tables.sort(object())

    def test_downloads(self) -> None:
        daemon = self.daemon(answer(200, b"a,b\n"), answer(200, b"c,d\n"), answer(404, {"code": "not_found"}), answer(200, b"a", Content_Length="4"))
        client = daemon.client()
        target = io.BytesIO()
        self.assertEqual((client.download_to(CSV, target), target.getvalue()), (4, b"a,b\n"))
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "x"
            self.assertEqual((client.download_to("file_1", path), path.read_bytes()), (4, b"c,d\n"))
        with self.assertRaises(Problem):
            client.download_to(CSV, target)
        with self.assertRaises(Unreachable):  # a damaged file is cut off
            client.download_to(CSV, io.BytesIO())

    def test_lists(self) -> None:
        daemon = self.daemon(answer(200, {"data": [STORED], "next_cursor": "file_1"}), answer(200, {"data": [STORED], "next_cursor": None}))
        self.assertEqual(list(daemon.client().files()), [CSV, CSV])
        self.assertEqual(daemon.lines(), ["GET /v1/files", "GET /v1/files?after=file_1"])


class Questions(WithDaemon):
    def test_predictions(self) -> None:
        said = {"outputs": {"answer": "blue"}, "usage": REPLY["usage"], "attempts": 1, "call_id": "call_1", "newer": 1}
        daemon = self.daemon(answer(201, SESSION), answer(200, said))
        client = daemon.client()
        session = client.session("calculator")
        signature = {"instructions": "Answer.", "inputs": [{"name": "question"}], "outputs": [{"name": "answer"}]}
        self.assertEqual(client.predict(signature, {"question": "sky?"}, session=session, demos=[]).outputs, {"answer": "blue"})
        self.assertEqual(client.predict("a b/c", {"question": "sky?"}, adapter="json").call_id, "call_1")
        self.assertEqual(daemon.lines()[1:], ["POST /v1/predict", "POST /v1/signatures/a%20b%2Fc/predict"])
        self.assertEqual([asked.body for asked in daemon.asked[1:]], [
            {"inputs": {"question": "sky?"}, "demos": [], "session_id": "sess_1", "signature": signature}, {"inputs": {"question": "sky?"}, "adapter": "json"}])

    def test_why(self) -> None:
        daemon = self.daemon(answer(200, {"summary": "It was stored."}), answer(200, "Wéll"))
        client = daemon.client()
        self.assertEqual(client.why("call_1")["summary"], "It was stored.")
        self.assertEqual(client.why_page("call_1"), "Wéll")
        self.assertEqual([asked.headers["Accept"] for asked in daemon.asked], ["application/json", "text/plain"])
