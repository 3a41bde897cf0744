/** What the daemon sends and takes, as far as this client reads it. Further members may come. */

export interface OkOutcome {
  status: "ok";
  ok: true;
  value: unknown;
  tool_role: string;
  method_name: string;
  metadata?: Record<string, unknown>;
}

export interface ErrorOutcome {
  status: "error";
  ok: false;
  error_type: string;
  error_message: string;
  retriable: boolean;
  authored: boolean;
  tool_role: string;
  method_name: string;
  metadata?: Record<string, unknown>;
}

export type Outcome = OkOutcome | ErrorOutcome;

export interface Usage {
  model_requests: number;
  prompt_tokens: number;
  completion_tokens: number;
}

export interface Program {
  source: "generated" | "persisted" | "repaired" | "none";
  artifact_hit: boolean;
  generation?: string;
  selection: Record<string, unknown>;
}

export interface CallReply {
  call_id: string;
  session_id: string;
  trace_id: string;
  role: string;
  method: string;
  outcome: Outcome;
  program: Program;
  attempts: number;
  duration_ms: number;
  usage: Usage;
}

/** The request of a call. */
export interface CallRequest {
  method: string;
  args?: unknown[];
  kwargs?: Record<string, unknown>;
  role?: string;
  contract?: Record<string, unknown>;
  history?: Record<string, unknown>;
  timeout_ms?: number;
}

export interface SessionRequest {
  role: string;
  model?: string;
  contract?: Record<string, unknown>;
  context?: Record<string, unknown>;
  debug?: boolean;
  metadata?: Record<string, string>;
}

export interface HistoryRecord {
  call_id: string;
  seq: number;
  timestamp: string;
  speaker: "user" | "tool" | "agent";
  role: string;
  method_name: string;
  args: unknown[];
  kwargs: Record<string, unknown>;
  outcome_summary: { status: "ok" | "error"; ok: boolean; error_type: string | null; retriable: boolean; [name: string]: unknown };
}

export interface Tool {
  role: string;
  purpose?: string | null;
  methods?: Record<string, unknown>;
  [name: string]: unknown;
}

export interface Verdict {
  call_id: string;
  role: string;
  method: string;
  verdict: "right" | "wrong";
  expected?: unknown;
  example_id?: string | null;
  example_state?: string | null;
  correction?: { state: string; [name: string]: unknown };
  [name: string]: unknown;
}

/** Why a call ended as it did. */
export interface Why {
  call_id: string;
  status: "ok" | "error" | "running";
  summary: string;
  selection: Record<string, unknown>;
  next: { name: string; method: string; path: string; body: Record<string, unknown> | null }[];
  [name: string]: unknown;
}

export interface StoredFile {
  id: string;
  name: string;
  media_type: string;
  bytes: number;
  sha256: string;
  [name: string]: unknown;
}

/** What stands for a file in arguments and values. A type and not an interface, which would not fit a record. */
export type FileReference = { $file: string };

export interface Prediction {
  outputs: Record<string, unknown>;
  usage: Usage;
  attempts: number;
  call_id: string;
}

/** A problem detail (RFC 9457). */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  instance: string;
  code: string;
  hint: string;
  request_id: string;
  errors?: { pointer: string; detail: string; hint?: string }[];
}

/** One server-sent event: its type, such as call.running, and its data. */
export interface Event {
  id: string;
  type: string;
  data: unknown;
}
