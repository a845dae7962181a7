/**
 * What a schema type gives: checked by the compiler alone, never run. A line under `@ts-expect-error` that compiled
 * would fail the check.
 */

import { connect, expr, inc, type Json, or, raw } from "../../src/client/index.ts";

interface Schema {
  jobs: {
    payload: Json<{ to: string; tries?: number; at: { lat: number } }>;
    run_at: "timestamp";
    owner: "text";
    attempts: "int required";
    error: "text";
    labels: "[text]";
    place: "geo";
    serial: "bigint";
  };
  notes: { body: "text required"; meta: "json" };
}

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(proof: Same<A, B>): void {
  void proof;
}

export async function rows(): Promise<void> {
  const db = connect<Schema>("http://127.0.0.1:1");
  const jobs = db.from("jobs");

  for (const job of await jobs.rows()) {
    same<typeof job.id, number>(true);
    same<typeof job.attempts, number>(true);
    same<typeof job.owner, string | null>(true);
    same<typeof job.run_at, string | null>(true);
    same<typeof job.labels, readonly string[] | null>(true);
    same<typeof job.place, readonly [number, number] | null>(true);
    same<typeof job.serial, number | bigint | null>(true);
    const to: string | undefined = job.payload?.to;
    void to;
    // @ts-expect-error a field the collection does not have
    void job.queue;
  }

  const picked = await jobs.select("id", "payload.to", "owner").rows();
  for (const row of picked) {
    same<(typeof row)["payload.to"], string | null>(true);
    same<typeof row.owner, string | null>(true);
    // @ts-expect-error a field the list does not name
    void row.attempts;
  }
  const single = await jobs.select("payload.to").first();
  same<typeof single, { readonly "payload.to": string | null } | null>(true);
  const listed = await jobs.select(["id", "attempts"]).first();
  same<typeof listed, { readonly id: number; readonly attempts: number } | null>(true);
  // @ts-expect-error a field the collection does not have
  jobs.select("queue");

  const counted = await jobs.select("owner", "count(*)").group("owner").rows();
  for (const row of counted) same<typeof row.count, number>(true);
  const scored = await jobs.select("id", expr("attempts * ?", 2).as("score")).rows();
  for (const row of scored) same<typeof row.score, unknown>(true);

  const claimed = await jobs
    .where(raw("run_at <= now()"))
    .limit(1)
    .update({ owner: "w" }, { returning: true, wait: 1 });
  for (const job of claimed) same<typeof job.attempts, number>(true);
  const some = await jobs.where("id", 1).update({ owner: "w" }, { returning: ["id", "payload.at.lat"] });
  for (const job of some) same<(typeof job)["payload.at.lat"], number | null>(true);
  const written = await jobs.where("id", 1).update({ owner: null });
  same<typeof written, number>(true);
  const gone = await jobs.where("id", 1).delete({ returning: ["owner"] });
  for (const job of gone) same<typeof job.owner, string | null>(true);

  // @ts-expect-error a collection the schema does not have
  db.from("tasks");
}

export function filters(): void {
  const jobs = connect<Schema>("http://127.0.0.1:1").from("jobs");
  jobs.where("attempts", 3).where("attempts", ">=", 3).where("attempts", { gte: 1, lt: 5 });
  jobs.where("owner", null).where({ owner: null, attempts: { gt: 0 } });
  jobs.where("run_at", "<=", new Date()).where("run_at", ">", expr("now()")).where("run_at", "!=", null);
  jobs
    .where("owner", "in", ["a", null])
    .where("labels", "has", "urgent")
    .where({ labels: { has: "urgent" } });
  jobs
    .where("payload.to", "ada")
    .where("payload.to", "~", "ada")
    .where(or({ owner: "a" }, raw("run_at is null")));
  jobs.where("place", { distance: { from: [29, 41], lte: 900 } });
  jobs
    .order("run_at")
    .order("payload.to", "desc")
    .order(raw("distance(place, ?)", [29, 41]));
  // @ts-expect-error a number against text
  jobs.where("owner", 3);
  // @ts-expect-error text against a number
  jobs.where("attempts", ">=", "3");
  // @ts-expect-error a boolean against a time
  jobs.where("run_at", true);
  // @ts-expect-error an operator there is not
  jobs.where("attempts", "between", 3);
  // @ts-expect-error a field there is not
  jobs.where("queue", "mail");
  // @ts-expect-error a field there is not, in an object
  jobs.where({ queue: "mail" });
  // @ts-expect-error an operator's value of another type
  jobs.where({ attempts: { gt: "0" } });
  // @ts-expect-error the content of the json field is known
  jobs.where("payload.to", 5);
  // @ts-expect-error one value where a list is meant
  jobs.where("owner", "in", "a");
  // @ts-expect-error no column and no field
  jobs.order("queue");
}

export async function writes(): Promise<void> {
  const db = connect<Schema>("http://127.0.0.1:1");
  const jobs = db.from("jobs");
  await jobs.insert({ payload: { to: "ada", at: { lat: 1 } }, run_at: expr("now()"), attempts: 0 });
  await jobs.insert([{ attempts: 0 }, { attempts: 1, owner: null, serial: 9007199254740993n }], { ifAbsent: true });
  await jobs.where("id", 1).update({ attempts: inc(1), run_at: Date.now(), owner: null, "payload.tries": inc(1) });
  await db.from("notes").upsert({ body: "x", meta: { any: ["thing"] } }, { body: expr("new.body") });
  // @ts-expect-error a required field is left out
  await jobs.insert({ owner: "w" });
  // @ts-expect-error null in a required field
  await jobs.insert({ attempts: null });
  // @ts-expect-error the content of the json field is known
  await jobs.insert({ attempts: 0, payload: { to: 5, at: { lat: 1 } } });
  // @ts-expect-error a field there is not
  await jobs.where("id", 1).update({ queue: "mail" });
  // @ts-expect-error text into a number
  await jobs.where("id", 1).update({ attempts: "1" });
  // @ts-expect-error text is not counted up
  await jobs.where("id", 1).update({ owner: inc(1) });
  // @ts-expect-error a field there is not
  await jobs.where("id", 1).update({ owner: "w" }, { returning: ["queue"] });
}

export async function untyped(): Promise<void> {
  const jobs = connect("http://127.0.0.1:1").from("jobs");
  const claimed = await jobs
    .where(raw("run_at <= now()"))
    .order("run_at")
    .limit(10)
    .update({ owner: "w" }, { returning: true });
  for (const job of claimed) {
    same<typeof job.id, number>(true);
    same<typeof job.payload, unknown>(true);
    void (job.payload as { to: string }).to;
    await jobs.where("id", job.id).where("owner", "w").delete({ require: 1 });
  }
  await jobs.insert({ anything: 1 });
}

export function schemas(): void {
  connect<{ jobs: { n: "int"; at: "timestamp required"; p: Json<string[], true> } }>("http://127.0.0.1:1");
  // @ts-expect-error a word that is no type
  connect<{ jobs: { n: "integer" } }>("http://127.0.0.1:1");
}
