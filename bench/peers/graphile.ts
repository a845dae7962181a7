/** graphile-worker on PostgreSQL, with its local queue and batched completion: its fastest set-up. */

import { payloadOf } from "../load.ts";
import { type Drainer, loadPackage, PACKAGES, type Peer, packageVersion } from "./peer.ts";
import { openPg, postgresMissing, postgresVersion, startPostgres } from "./postgres.ts";

const FILL_PAGE = 1_000;
const LOCAL_QUEUE = 500;

interface Graphile {
  run(options: {
    readonly connectionString: string;
    readonly taskList: Readonly<Record<string, () => Promise<void>>>;
    readonly preset: {
      readonly worker: {
        readonly concurrentJobs: number;
        readonly maxPoolSize: number;
        readonly pollInterval: number;
        readonly completeJobBatchDelay: number;
        readonly failJobBatchDelay: number;
        readonly localQueue: { readonly size: number };
      };
    };
    readonly noHandleSignals: boolean;
    readonly logger: unknown;
  }): Promise<{ stop(): Promise<void> }>;
  runMigrations(options: { readonly connectionString: string; readonly logger: unknown }): Promise<void>;
  readonly Logger: new (factory: () => () => void) => unknown;
}

async function connect(url: string, clients: number): Promise<Drainer> {
  const { run, runMigrations, Logger } = await loadPackage<Graphile>("graphile-worker");
  const logger = new Logger(() => () => {});
  await runMigrations({ connectionString: url, logger });
  const filler = await openPg(url);
  return {
    fill: async (jobs) => {
      for (let from = 0; from < jobs; from += FILL_PAGE) {
        const payloads: string[] = [];
        for (let job = from; job < Math.min(jobs, from + FILL_PAGE); job++) payloads.push(payloadOf(job));
        const text = "select count(graphile_worker.add_job('job', p::json)) from unnest($1::text[]) p";
        await filler.query({ name: "fill", text, values: [payloads] });
      }
    },
    drain: async (jobs) => {
      let ran = 0;
      const { promise, resolve } = Promise.withResolvers<void>();
      const runner = await run({
        connectionString: url,
        taskList: {
          job: async () => {
            if (++ran === jobs) resolve();
          },
        },
        preset: {
          worker: {
            concurrentJobs: clients,
            maxPoolSize: clients + 2,
            pollInterval: 100,
            completeJobBatchDelay: 0,
            failJobBatchDelay: 0,
            localQueue: { size: LOCAL_QUEUE },
          },
        },
        noHandleSignals: true,
        logger,
      });
      await promise;
      // Stopping is what waits for the last completions.
      await runner.stop();
      const { rows } = await filler.query("select id from graphile_worker._private_jobs limit 1");
      if (ran !== jobs || rows.length > 0) throw new Error(`${ran} of ${jobs} jobs were run, ${rows.length} left`);
    },
    close: () => filler.end(),
  };
}

export const graphile: Peer = {
  name: "graphile-worker",
  title: "graphile-worker, batched completion",
  loses: "nothing; a worker that dies holds up to 500 jobs of its local queue for four hours",
  configuration: `synchronous_commit on; concurrentJobs 16, localQueue.size ${LOCAL_QUEUE}, completeJobBatchDelay 0`,
  way: "its own runner: jobs are fetched 500 at a time into the process, completions are gathered",
  share: 0.5,
  missing: () => postgresMissing() ?? (packageVersion("graphile-worker") === null ? PACKAGES : null),
  version: () => `graphile-worker ${packageVersion("graphile-worker")}, ${postgresVersion()}`,
  start: (directory) => startPostgres(directory, "on"),
  connect: ({ url }, clients) => connect(String(url), clients),
};
