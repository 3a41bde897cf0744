import type { ErrorOutcome, Problem as ProblemBody } from "./types.js";

/** What this package throws. */
export class RecurgentError extends Error {
  override name = "RecurgentError";
}

/** No reply came from the daemon, in spite of retries where they were safe. */
export class Unreachable extends RecurgentError {
  override name = "Unreachable";
}

/** The daemon refused a request, with a problem detail (RFC 9457). `code` is stable and for programs; it is "" where something else answered. */
export class Problem extends RecurgentError {
  override name = "Problem";
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly hint: string;
  /** Seconds; undefined where the daemon named none. */
  readonly retryAfter: number | undefined;
  /** The whole detail. */
  readonly members: Partial<ProblemBody>;

  constructor(status: number, members: Partial<ProblemBody>, retryAfter?: number) {
    const { title = "", detail = "", hint = "" } = members;
    super(`${status} ${title}${detail && ": " + detail}${hint && ` (${hint})`}`);
    this.status = status;
    this.code = members.code ?? "";
    this.detail = detail;
    this.hint = hint;
    this.retryAfter = retryAfter;
    this.members = members;
  }
}

/** A call ended with an error outcome, and its value was asked for. */
export class CallFailed extends RecurgentError {
  override name = "CallFailed";
  readonly callId: string;
  readonly outcome: ErrorOutcome;

  constructor(callId: string, outcome: ErrorOutcome) {
    super(`${outcome.tool_role}.${outcome.method_name}: ${outcome.error_type}: ${outcome.error_message}`);
    this.callId = callId;
    this.outcome = outcome;
  }
}
