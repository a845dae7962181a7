/** Counters: each change is one statement, so none is lost however many count at once. */

import { connect, expr, type FenecHttp } from "fenec/client";

export interface Schema {
  counters: { name: "text required"; n: "int required" };
}

export const COLLECTION = "create collection if not exists counters (name text required @unique, n int required)";

/** Adds to a counter, making it where it is not there yet. */
export async function count(db: FenecHttp<Schema>, name: string, by = 1): Promise<void> {
  await db.from("counters").upsert({ name, n: by }, { n: expr("n + new.n") });
}

export async function read(db: FenecHttp<Schema>, name: string): Promise<number> {
  return (await db.from("counters").where("name", name).first())?.n ?? 0;
}

/** Numbers nobody else gets, such as those of invoices: so many in a row; the first of them. */
export async function reserve(db: FenecHttp<Schema>, name: string, howMany: number): Promise<number> {
  const counters = db.from("counters");
  const { results } = await db.batch([
    counters.toUpsert({ name, n: howMany }, { n: expr("n + new.n") }),
    counters.where("name", name).select("n"),
  ]);
  return Number(results[1]?.rows?.[0]?.["n"]) - howMany + 1;
}

if (import.meta.main) {
  const db = connect<Schema>(process.env["FENEC_URL"] ?? "http://127.0.0.1:8080");
  await db.run(COLLECTION);
  await Promise.all(Array.from({ length: 100 }, () => count(db, "clicks")));
  console.log("clicks", await read(db, "clicks"));
  console.log("invoices from", await reserve(db, "invoices", 10));
}
