/**
 * Work at fixed times: one row a schedule, which its own ack moves on to the next time. There is never a second row, so a
 * schedule cannot pile up, and times missed while no worker ran come to one run.
 */

import { connect, type Expr, enqueue, expr, type FenecHttp, JobError, type Worker, worker } from "fenec/client";

export interface Schema {
  schedules: { name: "text"; payload: "json"; run_at: "timestamp"; owner: "text"; attempts: "int"; error: "text" };
}

export const COLLECTION = `
  create collection if not exists schedules
    (name text @unique, payload json, run_at timestamp @sorted, owner text, attempts int, error text)`;

/** Times are worked out by the server, in UTC: no worker's clock or time zone has a say. */
export const NEXT = {
  quarterHour: expr("bucket(now(), 15m) + 900000"),
  /** Two in the morning. */
  nightly: expr("bucket(now() - 7200000, 1d) + 86400000 + 7200000"),
} as const satisfies Record<string, Expr>;

export interface Task {
  readonly next: Expr;
  readonly run: (signal: AbortSignal) => Promise<void>;
}

/** Makes the schedules that are not there yet; every process may do so at its start. */
export async function register(db: FenecHttp<Schema>, tasks: ReadonlyMap<string, Task>): Promise<void> {
  for (const [name, { next }] of tasks) await enqueue(db.from("schedules"), null, { unique: { name }, at: next });
}

export function runSchedules(db: FenecHttp<Schema>, tasks: ReadonlyMap<string, Task>): Worker<Schema["schedules"]> {
  return worker(
    db.from("schedules"),
    async ({ name }, { signal, attempt, again }) => {
      const task = tasks.get(name ?? "");
      // Another version's: it stays until a worker that knows it comes by.
      if (task === undefined) throw new JobError(`no task ${name} here`, { restMs: 60_000 });
      try {
        await task.run(signal);
      } catch (error) {
        // Twice more, a minute apart; then it is left for the next time rather than ending the schedule for good.
        if (attempt < 3) throw new JobError(`${name} failed`, { restMs: 60_000, cause: error });
      }
      again(task.next);
    },
    { name: "schedule", attempts: 1_000_000 },
  );
}

if (import.meta.main) {
  const db = connect<Schema>(process.env["FENEC_URL"] ?? "http://127.0.0.1:8080");
  await db.run(COLLECTION);
  const tasks = new Map<string, Task>([
    ["tidy up", { next: NEXT.nightly, run: async () => console.log("tidied up") }],
    ["report", { next: NEXT.quarterHour, run: async () => console.log("reported") }],
  ]);
  await register(db, tasks);
  const runner = runSchedules(db, tasks);
  process.once("SIGTERM", () => void runner.stop());
  await runner.done;
}
