/**
 * Starts the server: flags, wiring, signals. It listens before it opens its data, so that a long recovery is seen
 * (`/_health` says `loading`), and prints its start line once it answers.
 *
 * | exit | why |
 * | ---- | --- |
 * | 0    | stopped by SIGTERM, SIGINT or SIGHUP, everything synced |
 * | 1    | it could not start, or could not sync at the end, or was told twice to stop |
 * | 2    | a flag, its variable, or the file it names is wrong |
 * | 70   | an assumption of the server broke: a defect |
 */

import { openSync, writeSync } from "node:fs";
import http from "node:http";
import manifest from "../package.json" with { type: "json" };
import { Audit } from "./auth/audit.ts";
import { KeyError } from "./auth/keys.ts";
import { mintToken } from "./auth/mint.ts";
import { type Given, type KeySources, type OpenedGate, openGate, openKeys } from "./auth/open_gate.ts";
import { type Policy, PolicyError } from "./auth/policy.ts";
import { AssertionFailure } from "./base/assert.ts";
import { HEADER_BYTES } from "./base/limits.ts";
import { type Clock, TestClock, WallClock } from "./clock/clock.ts";
import { Database } from "./engine/database.ts";
import { misfit } from "./exec/rules.ts";
import { addressText, type FlagName, type Flags, helpText, type Named, readCommand, UsageError } from "./flags.ts";
import { HeldClaims } from "./hold/held_claims.ts";
import { appOf } from "./http/app.ts";
import { Service } from "./http/service.ts";
import { type Disk, fileDisk } from "./log/disk.ts";
import { Log } from "./obs/log.ts";
import { Metrics } from "./obs/metrics.ts";
import { FUNCTION_NAMES } from "./plan/functions.ts";
import type { Store } from "./store/store.ts";

/** What is under way when the server is told to stop has this long. */
const STOP_MS = 800;
const EXIT_REFUSED = 1;
const EXIT_USAGE = 2;
const EXIT_DEFECT = 70;

const log = new Log();

function fail(words: string, status: number): never {
  process.stderr.write(`fenec: ${words}\n`);
  process.exit(status);
}

async function openDatabase(flags: Flags, named: Named, clock: Clock, service: Service): Promise<Database> {
  let done = 0;
  service.loading(() => done);
  const options = {
    clock,
    readOnly: flags["read-only"],
    maxMemoryBytes: flags["max-memory"] ?? Infinity,
    idempotencyTtlMs: flags["idempotency-ttl"] * 1_000,
  };
  if (flags["in-memory"]) return Database.inMemory(options);
  const database = await Database.open(dataDirectory(flags, named), {
    ...options,
    sync: flags.sync,
    segmentBytes: flags["segment-bytes"],
    reserveBytes: flags["reserve-bytes"],
    snapshotBytes: flags["snapshot-bytes"],
    snapshotMs: flags["snapshot-seconds"] * 1_000,
    onProgress: (share) => {
      done = share;
    },
    onSnapshot: (taken) => log.info("snapshot", { file: taken.name, bytes: taken.bytes, ms: Math.round(taken.tookMs) }),
    onSnapshotFailed: (why) => {
      if (why instanceof AssertionFailure) broke(why);
      log.error("a snapshot could not be written", { why: String(why) });
    },
  });
  for (const { file, found } of database.passedOver) log.warn("a snapshot was passed over", { file, why: found });
  const tornTail = database.log?.tornTail ?? null;
  if (tornTail !== null) log.warn("a torn frame at the end of the log was cut", { ...tornTail });
  const unfinished = database.log?.unfinished ?? null;
  if (unfinished !== null) log.warn("a segment of the log that was not finished was removed", { file: unfinished });
  return database;
}

function listen(flags: Flags, named: Named, service: Service) {
  // The runtime's own bound is 16 KiB; what is larger than ours it answers with 431.
  Object.assign(http, { maxHeaderSize: HEADER_BYTES });
  const app = appOf(service);
  try {
    app.listen({
      hostname: flags.listen.hostname,
      port: flags.listen.port,
      // With it a second server on the port would start, and take a share of the connections.
      reusePort: false,
      idleTimeout: flags["idle-timeout"],
      // Bodies are held to --max-body by the routes, which say so in the answer.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    });
  } catch (error) {
    const why = codeOf(error) ?? String(error);
    const address = addressText(flags.listen);
    if (why === "EADDRINUSE") fail(`cannot listen on ${address}: the address is in use`, EXIT_REFUSED);
    fail(`${named("listen")} ${address}: it cannot listen there (${why})`, EXIT_USAGE);
  }
  const listener = app.server;
  if (listener === null) fail("cannot listen", EXIT_REFUSED);
  service.listener = listener;
  return listener;
}

/** The directory, held for this process. */
function dataDirectory(flags: Flags, named: Named): Disk {
  try {
    return fileDisk(flags.data);
  } catch (error) {
    const code = codeOf(error);
    if (code === undefined) throw error;
    return fail(`${named("data")}: ${flags.data} cannot be the data directory (${code})`, EXIT_USAGE);
  }
}

/** `ENOENT`, `EACCES` and the like, of the system's own errors. */
function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

async function start(flags: Flags, named: Named): Promise<void> {
  const testClock = flags["test-clock"] ? new TestClock(Date.now()) : null;
  const clock = testClock ?? new WallClock((byMs) => log.warn("the system's clock was set", { ms: Math.round(byMs) }));
  const addressOf = (request: Request): string => listener?.requestIP(request)?.address ?? "";
  const { gate, policy } = await openAccess(flags, named, clock, addressOf);
  const audit = givenFlag(flags, named, "audit");
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
    gate,
    audit: audit === null ? null : new Audit({ write: auditFile(audit), now: () => clock.now(), addressOf }),
    broken: () => setImmediate(() => process.exit(EXIT_DEFECT)),
  });
  const listener: ReturnType<typeof listen> | undefined = listen(flags, named, service);

  let database: Database | undefined;
  let told = false;
  const stop = async (signal: string): Promise<void> => {
    // Told twice, or with nothing open yet: now.
    if (told) process.exit(EXIT_REFUSED);
    told = true;
    log.info("stopping", { signal });
    service.stop();
    void listener.stop(false);
    const deadline = performance.now() + STOP_MS;
    while (listener.pendingRequests > 0 && performance.now() < deadline) await Bun.sleep(5);
    service.letGo();
    try {
      await database?.close();
    } catch (error) {
      log.error("stopped, and not all is on disk", { why: String(error) });
      process.exit(EXIT_REFUSED);
    }
    process.exit(0);
  };
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => void stop(signal));

  try {
    database = await openDatabase(flags, named, clock, service);
  } catch (error) {
    fail(error instanceof Error ? error.message : String(error), EXIT_REFUSED);
  }
  if (told) return;
  const { engine } = database;
  const held = new HeldClaims(engine, clock);
  held.served = (delayMs) => service.metrics.heldWoken(delayMs / 1_000);
  service.ready(engine, held);
  warnOfMisfits(policy, engine.store);

  const tables = engine.store.tables();
  const rows = tables.reduce((sum, table) => sum + table.count, 0);
  const address = addressText({ hostname: flags.listen.hostname, port: listener.port ?? flags.listen.port });
  const where = flags["in-memory"] ? "data in memory, sync off" : `data in ${flags.data}, sync ${syncText(flags)}`;
  process.stdout.write(
    `fenec ${manifest.version} listening on http://${address}, ${where}, ${tables.length} collections, ${rows} rows\n`,
  );
}

/** Who may ask, as the flags say; a file that is not understood stops the start. */
async function openAccess(
  flags: Flags,
  named: Named,
  clock: Clock,
  addressOf: (request: Request) => string,
): Promise<OpenedGate> {
  try {
    return await openGate({
      ...keySources(flags, named),
      token: givenFlag(flags, named, "token"),
      policyFile: givenFlag(flags, named, "policy"),
      requireExp: flags["jwt-require-exp"],
      maxAgeSeconds: flags["jwt-max-age"],
      delayMs: flags["auth-delay"],
      readOnly: flags["read-only"],
      cors: flags.cors,
      functions: FUNCTION_NAMES,
      now: () => clock.now(),
      addressOf,
      warn: (words) => log.warn(words),
    });
  } catch (error) {
    return stopped(error);
  }
}

async function mint(flags: Flags, named: Named, claims: Given): Promise<void> {
  const keys = await openKeys(keySources(flags, named), (words) => log.warn(words)).catch(stopped);
  try {
    if (keys === null) throw new KeyError("it is signed with the secret of --jwt-secret-file or --jwt-keys");
    process.stdout.write(`${await mintToken(claims.value, keys, Date.now())}\n`);
  } catch (error) {
    if (error instanceof KeyError) fail(`${claims.by}: ${error.message}`, EXIT_USAGE);
    throw error;
  }
}

function stopped(error: unknown): never {
  if (error instanceof KeyError || error instanceof PolicyError) fail(error.message, EXIT_USAGE);
  throw error;
}

function keySources(flags: Flags, named: Named): KeySources {
  return {
    secret: givenFlag(flags, named, "jwt-secret"),
    secretFile: givenFlag(flags, named, "jwt-secret-file"),
    keysFile: givenFlag(flags, named, "jwt-keys"),
  };
}

/** A flag that is a text, or null when nobody says. */
type TextFlag = { [name in FlagName]: Flags[name] extends string | null ? name : never }[FlagName];

function givenFlag(flags: Flags, named: Named, name: TextFlag): Given | null {
  const value = flags[name];
  return value === null ? null : { value, by: named(name) };
}

/** Lines are written at once: what was refused is to be read even after a crash. */
function auditFile({ value: path, by }: Given): (line: string) => void {
  let file: number;
  try {
    file = openSync(path, "a", 0o600);
  } catch (error) {
    fail(`${by}: the file ${path} cannot be written (${codeOf(error) ?? String(error)})`, EXIT_USAGE);
  }
  let failed = false;
  return (line) => {
    try {
      writeSync(file, line);
      failed = false;
    } catch (error) {
      if (!failed) log.error("the audit file takes no lines", { file: path, why: String(error) });
      failed = true;
    }
  };
}

/** A rule that does not fit its collection grants nothing there, and whoever wrote it should know. */
function warnOfMisfits(policy: Policy, store: Store): void {
  for (const { collection, line, where, readsNew, fields } of policy.rules) {
    const table = store.table(collection);
    if (table === undefined) continue;
    const unknown = [...(fields ?? [])].find((name) => table.slotOf(name) === undefined);
    const why = misfit(table, where, readsNew) ?? (unknown === undefined ? undefined : `no field \`${unknown}\``);
    if (why !== undefined) log.warn("a rule of the policy does not fit its collection", { line, collection, why });
  }
}

function syncText({ sync }: Flags): string {
  return typeof sync === "number" ? `every ${sync} ms` : sync;
}

/** What nobody expected leaves memory in a state that nobody knows; what is on disk is whole. */
function broke(error: unknown): never {
  log.error("an error that nobody expected", {}, error);
  process.exit(EXIT_DEFECT);
}
process.on("uncaughtException", broke);
process.on("unhandledRejection", broke);

let command: ReturnType<typeof readCommand>;
try {
  command = readCommand(process.argv.slice(2), process.env);
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  fail(error.message, EXIT_USAGE);
}
if (command.kind === "help") process.stdout.write(helpText());
else if (command.kind === "version") process.stdout.write(`fenec ${manifest.version}\n`);
else {
  const { flags, named } = command;
  const claims = givenFlag(flags, named, "mint-token");
  await (claims === null ? start(flags, named) : mint(flags, named, claims));
}
