/** `POST /query` and `POST /batch`: where nearly all requests go, so nothing is made here that an answer has no use for. */

import type { BatchOutcome, BatchRequest, EngineContract, Outcome, RequestContext } from "../engine/contract.ts";
import type { StatementKind } from "../obs/metrics.ts";
import { bodyText, readBatch, readQuery } from "./body.ts";
import { afterOf, contextOf, namesTag, waitOf } from "./request_headers.ts";
import type { Hold } from "./seams.ts";
import type { Data, Service } from "./service.ts";

/** What `/query` and `/batch` do each in its own way. */
interface Form<Sent, Ran extends { readonly isRead: boolean }> {
  read(body: string): Sent;
  /** The statement, or the first one. */
  text(sent: Sent): string;
  kind(sent: Sent): StatementKind;
  /** It may take what others wait for. */
  takes(sent: Sent): boolean;
  run(engine: EngineContract, sent: Sent, context: RequestContext): Ran;
  hold(hold: Hold, sent: Sent, context: RequestContext, waitMs: number, gone: AbortSignal): Ran | Promise<Ran>;
  /** Answers one that came with `If-None-Match`; null: that says nothing here. */
  readonly tagged: ((asked: Tagged, sent: Sent) => Promise<Response>) | null;
  audit(service: Service, request: Request, sent: Sent, ran: Ran): void;
  answer(service: Service, ran: Ran): Response;
}

/** A request with `If-None-Match`. */
interface Tagged {
  readonly service: Service;
  readonly request: Request;
  readonly data: Data;
  readonly context: RequestContext;
  readonly tag: string;
  readonly startMs: number;
}

const QUERY: Form<BatchRequest, Outcome> = {
  read: readQuery,
  text: ({ text }) => text,
  kind: ({ text }) => kindOf(text),
  takes: ({ text }) => takes(text),
  run: (engine, { text, params }, context) => engine.query(text, params, context),
  hold: (hold, sent, context, waitMs, gone) => hold.query(sent, context, waitMs, gone),
  tagged: answerTagged,
  audit: (service, request, { text }, ran) => service.audited(request, text, ran),
  answer,
};

const BATCH: Form<readonly BatchRequest[], BatchOutcome> = {
  read: readBatch,
  text: (requests) => requests[0]?.text ?? "",
  kind: (requests) => (requests.every(({ text }) => kindOf(text) === "read") ? "read" : "write"),
  takes: (requests) => requests.some(({ text }) => takes(text)),
  run: (engine, requests, context) => engine.batch(requests, context),
  hold: (hold, requests, context, waitMs, gone) => hold.batch(requests, context, waitMs, gone),
  tagged: null,
  audit: (service, request, requests, { outcomes }) => {
    for (const [at, one] of outcomes.entries()) service.audited(request, requests[at]?.text ?? "", one);
  },
  answer: batchAnswer,
};

export function answerQuery(service: Service, request: Request): Promise<Response> {
  return answerBy(QUERY, service, request);
}

export function answerBatch(service: Service, request: Request): Promise<Response> {
  return answerBy(BATCH, service, request);
}

async function answerBy<Sent, Ran extends { readonly isRead: boolean }>(
  form: Form<Sent, Ran>,
  service: Service,
  request: Request,
): Promise<Response> {
  let sent: Sent | undefined;
  try {
    const data = service.data();
    const identity = service.identity(request);
    let who = identity instanceof Promise ? await identity : identity;
    const body = await bodyText(request, service.settings.maxBodyBytes);
    let startMs = performance.now();
    sent = form.read(body);
    let holdMs = waits(data, request);
    if (typeof holdMs !== "number") {
      holdMs = await holdMs;
      who = await service.identity(request);
      startMs = performance.now();
    }
    const context = contextOf(request, who, body);

    const tag = form.tagged === null ? null : request.headers.get("if-none-match");
    if (form.tagged !== null && tag !== null) {
      return await form.tagged({ service, request, data, context, tag, startMs }, sent);
    }

    const ahead = data.hold?.ahead();
    if (ahead !== undefined && form.takes(sent)) await ahead;
    let ran: Ran;
    if (holdMs > 0 && data.hold !== null) {
      const held = form.hold(data.hold, sent, context, holdMs, request.signal);
      if (held instanceof Promise) {
        ran = await held;
        await data.engine.durable(ran.isRead);
        service.metrics.heldStatement();
        return form.answer(service, ran);
      }
      ran = held;
    } else ran = form.run(data.engine, sent, context);
    if (service.audit !== null) form.audit(service, request, sent, ran);
    const durable = data.engine.durable(ran.isRead);
    if (durable !== undefined) await durable;
    service.answered(form.kind(sent), startMs, form.text(sent));
    return form.answer(service, ran);
  } catch (error) {
    if (sent !== undefined) service.metrics.error(form.kind(sent));
    return service.failed(error, request);
  }
}

/** An empty claim carries no `Fenec-Seq`: clients tell by it that something was written. */
function answer(service: Service, outcome: Outcome): Response {
  if (outcome.replayed === true) {
    return service.answers.json(200, outcome.body, { "fenec-seq": String(outcome.seq), "idempotent-replayed": "true" });
  }
  if (!outcome.isWrite || (outcome.kind === "rows" && outcome.count === 0)) return service.answers.ok(outcome.body);
  return service.answers.at(outcome.seq, outcome.body);
}

/**
 * A read that says which answer it has. The tag is the number of the last change to what it reads, so while that stands
 * nothing is run; a scoped token's is a digest of its rows, as another's writes are not to be seen in it.
 */
async function answerTagged(asked: Tagged, statement: BatchRequest): Promise<Response> {
  const { service, request, context, startMs } = asked;
  const { engine } = asked.data;
  const last = engine.readTag(statement.text, context);
  const tag = last === undefined || context.scope !== null ? undefined : `"${last}"`;
  if (tag !== undefined && namesTag(asked.tag, tag)) {
    await engine.durable(true);
    service.answered("read", startMs, statement.text);
    return service.answers.other(304, null, { etag: tag });
  }
  const outcome = engine.query(statement.text, statement.params, context);
  service.audited(request, statement.text, outcome);
  await engine.durable(outcome.isRead);
  service.answered(outcome.isWrite ? "write" : "read", startMs, statement.text);
  if (outcome.isWrite || last === undefined) return answer(service, outcome);
  const etag = tag ?? `"c${new Bun.CryptoHasher("sha256").update(outcome.body).digest("hex").slice(0, 32)}"`;
  if (context.scope !== null && namesTag(asked.tag, etag)) return service.answers.other(304, null, { etag });
  return service.answers.json(200, outcome.body, { etag });
}

function batchAnswer(service: Service, outcome: BatchOutcome): Response {
  const results = outcome.outcomes.map((one) => one.batchBody).join(",");
  const body = `{"ok":${outcome.outcomes.length},"results":[${results}]}`;
  if (outcome.replayed !== true) return service.answers.at(outcome.seq, body);
  return service.answers.json(200, body, { "fenec-seq": String(outcome.seq), "idempotent-replayed": "true" });
}

/**
 * How long the request may be held: 0 when it does not ask. One with `Fenec-After` is never held; a promise is its wait
 * for that change, and who asks is to be asked again behind it, as a token may have run out.
 */
export function waits(data: Data, request: Request): number | Promise<number> {
  const waitMs = waitOf(request);
  const after = afterOf(request, waitMs);
  if (after === undefined) return waitMs ?? 0;
  const reached = data.sequence.until(after.seq, after.patienceMs, request.signal);
  return reached === undefined ? 0 : reached.then(() => 0);
}

/** As what a statement is counted. */
function kindOf(text: string): StatementKind {
  return /^[\s;]*(get|select|explain|collections|describe)\b/i.test(text) ? "read" : "write";
}

/** A statement that may take what others wait for. */
function takes(text: string): boolean {
  return /^[\s;]*(set|update|del|delete)\b/i.test(text);
}
