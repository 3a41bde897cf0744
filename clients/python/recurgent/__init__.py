"""A client of recurgentd: call methods that nobody has written yet.

    import recurgent

    recurgent.role("calculator").add(2, 3)   # 5

RECURGENT_URL (http://127.0.0.1:8420) and RECURGENT_TOKEN say where the daemon is. Everything may be used by several threads.
"""

from __future__ import annotations

from ._async import AsyncClient, AsyncMethod, AsyncRole, AsyncSession, AsyncStream
from ._client import Client
from ._errors import CallFailed, Problem, RecurgentError, Unreachable
from ._events import Event
from ._session import Method, Role, Session, Stream
from ._values import Correction, File, HistoryRecord, Prediction, Reply, Tool, Usage, Verdict

__all__ = [
    "AsyncClient", "AsyncMethod", "AsyncRole", "AsyncSession", "AsyncStream", "CallFailed", "Client", "Correction", "Event", "File",
    "HistoryRecord", "Method", "Prediction", "Problem", "RecurgentError", "Reply", "Role", "Session", "Stream", "Tool", "Unreachable", "Usage", "Verdict", "role", "session",
]


def session(role: str) -> Session:
    """Creates a session on the daemon of the environment: Client().session(role)."""
    return Client().session(role)


def role(name: str) -> Role:
    """A role in a session of its own, on the daemon of the environment: Client().role(name)."""
    return Client().role(name)
