/** The routes of a collection. What they mean is in `rest.ts`; here they are run. */

import { Refusal } from "../base/refusal.ts";
import type { BatchRequest, Outcome, RequestContext } from "../engine/contract.ts";
import type { StatementKind } from "../obs/metrics.ts";
import type { CollectionSchema } from "../schema/schema.ts";
import { bodyText } from "./body.ts";
import { EVENT_STREAM_HEADERS } from "./event_stream.ts";
import { waits } from "./query.ts";
import { type Pair, pairsOf, queryStringOf } from "./query_string.ts";
import { contextOf } from "./request_headers.ts";
import { deleteOf, insertOf, readOf, streamOf, updateOf } from "./rest.ts";
import type { Data, Service } from "./service.ts";

/** A statement made of a request, and the body its answer has. */
interface Routed {
  readonly statement: BatchRequest;
  readonly status: number;
  readonly body: (outcome: Outcome) => string;
}

type Route = (schema: CollectionSchema, pairs: readonly Pair[], body: string) => Routed;

const read: Route = (schema, pairs) => {
  const statement = readOf(schema, pairs);
  // The language answers a count as a row; here it is the answer.
  const body = (outcome: Outcome): string => (statement.count ? outcome.body.slice(1, -1) : outcome.body);
  return { statement, status: 200, body };
};

const insert: Route = (schema, pairs, body) => ({
  statement: insertOf(schema, pairs, body),
  status: 201,
  body: (outcome) => `{"inserted":${outcome.count}}`,
});

const update =
  (all: boolean): Route =>
  (schema, pairs, body) => ({
    statement: updateOf(schema, pairs, body, all),
    status: 200,
    body: (outcome) => `{"updated":${outcome.count}}`,
  });

const remove =
  (all: boolean): Route =>
  (schema, pairs) => ({
    statement: deleteOf(schema, pairs, all),
    status: 200,
    body: (outcome) => `{"deleted":${outcome.count}}`,
  });

export const answerRead = collectionRoute("read", read);
export const answerInsert = collectionRoute("write", insert);
export const answerUpdate = collectionRoute("write", update(false));
export const answerUpdateAll = collectionRoute("write", update(true));
export const answerDelete = collectionRoute("write", remove(false));
export const answerDeleteAll = collectionRoute("write", remove(true));

/** `GET /<c>/changes`. */
export const answerChanges: Answerer = async (service, request, collection) => {
  try {
    const { streams, engine } = service.data();
    const who = await service.identity(request);
    const context = contextOf(request, who, "");
    const schema = engine.schemaOf(collection, context);
    if (schema === undefined) throw noCollection(collection);
    const shape = streamOf(schema, pairsOf(queryStringOf(request.url)));
    const most = service.settings.maxStreams;
    if (streams.count >= most)
      throw new Refusal("overloaded", `${most} change streams are open, the most there may be`);
    // A stream may be quiet for longer than a silent connection is kept.
    service.listener?.timeout(request, 0);
    return service.answers.other(200, await streams.open(schema, shape, context, request.signal), EVENT_STREAM_HEADERS);
  } catch (error) {
    return service.failed(error, request);
  }
};

type Answerer = (service: Service, request: Request, collection: string) => Promise<Response>;

function collectionRoute(kind: StatementKind, route: Route): Answerer {
  return async (service, request, collection) => {
    try {
      const data = service.data();
      const identity = service.identity(request);
      let who = identity instanceof Promise ? await identity : identity;
      const body = kind === "write" ? await bodyText(request, service.settings.maxBodyBytes) : "";
      if (kind === "read") {
        const wait = waits(data, request);
        if (typeof wait !== "number") {
          await wait;
          who = await service.identity(request);
        }
      }
      const startMs = performance.now();
      const context = contextOf(request, who, body);
      const schema = schemaOf(data, kind, collection, context);
      const routed = route(schema, pairsOf(queryStringOf(request.url)), body);
      const outcome = run(data, routed, context);
      const durable = data.engine.durable(kind === "read");
      if (durable !== undefined) await durable;
      service.answered(kind, startMs, routed.statement.text);
      if (kind === "read") return service.answers.ok(routed.body(outcome));
      const headers: Record<string, string> = { "fenec-seq": String(outcome.seq) };
      if (outcome.replayed === true) headers["idempotent-replayed"] = "true";
      return service.answers.json(routed.status, routed.body(outcome), headers);
    } catch (error) {
      service.metrics.error(kind);
      return service.failed(error, request);
    }
  };
}

function schemaOf(data: Data, kind: StatementKind, name: string, context: RequestContext): CollectionSchema {
  // Asked first, as a server that takes no write tells by none of them which collections there are.
  if (kind === "write" && data.engine.readOnly) throw new Refusal("read_only", "this server takes no writes");
  const schema = data.engine.schemaOf(name, context);
  if (schema === undefined) throw noCollection(name);
  return schema;
}

function noCollection(name: string): Refusal {
  const hint = name === "query" || name === "batch" ? `; statements are sent by POST /${name}` : "";
  return new Refusal("unknown_collection", `there is no collection ${JSON.stringify(name)}${hint}`);
}

/** A document's unknown field is a wrong body here, where in a statement it is a wrong name. */
function run(data: Data, routed: Routed, context: RequestContext): Outcome {
  const { text, params } = routed.statement;
  try {
    return data.engine.query(text, params, context);
  } catch (error) {
    if (routed.status === 201 && error instanceof Refusal && error.code === "unknown_field") {
      throw new Refusal("bad_request", error.message, error.data);
    }
    throw error;
  }
}
