/** The same HTTP without a queue behind it: the most that a server on this runtime could hand out. */

import { join } from "node:path";
import manifest from "../../package.json" with { type: "json" };
import { freePort, listening, startChild } from "../processes.ts";
import { drainerOf } from "./fenec.ts";
import type { Peer } from "./peer.ts";

export const bare: Peer = {
  name: "bare",
  title: "Elysia alone, nothing read or kept",
  loses: "everything: no queue",
  configuration: "the same routes, answered from a counter",
  way: "the same requests, and answers of the same length",
  share: 1,
  missing: () => null,
  version: () => `elysia ${manifest.dependencies.elysia}`,
  start: async (directory) => {
    const port = freePort();
    const child = startChild([process.execPath, join(import.meta.dir, "bare_server.ts"), String(port)], directory);
    await listening(port);
    return { address: { port }, pid: child.pid, stop: () => child.end() };
  },
  connect: ({ port }, clients, page) => drainerOf(Number(port), clients, page),
};
