from __future__ import annotations

import json
from dataclasses import dataclass
from typing import IO, Any, Iterator

MAX_EVENT = 16 << 20  # bytes


@dataclass(frozen=True)
class Event:
    """One server-sent event: its type, such as call.running, and its data."""

    id: str
    type: str
    data: Any


def read(body: IO[bytes]) -> Iterator[Event]:
    """Reads a stream of server-sent events (the HTML standard, section 9.2) to its end. An event that is cut off does not count."""
    kind, last, size = "", "", 0
    data: list[str] = []
    while line := body.readline(MAX_EVENT - size + 1):
        size += len(line)
        if size > MAX_EVENT:
            raise ValueError(f"an event is over {MAX_EVENT} bytes")
        if not line.endswith(b"\n"):
            return
        text = line.rstrip(b"\r\n").decode("utf-8", "replace")
        if not text:
            if data:
                yield Event(last, kind, json.loads("\n".join(data)))
            kind, data, size = "", [], 0
            continue
        name, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
        elif name == "event":
            kind = value
        elif name == "id" and "\0" not in value:
            last = value
