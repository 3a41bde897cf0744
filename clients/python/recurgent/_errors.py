from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._values import Reply


class RecurgentError(Exception):
    """What this package raises."""


class Unreachable(RecurgentError):
    """No reply came from the daemon, in spite of retries where they were safe."""


class Problem(RecurgentError):
    """The daemon refused a request, with a problem detail (RFC 9457).

    `code` is stable and for programs, `detail` and `hint` are for people. `members` has the whole detail.
    `code` is "" where something other than recurgentd answered.
    """

    def __init__(self, status: int, members: dict[str, Any], retry_after: float | None = None) -> None:
        self.status = status
        self.members = members
        self.code: str = members.get("code", "")
        self.title: str = members.get("title", "")
        self.detail: str = members.get("detail", "")
        self.hint: str = members.get("hint", "")
        self.request_id: str = members.get("request_id", "")
        self.errors: list[dict[str, str]] = members.get("errors", [])
        self.retry_after = retry_after
        text = f"{status} {self.title}".strip()
        if self.detail:
            text += f": {self.detail}"
        if self.hint:
            text += f" ({self.hint})"
        super().__init__(text)


class CallFailed(RecurgentError):
    """A call ended with an error outcome.

    `authored` means that the program itself returned the error; then `error_type` is a word of its own.
    """

    def __init__(self, reply: Reply) -> None:
        outcome = reply.outcome
        self.reply = reply
        self.call_id = reply.call_id
        self.error_type: str = outcome["error_type"]
        self.message: str = outcome["error_message"]
        self.retriable: bool = outcome["retriable"]
        self.authored: bool = outcome["authored"]
        self.metadata: dict[str, Any] = outcome.get("metadata", {})
        super().__init__(f"{reply.role}.{reply.method}: {self.error_type}: {self.message}")
