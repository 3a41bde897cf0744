from __future__ import annotations

import mimetypes
import os
from dataclasses import dataclass
from typing import Any, Mapping, TypedDict

from ._errors import CallFailed


class Usage(TypedDict):
    """What the model requests of a call cost."""

    model_requests: int
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True)
class Reply:
    """The reply to a call. `outcome` is as on the wire; an error outcome is a reply, too."""

    call_id: str
    session_id: str
    trace_id: str
    role: str
    method: str
    outcome: dict[str, Any]
    program: dict[str, Any]
    attempts: int
    duration_ms: float
    usage: Usage
    replayed: bool = False  # it is the reply of an earlier request with the same idempotency key

    @property
    def ok(self) -> bool:
        return bool(self.outcome["ok"])

    @property
    def value(self) -> Any:
        """The value of the call. Raises CallFailed where the outcome is an error."""
        if not self.ok:
            raise CallFailed(self)
        return self.outcome["value"]

    @property
    def source(self) -> str:
        """What answered: generated, persisted, repaired or none."""
        return str(self.program["source"])


def reply_of(members: dict[str, Any], replayed: bool) -> Reply:
    """Reads a reply; members that a newer daemon adds are left out."""
    known: dict[str, Any] = {name: members[name] for name in Reply.__dataclass_fields__ if name in members}
    known["replayed"] = replayed
    return Reply(**known)


@dataclass(frozen=True)
class File:
    """A stored file. It may stand in the arguments of a call, for which it is {"$file": id}."""

    id: str
    name: str
    media_type: str
    bytes: int
    sha256: str

    @property
    def reference(self) -> dict[str, str]:
        """What stands for the file in arguments and values."""
        return {"$file": self.id}


def file_of(members: dict[str, Any]) -> File:
    """Reads a file; members that are not known are left out."""
    return File(**{name: members[name] for name in File.__dataclass_fields__ if name in members})


_TEXTS = {".csv": "text/csv", ".txt": "text/plain", ".log": "text/plain", ".jsonl": "application/jsonl", ".ndjson": "application/jsonl"}  # as recurgentd call --file has them


def media_type_of(path: str) -> str | None:
    """The media type of a file's name, which a packed file (data.csv.gz) has not."""
    found, packed = mimetypes.guess_type(path)
    return None if packed else _TEXTS.get(os.path.splitext(path)[1].lower(), found)


def file_id(file: File | Mapping[str, Any] | str) -> str:
    """The id of a file, of {"$file": id} or of an id."""
    if isinstance(file, File):
        return file.id
    if isinstance(file, str):
        return file
    found = file.get("$file")
    if not isinstance(found, str):
        raise ValueError("not a file: a value of a file is {\"$file\": id}")
    return found


@dataclass(frozen=True)
class Prediction:
    """The outputs of a signature, by field name."""

    outputs: dict[str, Any]
    usage: Usage
    attempts: int
    call_id: str


class Correction(TypedDict):
    """How far the correction of a method's program has come."""

    state: str  # none, queued, running, awaiting_approval, backing_off, adopted, failed
    generation: str | None
    changed_answers: int
    attempts: int
    last_error: str | None
    next_try_at: str | None


class Verdict(TypedDict, total=False):
    """What a person said of a call, and what follows from it."""

    call_id: str
    role: str
    method: str
    generation: str | None
    verdict: str  # right or wrong
    expected: Any
    expected_error_type: str
    note: str
    example_id: str | None
    example_state: str | None
    dropped_fixtures: int
    correction: Correction


class HistoryRecord(TypedDict, total=False):
    """One call in a session's history. It has the class of the value, not the value."""

    call_id: str
    seq: int
    timestamp: str
    speaker: str
    role: str
    method_name: str
    args: list[Any]
    kwargs: dict[str, Any]
    outcome_summary: dict[str, Any]
    depth: int
    duration_ms: float
    program_source: str


class Tool(TypedDict, total=False):
    """A known role with its contract and use."""

    role: str
    purpose: str | None
    deliverable: Any
    methods: dict[str, Any]
    usage_count: int
    last_used_at: str
    created_at: str
    revision: int
    score: float
    lifecycle_state: str
