/**
 * Starts the server: flags, wiring, signals. It listens before it opens its data, so that a long recovery is seen
 * (`/_health` says `loading`), and prints its start line once it answers.
 *
 * | exit | why |
 * | ---- | --- |
 * | 0    | stopped by SIGTERM, SIGINT or SIGHUP, everything synced |
 * | 1    | it could not start, or could not sync at the end |
 * | 2    | the command line is wrong |
 * | 70   | an assumption of the server broke: a defect |
 */

import http from "node:http";
import manifest from "../package.json" with { type: "json" };
import { HEADER_BYTES } from "./base/limits.ts";
import { type Clock, TestClock, WallClock } from "./clock/clock.ts";
import { Engine } from "./engine/engine.ts";
import { MemoryJournal } from "./engine/journal.ts";
import { Sweeper } from "./engine/sweeper.ts";
import { addressText, type Flags, helpText, readCommand, UsageError } from "./flags.ts";
import { appOf } from "./http/app.ts";
import { Service } from "./http/service.ts";
import { Log } from "./obs/log.ts";
import { Metrics } from "./obs/metrics.ts";
import { Store } from "./store/store.ts";

/** What is under way when the server is told to stop has this long. */
const STOP_MS = 800;

const log = new Log();

function fail(words: string, status: number): never {
  process.stderr.write(`fenec: ${words}\n`);
  process.exit(status);
}

function commandOf() {
  try {
    return readCommand(process.argv.slice(2), process.env);
  } catch (error) {
    if (error instanceof UsageError) fail(error.message, 2);
    throw error;
  }
}

async function start(flags: Flags): Promise<void> {
  const testClock = flags["test-clock"] ? new TestClock(Date.now()) : null;
  const clock: Clock = testClock ?? new WallClock((byMs) => log.warn("the system's clock was set", { ms: byMs }));
  const service = new Service({
    settings: {
      version: manifest.version,
      maxBodyBytes: flags["max-body"],
      maxConnections: flags["max-connections"],
      maxStreams: flags["max-streams"],
      keepaliveMs: flags.keepalive * 1_000,
      cors: flags.cors,
      slowMs: flags["slow-ms"],
    },
    clock,
    testClock,
    log,
    metrics: new Metrics(clock.now()),
    gate: null,
    broken: () => setImmediate(() => process.exit(70)),
  });

  // The runtime's own bound is 16 KiB; what is larger than ours it answers with 431.
  Object.assign(http, { maxHeaderSize: HEADER_BYTES });
  const app = appOf(service);
  try {
    app.listen({
      hostname: flags.listen.hostname,
      port: flags.listen.port,
      reusePort: false,
      idleTimeout: flags["idle-timeout"],
      // Bodies are held to --max-body by the routes, which say so in the answer.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    });
  } catch (error) {
    const why = error instanceof Error && "code" in error ? String(error.code) : String(error);
    fail(`cannot listen on ${addressText(flags.listen)}: ${why === "EADDRINUSE" ? "the address is in use" : why}`, 1);
  }
  const listener = app.server;
  if (listener === null) fail("the server does not listen", 1);
  service.listener = listener;

  const store = new Store();
  const engine = new Engine({
    store,
    journal: new MemoryJournal(),
    clock,
    seq: 0,
    readOnly: flags["read-only"],
    maxMemoryBytes: flags["max-memory"] ?? Infinity,
    compact: () => {},
  });
  const sweeper = new Sweeper(engine, clock);
  sweeper.start();
  service.ready(engine, null);

  let stops = 0;
  const stop = async (signal: string): Promise<void> => {
    if (++stops > 1) process.exit(1);
    log.info("stopping", { signal });
    service.stop();
    sweeper.stop();
    void listener.stop(false);
    const deadline = performance.now() + STOP_MS;
    while (listener.pendingRequests > 0 && performance.now() < deadline) await Bun.sleep(5);
    service.letGo();
    try {
      await engine.close();
    } catch (error) {
      log.error("the last sync failed", {}, error);
      process.exit(1);
    }
    void listener.stop(true);
    process.exit(0);
  };
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => void stop(signal));

  const tables = store.tables();
  const rows = tables.reduce((sum, table) => sum + table.count, 0);
  const address = addressText({ hostname: flags.listen.hostname, port: listener.port ?? flags.listen.port });
  process.stdout.write(
    `fenec ${manifest.version} listening on http://${address}, data in memory, sync off, ${tables.length} collections, ${rows} rows\n`,
  );
}

const command = commandOf();
if (command.kind === "help") process.stdout.write(helpText());
else if (command.kind === "version") process.stdout.write(`fenec ${manifest.version}\n`);
else await start(command.flags);
