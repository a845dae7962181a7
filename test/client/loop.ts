/**
 * A worker's loop written by hand, from the builder's calls alone: claim a batch, held at the server until there is one,
 * run each job, ack it or give it back with a backoff.
 */

import { connect, expr, inc, raw } from "fenec/client";

/** @param send the work. @param stop ends the loop; the claim that is held then is given up. */
export async function loop(url: string, send: (to: unknown) => Promise<void>, stop: AbortSignal): Promise<void> {
  const db = connect(url, { token: "a worker token" });
  const jobs = db.from("jobs");
  const me = `w-${crypto.randomUUID()}`;

  while (!stop.aborted) {
    const owner = `${me}:${Date.now()}`;
    const claimed = await jobs
      .where(raw("run_at <= now()"))
      .order("run_at")
      .limit(10)
      .update(
        { owner, run_at: expr("now() + ?", 30000), attempts: inc(1) },
        { returning: true, wait: 30000, signal: stop },
      )
      .catch((error: unknown) => {
        if (stop.aborted) return [];
        throw error;
      });
    for (const job of claimed) {
      try {
        await send((job.payload as { to: string }).to);
        await jobs.where("id", job.id).where("owner", owner).delete({ require: 1 });
      } catch {
        const backoff = 10 * 2 ** Number(job.attempts);
        await jobs
          .where("id", job.id)
          .where("owner", owner)
          .update({ owner: null, run_at: expr("now() + ?", backoff) }, { require: 1 })
          .catch(() => {});
      }
    }
  }
}
