/**
 * A rate limit: so many a minute for each key, counted in a row that `@ttl` takes away when its minute is over. Making
 * the row and counting are one batch, so two callers never both see the last free place.
 */

import { connect, expr, type FenecHttp, inc } from "fenec/client";

export interface Schema {
  hits: { key: "text"; n: "int"; at: "timestamp" };
}

export const COLLECTION = "create collection if not exists hits (key text @unique, n int, at timestamp @ttl(1m))";

/** The places left after this one; null when there was none. */
export async function take(db: FenecHttp<Schema>, key: string, limit: number): Promise<number | null> {
  const hits = db.from("hits");
  const { results } = await db.batch([
    hits.toInsert({ key, n: 0, at: expr("now()") }, { ifAbsent: true }),
    hits
      .where("key", key)
      .where("n", "<", limit)
      .toUpdate({ n: inc(1) }, { returning: ["n"] }),
  ]);
  const row = results[1]?.rows?.[0];
  return row === undefined ? null : limit - Number(row["n"]);
}

if (import.meta.main) {
  const db = connect<Schema>(process.env["FENEC_URL"] ?? "http://127.0.0.1:8080");
  await db.run(COLLECTION);
  for (let call = 1; call <= 5; call++) console.log(call, await take(db, "ada", 3));
}
