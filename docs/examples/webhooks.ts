/**
 * Webhook delivery: each event is posted to its receiver until that one takes it. A receiver that asks for a pause gets
 * it, one that is gone for good is not asked again, and the rest are tried for about a day, less and less often.
 */

import {
  connect,
  enqueue,
  exponential,
  expr,
  type FenecHttp,
  JobError,
  type Json,
  type Worker,
  worker,
} from "fenec/client";

export interface Delivery {
  readonly url: string;
  readonly event: Readonly<Record<string, unknown>>;
}

export interface Schema {
  deliveries: { payload: Json<Delivery, true>; run_at: "timestamp"; owner: "text"; attempts: "int"; error: "text" };
}

export const COLLECTION = `
  create collection if not exists deliveries
    (payload json required, run_at timestamp @sorted, owner text, attempts int, error text)`;

export function notify(db: FenecHttp<Schema>, url: string, event: Delivery["event"]): Promise<boolean> {
  return enqueue(db.from("deliveries"), { url, event });
}

export function deliver(db: FenecHttp<Schema>): Worker<Schema["deliveries"]> {
  return worker(
    db.from("deliveries"),
    async ({ id, payload: { url, event } }, { signal }) => {
      const response = await fetch(url, {
        method: "POST",
        // A delivery can be made twice; the receiver knows the second by its id.
        headers: { "Content-Type": "application/json", "Webhook-Id": String(id) },
        body: JSON.stringify(event),
        signal: AbortSignal.any([signal, AbortSignal.timeout(10_000)]),
      });
      await response.body?.cancel();
      if (response.ok) return;
      const words = `${url} answered ${response.status}`;
      if (response.status === 410) throw new JobError(words, { dead: true });
      const pause = Number(response.headers.get("Retry-After"));
      throw pause > 0 ? new JobError(words, { restMs: pause * 1_000 }) : new Error(words);
    },
    {
      name: "webhooks",
      concurrency: 50,
      attempts: 12,
      // 5 s, 10 s, 20 s, ... up to 6 h, each up to half as long again.
      backoff: exponential({ baseMs: 5_000, maxMs: 6 * 3_600_000 }),
    },
  );
}

/** What was never taken, the newest first: to be looked at, and sent again by `resend`. */
export function undelivered(db: FenecHttp<Schema>) {
  return db.from("deliveries").where("run_at", null).order("id", "desc").select("id", "payload", "error").rows();
}

export function resend(db: FenecHttp<Schema>, id: number): Promise<number> {
  const dead = db.from("deliveries").where({ id, run_at: null });
  return dead.update({ run_at: expr("now()"), attempts: 0, error: null }, { require: 1 });
}

if (import.meta.main) {
  const db = connect<Schema>(process.env["FENEC_URL"] ?? "http://127.0.0.1:8080");
  await db.run(COLLECTION);
  const deliverer = deliver(db);
  deliverer.on("dead", ({ id, payload }, error) => console.error(`${payload.url} never took ${id}: ${error}`));
  process.once("SIGTERM", () => void deliverer.stop());
  await deliverer.done;
}
