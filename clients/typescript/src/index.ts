/**
 * A client of recurgentd: call methods that nobody has written yet.
 *
 *     import { role } from "recurgent";
 *     await role("calculator").add(2, 3); // 5
 */
import { Client } from "./client.js";
import type { Role } from "./session.js";

export { Client, reference } from "./client.js";
export type { Abortable, ClientOptions, FileLike } from "./client.js";
export { CallFailed, Problem, RecurgentError, Unreachable } from "./errors.js";
export { Reply, Session, Stream } from "./session.js";
export type { CallOptions, Method, Role } from "./session.js";
export type * from "./wire.js";

let environment: Client | undefined;

/** A role in a session of its own, on the daemon of the environment: `new Client().role(name)`. */
export function role(name: string): Role {
  return (environment ??= new Client()).role(name);
}
