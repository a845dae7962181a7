/** This server, driven by the same load generator as everywhere. */

import manifest from "../../package.json" with { type: "json" };
import { startServer } from "../child_server.ts";
import { CREATE, drain, fill } from "../load.ts";
import { LoadConnection } from "../load_connection.ts";
import type { Drainer, Peer } from "./peer.ts";

function fenec(sync: string, loses: string): Peer {
  return {
    name: `fenec-${sync}`,
    title: `fenec --sync ${sync}`,
    loses,
    configuration: `--sync ${sync}`,
    way: "POST /query claims ten with returning id, payload; POST /batch acks with ten del ... require 1",
    share: 1,
    missing: () => null,
    version: () => manifest.version,
    start: async () => {
      const server = await startServer({ sync });
      return { address: { port: server.port }, pid: server.pid, stop: server.stop };
    },
    connect: ({ port }, clients, page) => drainerOf(Number(port), clients, page),
  };
}

/** The load generator as a drainer of whatever answers as this server does. */
export async function drainerOf(port: number, clients: number, page: number): Promise<Drainer> {
  const broken = (why: Error): never => {
    throw why;
  };
  const connection = await LoadConnection.open(port, broken);
  const { status, body } = await connection.ask("/query", JSON.stringify({ query: CREATE }));
  if (status !== 200) throw new Error(body);
  let firstId = 1;
  return {
    fill: (jobs) => fill(connection, jobs),
    drain: async (jobs) => {
      await drain({ port, clients, page, jobs, firstId, take: "claim", ack: "batch" });
      firstId += jobs;
    },
    close: async () => connection.close(),
  };
}

export const fenecAlways = fenec("always", "nothing");
export const fenec250 = fenec("250", "a quarter of a second");
