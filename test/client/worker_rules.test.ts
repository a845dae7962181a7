/** A worker whose token is held to the rules of the pages: those of docs/access.md, and what docs/worker.md adds to them. */

import { expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect, enqueueMany, JobError, worker } from "../../src/client/index.ts";
import { blocksOf } from "../docs/page.ts";
import { PATIENCE_MS, PROJECT, Scratch, Server } from "../harness/server.ts";
import { signToken } from "../harness/token.ts";

setDefaultTimeout(PATIENCE_MS);

const SECRET = "a secret of more than thirty-two bytes";

function policyOf(page: string): string {
  const blocks = blocksOf(readFileSync(join(PROJECT, "docs", page), "utf8")).filter(({ info }) => info === "policy");
  expect(blocks).toHaveLength(1);
  return blocks[0]?.text ?? "";
}

test("claims, extends, acks, fails, buries and gives back under the rules of the pages", async () => {
  using scratch = new Scratch();
  const policy = join(scratch.path, "policy");
  writeFileSync(policy, `${policyOf("access.md")}\n${policyOf("worker.md")}`);
  const server = await Server.start({
    flags: ["--in-memory", "--token", "root", "--jwt-secret", SECRET, "--policy", policy],
  });
  try {
    const root = connect(server.url, { token: "root" });
    const jobs = root.from("jobs");
    await root.run(
      "create collection jobs (queue text, payload text, run_at timestamp @sorted, owner text, attempts int, error text)",
    );
    const payloads = ["acked once extended", "failed", "buried", "never ends"];
    await enqueueMany(
      jobs,
      payloads.map((payload) => ({ payload, fields: { queue: "mail" } })),
    );

    const exp = Math.floor(Date.now() / 1_000) + 3_600;
    const token = signToken(JSON.stringify({ sub: "w1", role: "worker", queue: "mail", exp }), SECRET);
    const one = worker(
      connect(server.url, { token }).from("jobs"),
      async ({ id, payload, run_at }) => {
        if (payload === "failed") throw new Error("no");
        if (payload === "buried") throw new JobError("never", { dead: true });
        if (payload === "never ends") await new Promise<void>(() => undefined);
        while ((await jobs.where("id", id).first())?.run_at === run_at);
      },
      { owner: "w1", leaseMs: 1_000, backoff: () => 60_000 },
    );
    const told: string[] = [];
    const settled = Promise.withResolvers<void>();
    for (const event of ["done", "failed", "dead", "lost", "released"] as const) {
      one.on(event, (job: { readonly payload: unknown }) => {
        told.push(`${event}: ${job.payload}`);
        if (told.length === 3) settled.resolve();
      });
    }
    one.on("error", (error) => told.push(String(error)));
    await settled.promise;
    await one.stop({ graceMs: 0 });
    expect(told.toSorted()).toEqual([
      "dead: buried",
      "done: acked once extended",
      "failed: failed",
      "released: never ends",
    ]);
    expect(await jobs.select("payload", "owner", "attempts", "error").rows()).toMatchObject([
      { payload: "failed", owner: null, attempts: 1, error: "no" },
      { payload: "buried", owner: null, attempts: 1, error: "never" },
      { payload: "never ends", owner: null, attempts: 0, error: null },
    ]);
  } finally {
    await server.kill();
  }
});
