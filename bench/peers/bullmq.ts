/** BullMQ on Redis, driven by its own Worker. */

import { payloadOf } from "../load.ts";
import { type Drainer, loadPackage, PACKAGES, type Peer, packageVersion } from "./peer.ts";
import { type Appendfsync, redisMissing, redisVersion, startRedis } from "./redis.ts";

interface Connection {
  readonly host: string;
  readonly port: number;
  readonly maxRetriesPerRequest: null;
}

interface BullMq {
  readonly Queue: new (
    name: string,
    options: { connection: Connection },
  ) => {
    addBulk(jobs: readonly { name: string; data: unknown }[]): Promise<unknown>;
    waitUntilReady(): Promise<unknown>;
    close(): Promise<void>;
  };
  readonly Worker: new (
    name: string,
    work: () => Promise<void>,
    options: { connection: Connection; concurrency: number; autorun: boolean; removeOnComplete: { count: number } },
  ) => {
    on(event: "completed" | "failed" | "error", listener: (first: unknown, second: unknown) => void): unknown;
    run(): Promise<void>;
    waitUntilReady(): Promise<unknown>;
    close(force?: boolean): Promise<void>;
  };
}

const FILL_PAGE = 1_000;

async function connect(port: number, clients: number, page: number): Promise<Drainer> {
  const { Queue, Worker } = await loadPackage<BullMq>("bullmq");
  const connection: Connection = { host: "127.0.0.1", port, maxRetriesPerRequest: null };
  const queue = new Queue("jobs", { connection });
  await queue.waitUntilReady();
  return {
    fill: async (jobs) => {
      for (let from = 0; from < jobs; from += FILL_PAGE) {
        const bulk: { name: string; data: unknown }[] = [];
        for (let job = from; job < Math.min(jobs, from + FILL_PAGE); job++) {
          bulk.push({ name: "job", data: JSON.parse(payloadOf(job)) });
        }
        await queue.addBulk(bulk);
      }
    },
    drain: async (jobs) => {
      let completed = 0;
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const worker = new Worker("jobs", async () => {}, {
        connection,
        concurrency: clients * page,
        autorun: false,
        removeOnComplete: { count: 0 },
      });
      worker.on("completed", () => {
        if (++completed === jobs) resolve();
      });
      worker.on("failed", (_, error) => reject(error));
      worker.on("error", (error) => reject(error));
      await worker.waitUntilReady();
      worker.run().catch(reject);
      await promise;
      await worker.close(true);
    },
    close: () => queue.close(),
  };
}

function bullmq(appendfsync: Appendfsync, loses: string): Peer {
  return {
    name: `bullmq-${appendfsync}`,
    title: `BullMQ, Redis appendfsync ${appendfsync}`,
    loses,
    configuration: `appendonly yes, appendfsync ${appendfsync}; a Worker of concurrency 160, removeOnComplete`,
    way: "its own Worker; it takes and completes one job a call, 160 calls at once",
    share: 0.2,
    missing: () => redisMissing() ?? (packageVersion("bullmq") === null ? PACKAGES : null),
    version: () => `BullMQ ${packageVersion("bullmq")}, ioredis ${packageVersion("ioredis")}, ${redisVersion()}`,
    start: (directory) => startRedis(directory, appendfsync),
    connect: ({ port }, clients, page) => connect(Number(port), clients, page),
  };
}

export const bullmqAlways = bullmq("always", "nothing");
export const bullmqEverysec = bullmq("everysec", "up to two seconds");
