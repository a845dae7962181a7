/** The client process of one peer: fills and drains, the first time to warm up, and prints what each drain took. */

import { PEERS } from "./all.ts";
import type { Address } from "./peer.ts";

export interface ClientPlan {
  readonly peer: string;
  readonly address: Address;
  readonly clients: number;
  readonly page: number;
  /** Jobs of each fill and drain. */
  readonly drains: readonly number[];
}

/** A line of json, a drain, as it ends. */
export interface ClientLine {
  readonly jobs: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
}

if (import.meta.main) {
  const plan = JSON.parse(process.argv[2] ?? "{}") as ClientPlan;
  const peer = PEERS.find(({ name }) => name === plan.peer);
  if (peer === undefined) throw new Error(`no peer ${plan.peer}`);
  const drainer = await peer.connect(plan.address, plan.clients, plan.page);
  for (const jobs of plan.drains) {
    await drainer.fill(jobs);
    process.stdout.write("filled\n");
    // Whoever started this reads the server's clock meanwhile.
    await Bun.sleep(200);
    const before = process.cpuUsage();
    const startedMs = performance.now();
    await drainer.drain(jobs);
    const seconds = (performance.now() - startedMs) / 1_000;
    const cpu = process.cpuUsage(before);
    const line: ClientLine = { jobs, seconds, cpuSeconds: (cpu.user + cpu.system) / 1e6 };
    process.stdout.write(`${JSON.stringify(line)}\n`);
    await Bun.sleep(200);
  }
  await drainer.close();
  process.exit(0);
}
