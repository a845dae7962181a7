/** bunqueue as a server over its SQLite file, driven by its own Worker. */

import { join } from "node:path";
import { payloadOf } from "../load.ts";
import { freePort, listening, startChild } from "../processes.ts";
import { type Drainer, loadPackage, PACKAGES, type Peer, packageVersion } from "./peer.ts";

interface Connection {
  readonly host: string;
  readonly port: number;
}

interface Bunqueue {
  readonly Queue: new (
    name: string,
    options: { connection: Connection },
  ) => {
    addBulk(jobs: readonly { name: string; data: unknown; opts: { removeOnComplete: boolean } }[]): Promise<unknown>;
    close(): Promise<void> | void;
  };
  readonly Worker: new (
    name: string,
    work: () => Promise<unknown>,
    options: {
      connection: Connection;
      concurrency: number;
      batchSize: number;
      autorun: boolean;
      removeOnComplete: boolean;
    },
  ) => {
    on(event: "completed" | "failed" | "error", listener: (first: unknown, second: unknown) => void): unknown;
    run(): unknown;
    close(force?: boolean): Promise<void>;
  };
}

const FILL_PAGE = 1_000;
const BATCH = 100;
const CLI = join(import.meta.dir, "node_modules", "bunqueue", "dist", "cli", "index.js");

async function connect(port: number, clients: number, page: number): Promise<Drainer> {
  const { Queue, Worker } = await loadPackage<Bunqueue>("bunqueue/client");
  const connection: Connection = { host: "127.0.0.1", port };
  const queue = new Queue("jobs", { connection });
  return {
    fill: async (jobs) => {
      for (let from = 0; from < jobs; from += FILL_PAGE) {
        const bulk: { name: string; data: unknown; opts: { removeOnComplete: boolean } }[] = [];
        for (let job = from; job < Math.min(jobs, from + FILL_PAGE); job++) {
          bulk.push({ name: "job", data: JSON.parse(payloadOf(job)), opts: { removeOnComplete: true } });
        }
        await queue.addBulk(bulk);
      }
    },
    drain: async (jobs) => {
      let completed = 0;
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const worker = new Worker("jobs", async () => ({}), {
        connection,
        concurrency: clients * page,
        batchSize: BATCH,
        autorun: false,
        removeOnComplete: true,
      });
      worker.on("completed", () => {
        if (++completed === jobs) resolve();
      });
      worker.on("failed", (_, error) => reject(error));
      worker.on("error", (error) => reject(error));
      worker.run();
      await promise;
      await worker.close(true);
    },
    close: async () => {
      await queue.close();
    },
  };
}

export const bunqueue: Peer = {
  name: "bunqueue",
  title: "bunqueue server, SQLite",
  loses: "everything since the last checkpoint: synchronous NORMAL, and writes are gathered",
  configuration: "start --data-path <file>; a Worker of concurrency 160, batchSize 100",
  way: "its own Worker over TCP; it takes a hundred a call and gathers acks",
  share: 0.1,
  missing: () => (packageVersion("bunqueue") === null ? PACKAGES : null),
  version: () => `bunqueue ${packageVersion("bunqueue")}`,
  start: async (directory) => {
    const port = freePort();
    const ports = ["--host", "127.0.0.1", "--tcp-port", String(port), "--http-port", String(freePort())];
    const data = ["--data-path", join(directory, "jobs.db")];
    const child = startChild([process.execPath, CLI, "start", ...ports, ...data], directory);
    await listening(port);
    return { address: { port }, pid: child.pid, stop: () => child.end() };
  },
  connect: ({ port }, clients, page) => connect(Number(port), clients, page),
};
