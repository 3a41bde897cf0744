import { RecurgentError } from "./errors.js";
import type { Event } from "./types.js";

/** Characters that an event may have. */
export const MAX_EVENT = 16 << 20;

/** Reads a stream of server-sent events (the HTML standard, section 9.2) to its end. An event that is cut off does not count. `heard` is called for each piece. */
export async function* read(body: ReadableStream<Uint8Array>, heard: () => void = () => {}): AsyncGenerator<Event> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let left = "";
  let [id, type, data] = ["", "", [] as string[]];
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      heard();
      left += decoder.decode(value, { stream: true });
      const lines = left.split("\n");
      left = lines.pop() ?? "";
      for (const ended of lines) {
        const line = ended.endsWith("\r") ? ended.slice(0, -1) : ended;
        size += line.length;
        if (size > MAX_EVENT) throw new RecurgentError(`an event is over ${MAX_EVENT} characters`);
        if (line === "") {
          if (data.length > 0) yield { id, type, data: parse(data.join("\n")) };
          [type, data, size] = ["", [], 0];
          continue;
        }
        const colon = line.indexOf(":");
        const name = colon < 0 ? line : line.slice(0, colon);
        const text = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
        if (name === "data") data.push(text);
        else if (name === "event") type = text;
        else if (name === "id" && !text.includes("\0")) id = text;
      }
      if (size + left.length > MAX_EVENT) throw new RecurgentError(`an event is over ${MAX_EVENT} characters`);
    }
  } finally {
    await reader.cancel().catch(() => {}); // it may have broken
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new RecurgentError("the stream is not what a recurgentd sends", { cause });
  }
}
