/** `POST /query` and `POST /batch`: where nearly all requests go, so nothing is made here that an answer has no use for. */

import type { BatchOutcome, BatchRequest, Outcome, RequestContext } from "../engine/contract.ts";
import type { StatementKind } from "../obs/metrics.ts";
import { bodyText, readBatch, readQuery } from "./body.ts";
import { afterOf, contextOf, namesTag, waitOf } from "./request_headers.ts";
import type { Data, Service } from "./service.ts";

export async function answerQuery(service: Service, request: Request): Promise<Response> {
  let text = "";
  try {
    const data = service.data();
    const identity = service.identity(request);
    let who = identity instanceof Promise ? await identity : identity;
    const body = await bodyText(request, service.settings.maxBodyBytes);
    let startMs = performance.now();
    const statement = readQuery(body);
    text = statement.text;
    let holdMs = waits(data, request);
    if (typeof holdMs !== "number") {
      holdMs = await holdMs;
      who = await service.identity(request);
      startMs = performance.now();
    }
    const context = contextOf(request, who, body);

    const sentTag = request.headers.get("if-none-match");
    if (sentTag !== null) return await answerTagged(service, request, data, statement, context, sentTag, startMs);

    const ahead = data.hold?.ahead();
    if (ahead !== undefined && takes(text)) await ahead;
    let outcome: Outcome;
    if (holdMs > 0 && data.hold !== null) {
      const held = data.hold.query(statement, context, holdMs, request.signal);
      if (held instanceof Promise) {
        outcome = await held;
        await data.engine.durable(outcome.isRead);
        service.metrics.heldStatement();
        return answer(service, outcome);
      }
      outcome = held;
    } else outcome = data.engine.query(text, statement.params, context);
    service.audited(request, text, outcome);
    const durable = data.engine.durable(outcome.isRead);
    if (durable !== undefined) await durable;
    service.answered(outcome.isWrite ? "write" : "read", startMs, text);
    return answer(service, outcome);
  } catch (error) {
    if (text !== "") service.metrics.error(kindOf(text));
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
async function answerTagged(
  service: Service,
  request: Request,
  data: Data,
  statement: BatchRequest,
  context: RequestContext,
  sentTag: string,
  startMs: number,
): Promise<Response> {
  const { engine } = data;
  const last = engine.readTag(statement.text, context);
  const tag = last === undefined || context.scope !== null ? undefined : `"${last}"`;
  if (tag !== undefined && namesTag(sentTag, tag)) {
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
  if (context.scope !== null && namesTag(sentTag, etag)) return service.answers.other(304, null, { etag });
  return service.answers.json(200, outcome.body, { etag });
}

export async function answerBatch(service: Service, request: Request): Promise<Response> {
  let read = false;
  let kind: StatementKind = "write";
  try {
    const data = service.data();
    const identity = service.identity(request);
    let who = identity instanceof Promise ? await identity : identity;
    const body = await bodyText(request, service.settings.maxBodyBytes);
    let startMs = performance.now();
    const requests = readBatch(body);
    read = true;
    kind = requests.every(({ text }) => kindOf(text) === "read") ? "read" : "write";
    let holdMs = waits(data, request);
    if (typeof holdMs !== "number") {
      holdMs = await holdMs;
      who = await service.identity(request);
      startMs = performance.now();
    }
    const context = contextOf(request, who, body);
    const ahead = data.hold?.ahead();
    if (ahead !== undefined && requests.some((each) => takes(each.text))) await ahead;
    let outcome: BatchOutcome;
    if (holdMs > 0 && data.hold !== null) {
      const held = data.hold.batch(requests, context, holdMs, request.signal);
      if (held instanceof Promise) {
        outcome = await held;
        await data.engine.durable(outcome.isRead);
        service.metrics.heldStatement();
        return batchAnswer(service, outcome);
      }
      outcome = held;
    } else outcome = data.engine.batch(requests, context);
    if (service.audit !== null) {
      for (const [at, one] of outcome.outcomes.entries()) service.audited(request, requests[at]?.text ?? "", one);
    }
    const durable = data.engine.durable(outcome.isRead);
    if (durable !== undefined) await durable;
    service.answered(kind, startMs, requests[0]?.text ?? "");
    return batchAnswer(service, outcome);
  } catch (error) {
    if (read) service.metrics.error(kind);
    return service.failed(error, request);
  }
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

/** As what a statement that was refused is counted; one that was run says so itself. */
export function kindOf(text: string): StatementKind {
  return /^[\s;]*(get|select|explain|collections|describe)\b/i.test(text) ? "read" : "write";
}

/** A statement that may take what others wait for. */
function takes(text: string): boolean {
  return /^[\s;]*(set|update|del|delete)\b/i.test(text);
}
