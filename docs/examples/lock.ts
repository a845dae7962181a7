/**
 * A lock that frees itself: a row whose name is unique, and whose `@ttl` lets it go when its holder no longer renews it.
 * Whoever holds it past that time may not know yet; what must never happen twice needs a check of its own.
 */

import { connect, expr, type FenecHttp } from "fenec/client";

export interface Schema {
  locks: { name: "text"; owner: "text"; at: "timestamp" };
}

export const COLLECTION =
  "create collection if not exists locks (name text @unique, owner text, at timestamp @ttl(30s))";

/** Whether the lock is this owner's now. */
export async function acquire(db: FenecHttp<Schema>, name: string, owner: string): Promise<boolean> {
  return (await db.from("locks").insert({ name, owner, at: expr("now()") }, { ifAbsent: true })) === 1;
}

/** Another 30 s; false when the lock was lost. */
export async function renew(db: FenecHttp<Schema>, name: string, owner: string): Promise<boolean> {
  return (
    (await db
      .from("locks")
      .where({ name, owner })
      .update({ at: expr("now()") })) === 1
  );
}

export async function release(db: FenecHttp<Schema>, name: string, owner: string): Promise<boolean> {
  return (await db.from("locks").where({ name, owner }).delete()) === 1;
}

/** Runs the work if the lock is free, and renews the lock meanwhile; the signal tells of its loss. */
export async function withLock(
  db: FenecHttp<Schema>,
  name: string,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<boolean> {
  const owner = crypto.randomUUID();
  if (!(await acquire(db, name, owner))) return false;
  const lost = new AbortController();
  const lose = () => lost.abort(new Error(`the lock ${name} was lost`));
  let unanswered = 0;
  const renewal = setInterval(async () => {
    // A server that does not answer cannot say so, but three times 10 s without a renewal are the lock's 30.
    if (++unanswered === 3) lose();
    const held = await renew(db, name, owner).catch(() => undefined);
    if (held === false) lose();
    else if (held) unanswered = 0;
  }, 10_000);
  try {
    await work(lost.signal);
  } finally {
    clearInterval(renewal);
    await release(db, name, owner);
  }
  return true;
}

if (import.meta.main) {
  const db = connect<Schema>(process.env["FENEC_URL"] ?? "http://127.0.0.1:8080");
  await db.run(COLLECTION);
  const ran = await withLock(db, "nightly", async () => console.log("alone"));
  if (!ran) console.log("somebody else is at it");
}
