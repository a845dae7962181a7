/**
 * The nearest courier: each courier's claim is ordered by the distance from where that courier is. Of the couriers whose
 * claims are held at the server, a new order goes to the one nearest to it.
 */

import { connect, type FenecHttp, not, type Row, raw, type Worker, worker } from "fenec/client";

export type Place = readonly [longitude: number, latitude: number];

export interface Schema {
  orders: {
    dish: "text";
    pickup: "geo";
    declined: "[text]";
    run_at: "timestamp";
    owner: "text";
    attempts: "int";
  };
}
export type Order = Row<Schema["orders"]>;

export const COLLECTION = `
  create collection if not exists orders
    (dish text, pickup geo @geo, declined [text], run_at timestamp @sorted, owner text, attempts int)`;

/**
 * One courier at work, one order at a time.
 * @param place where the courier is now: asked before every claim.
 * @param offer carries the order out; false declines it, and this courier is not offered it again.
 */
export function courier(
  db: FenecHttp<Schema>,
  name: string,
  place: () => Place,
  offer: (order: Order) => Promise<boolean>,
): Worker<Schema["orders"]> {
  return worker(
    () =>
      db
        .from("orders")
        .where("pickup", "!=", null)
        .where(not({ declined: { has: name } }))
        .order(raw("distance(pickup, ?)", place())),
    async (order, { again }) => {
      if (!(await offer(order))) again(0, { declined: [...(order.declined ?? []), name] });
    },
    { name, concurrency: 1 },
  );
}

if (import.meta.main) {
  const db = connect<Schema>(process.env["FENEC_URL"] ?? "http://127.0.0.1:8080");
  await db.run(COLLECTION);
  const one = courier(
    db,
    "ada",
    () => [29.029, 41.049],
    async (order) => {
      console.log(`${order.dish} from ${order.pickup}`);
      return true;
    },
  );
  process.once("SIGTERM", () => void one.stop());
  await one.done;
}
