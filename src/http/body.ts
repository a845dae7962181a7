/**
 * Request bodies: read under a ceiling, as text that is what was sent, and taken apart without `JSON.parse`, which would
 * round the numbers of a payload and sort its keys. Which members a body has and of what kind is said once, as a TypeBox
 * schema, and checked over the members that were scanned.
 */

import { type Static, Type } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import { BODY_DEPTH } from "../base/limits.ts";
import { attempt, Refusal } from "../base/refusal.ts";
import type { BatchRequest } from "../engine/contract.ts";
import { compactJson, listValues, parseMembers } from "../value/json.ts";
import { Json, type Value } from "../value/value.ts";

/** The body of `/query`, and of each line of `/batch`. Other members are passed over. */
export const QueryBody = Type.Object({
  query: Type.String({ minLength: 1, description: "one statement" }),
  params: Type.Optional(Type.Array(Type.Unknown(), { description: "the values of $1, $2, ..." })),
});

/** The body of `POST /_clock`: one of the two. */
export const ClockBody = Type.Object({
  advance_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  set: Type.Optional(Type.String({ description: "an ISO time" })),
});

const queryBody = TypeCompiler.Compile(QueryBody);
const clockBody = TypeCompiler.Compile(ClockBody);

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** The body as text. `body_too_large` past the ceiling, `bad_request` when it is not UTF-8 or was cut off. */
export async function bodyText(request: Request, maxBytes: number): Promise<string> {
  const length = request.headers.get("content-length");
  let bytes: Uint8Array;
  if (length === null) {
    if (request.body === null) return "";
    bytes = await chunkedBody(request.body, maxBytes);
  } else {
    if (Number(length) > maxBytes) throw tooLarge(maxBytes);
    bytes = await request.bytes().catch(cutOff);
  }
  try {
    return utf8.decode(bytes);
  } catch {
    throw new Refusal("bad_request", "the body is not UTF-8");
  }
}

async function chunkedBody(body: ReadableStream<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read().catch(cutOff);
    if (done) return Buffer.concat(chunks, size);
    size += value.byteLength;
    if (size > maxBytes) {
      reader.cancel().catch(() => {});
      throw tooLarge(maxBytes);
    }
    chunks.push(value);
  }
}

function tooLarge(maxBytes: number): Refusal {
  return new Refusal("body_too_large", `the body is larger than ${maxBytes} bytes, the most this server takes`);
}

function cutOff(): never {
  throw new Refusal("bad_request", "the body was cut off");
}

/** One statement with its parameters. `bad_json` or `bad_request` when the text is no such object. */
export function readQuery(text: string): BatchRequest {
  const members = parseMembers(text);
  const query = members.get("query");
  const sent = members.get("params");
  const params = sent instanceof Json && sent.text.startsWith("[") ? listValues(sent) : sent;
  if (typeof query === "string" && query !== "") {
    if (params === undefined || params === null) return { text: query, params: [] };
    if (Array.isArray(params)) return { text: query, params };
  }
  if (query === undefined || query === "") {
    throw new Refusal(
      "bad_request",
      'the body is {"query": "one statement", "params": [...]}, and its query is missing',
    );
  }
  throw misfit(queryBody, present({ query: shown(query), params: shown(params as Value) }));
}

/**
 * The lines of a batch, blank ones passed over. A line that is no statement is refused with `at`, its place.
 *
 * Most lines of a batch are the line before with other parameters, so what stands before them is read once: ten acks
 * take 3 us where each line read for itself took 5.
 */
export function readBatch(text: string): BatchRequest[] {
  const requests: BatchRequest[] = [];
  let statement = "";
  let head = "";
  let from = 0;
  while (from < text.length) {
    let to = text.indexOf("\n", from);
    if (to === -1) to = text.length;
    const line = text.slice(from, to);
    from = to + 1;
    if (line.trim() === "") continue;
    try {
      const alike = head !== "" && line.startsWith(head) ? readAlike(line, head, statement) : undefined;
      const request = alike ?? readQuery(line);
      requests.push(request);
      if (request.text !== statement) {
        statement = request.text;
        head = `{"query":${JSON.stringify(statement)},"params":`;
      }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const words = `${error.message} (a batch is one {"query": ..., "params": [...]} a line)`;
      throw new Refusal(error.code, words, { ...error.data, at: requests.length, completed: 0 });
    }
  }
  if (requests.length === 0) {
    throw new Refusal("bad_request", 'a batch is one {"query": ..., "params": [...]} a line; this one has none');
  }
  return requests;
}

/** A line of which all up to its parameters is known; undefined when it is to be read, or refused, as any other. */
function readAlike(line: string, head: string, statement: string): BatchRequest | undefined {
  return attempt(() => {
    const { text, end } = compactJson(line, head.length, BODY_DEPTH - 1);
    if (!text.startsWith("[") || end !== line.length - 1 || line[end] !== "}") return undefined;
    return { text: statement, params: listValues(new Json(text)) };
  });
}

export function readClock(text: string): Static<typeof ClockBody> {
  const members = parseMembers(text);
  const body: unknown = present({ advance_ms: shown(members.get("advance_ms")), set: shown(members.get("set")) });
  if (!clockBody.Check(body)) throw misfit(clockBody, body);
  if ((body.advance_ms === undefined) === (body.set === undefined)) {
    throw new Refusal("bad_request", 'the body is {"advance_ms": n} or {"set": "an ISO time"}');
  }
  return body;
}

/** A scanned value as the schemas see it: a json container is what it holds, not how we keep it. */
function shown(value: Value | undefined): unknown {
  if (!(value instanceof Json)) return value;
  return value.text.startsWith("[") ? [] : {};
}

function misfit(check: TypeCheck<typeof QueryBody | typeof ClockBody>, body: unknown): Refusal {
  const first = check.Errors(body).First();
  const member = first === undefined ? "" : first.path.slice(1);
  const words = first === undefined ? "is not as it should be" : first.message.replace(/^Expected/, "expected");
  const where = member === "" ? "the body" : `the body's member ${JSON.stringify(member)}`;
  return new Refusal("bad_request", `${where}: ${words}`);
}

function present(members: Readonly<Record<string, unknown>>): unknown {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}
