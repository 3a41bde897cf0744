import createClient from "openapi-fetch";
import type { paths } from "./api.js";

const { RECURGENT_URL: baseUrl, RECURGENT_TOKEN: token } = process.env;
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });

/** The data of a reply, or the problem as an exception. */
function data<T>(reply: { data?: T; error?: unknown }): T {
  if (reply.data === undefined) throw new Error(JSON.stringify(reply.error));
  return reply.data;
}

const { id } = data(await client.POST("/v1/sessions", { body: { role: "calculator", context: { value: 7 } } }));
const reply = data(
  await client.POST("/v1/sessions/{id}/calls", {
    params: { path: { id } },
    body: { method: "add", args: [2], kwargs: { b: 3 } },
  }),
);
if (!("outcome" in reply) || !reply.outcome.ok) throw new Error(JSON.stringify(reply));
const context = data(await client.GET("/v1/sessions/{id}/context", { params: { path: { id } } }));
console.log("openapi-typescript", reply.outcome.value, context.value);
