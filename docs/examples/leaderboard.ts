/** A leaderboard: an ordered index gives the best, and a player's rank by counting those ahead. */

import { connect, expr, type FenecHttp } from "fenec/client";

export interface Schema {
  scores: { player: "text required"; score: "int required" };
}

export const COLLECTION =
  "create collection if not exists scores (player text required @unique, score int required @sorted)";

/** Adds points; a player who is new starts with them. */
export async function score(db: FenecHttp<Schema>, player: string, points: number): Promise<void> {
  await db.from("scores").upsert({ player, score: points }, { score: expr("score + new.score") });
}

/** The best, the highest score first. */
export function best(db: FenecHttp<Schema>, count: number) {
  return db.from("scores").select("player", "score").order("score", "desc").limit(count).rows();
}

/** From 1; players of one score share a rank. Null for who has none. */
export async function rank(db: FenecHttp<Schema>, player: string): Promise<number | null> {
  const own = await db.from("scores").where("player", player).first();
  return own === null ? null : 1 + (await db.from("scores").where("score", ">", own.score).count());
}

if (import.meta.main) {
  const db = connect<Schema>(process.env["FENEC_URL"] ?? "http://127.0.0.1:8080");
  await db.run(COLLECTION);
  for (const [player, points] of [
    ["ada", 120],
    ["bo", 90],
    ["cy", 70],
    ["bo", 40],
  ] as const)
    await score(db, player, points);
  console.table(await best(db, 10));
  console.log("ada is", await rank(db, "ada"));
}
