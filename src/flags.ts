/**
 * The command line: every flag, what it takes, what it is when nobody says, and how it is read. Each has an environment
 * variable of its name (`--max-body` is `FENEC_MAX_BODY`); what the command line says goes before it.
 * A flag nobody knows, or a value that is none, stops the start with a line that says what is right.
 */

import {
  BODY_BYTES,
  CHECKPOINT_LOG_BYTES,
  CHECKPOINT_MS,
  CONNECTIONS,
  LOG_RESERVE_BYTES,
  LOG_SEGMENT_BYTES,
} from "./base/limits.ts";
import { nearestWord } from "./lang/nearest_word.ts";
import type { SyncPolicy } from "./log/log.ts";

/** What stops the start: one line for the person who wrote the command. */
export class UsageError extends Error {}

export interface Address {
  readonly hostname: string;
  readonly port: number;
}

interface Flag<T> {
  /** What stands for the value in the help; null for one that is on by being there. */
  readonly takes: string | null;
  /** What it says when it stands without a value; null where it must have one. */
  readonly alone: string | null;
  readonly fallback: T;
  readonly help: string;
  /** Throws the words of what it takes. */
  readonly read: (text: string) => T;
}

const FLAGS = {
  listen: flag(
    "<host>:<port>",
    { hostname: "127.0.0.1", port: 8080 },
    "where it listens; port 0 takes a free one",
    address,
  ),
  data: flag("<directory>", "./snapshots", "where the data lies", text),
  "in-memory": on("keeps the data in memory alone: gone when it stops"),
  sync: flag(
    "always|<ms>|off",
    "always" as SyncPolicy,
    "when a write is on disk: before its answer, every so many ms, or at the end",
    sync,
  ),
  "snapshot-bytes": flag(
    "<bytes>",
    CHECKPOINT_LOG_BYTES,
    "of log after which a snapshot is due (or half the last one's size)",
    bytes,
  ),
  "snapshot-seconds": flag(
    "<seconds>",
    CHECKPOINT_MS / 1_000,
    "after which one is due if anything was written",
    seconds,
  ),
  "segment-bytes": flag("<bytes>", LOG_SEGMENT_BYTES, "past which a file of the log is done", bytes),
  "reserve-bytes": flag("<bytes>", LOG_RESERVE_BYTES, "kept back for the claims and deletes of a full disk", bytes),
  "read-only": on("takes no writes"),
  insecure: on("lets it listen beyond this machine without asking for a token"),
  cors: {
    takes: "<origin>",
    alone: "*",
    fallback: null as string | null,
    help: "lets pages of this origin read answers; bare: of any",
    read: origin,
  },
  "max-connections": flag("<n>", CONNECTIONS, "requests answered at once, held ones included; 0: no bound", count),
  "max-streams": flag("<n>", 64, "change streams open at once", count),
  keepalive: flag("<seconds>", 20, "between two comments on a quiet change stream", seconds),
  "idle-timeout": flag("<seconds>", 60, "after which a silent connection is closed, 255 at most", idleSeconds),
  "max-body": flag("<bytes>", BODY_BYTES, "of a request's body; 64mb is understood", bytes),
  "max-memory": flag("<bytes>", null as number | null, "past which writes that make rows are refused", bytes),
  "slow-ms": flag("<ms>", null as number | null, "logs statements that take longer, without their parameters", count),
  "test-clock": on("stands still in time until POST /_clock moves it: for tests"),
  token: flag("<token>", null as string | null, "the server's token: full access", text),
  "jwt-secret": flag("<secret>", null as string | null, "what HS256 tokens are signed with, 32 bytes or more", text),
  "jwt-secret-file": flag("<file>", null as string | null, "a file with that secret", text),
  "jwt-keys": flag("<file>", null as string | null, "a JWKS file of the keys tokens are signed with", text),
  "jwt-require-exp": flag("on|off", true, "refuses tokens that never expire", onOff),
  "jwt-max-age": flag("<seconds>", null as number | null, "refuses tokens that expire later than this", seconds),
  "mint-token": flag("<claims>", null as string | null, "prints a token with these claims, and ends", text),
  policy: flag("<file>", null as string | null, "the rules of tokens", text),
  audit: flag("<file>", null as string | null, "a log of who was refused, and of changes to collections", text),
  "auth-delay": flag("<ms>", 100, "before a token is refused; doubles with each refusal", count),
  "idempotency-ttl": flag("<seconds>", 86_400, "how long an Idempotency-Key is kept", seconds),
  cdc: on("keeps the change feed"),
  "replica-of": flag("<url>", null as string | null, "follows this server", text),
  "replication-token": flag("<token>", null as string | null, "what a replica shows its primary", text),
};

/** Flags whose part of the server is not there yet: each is taken off the list by what brings it. */
const NOT_AVAILABLE: ReadonlySet<FlagName> = new Set(["cdc", "replica-of", "replication-token"]);

/** What others call them, for the hint. */
const ELSEWHERE: ReadonlyMap<string, FlagName> = new Map([
  ["port", "listen"],
  ["host", "listen"],
  ["bind", "listen"],
  ["dir", "data"],
  ["data-dir", "data"],
]);

export type FlagName = keyof typeof FLAGS;

export type Flags = { readonly [name in FlagName]: (typeof FLAGS)[name]["fallback"] };

/** How a flag was given, for words about it: `--policy`, `FENEC_POLICY`; `PORT` may stand for `--listen`. */
export type Named = (name: FlagName) => string;

export type Command =
  | { readonly kind: "run"; readonly flags: Flags; readonly named: Named }
  | { readonly kind: "help" }
  | { readonly kind: "version" };

/** What the command line asks for. Throws `UsageError`. */
export function readCommand(words: readonly string[], env: Readonly<Record<string, string | undefined>>): Command {
  const sent = new Map<FlagName, string>();
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    if (word === "--help" || word === "-h") return { kind: "help" };
    if (word === "--version") return { kind: "version" };
    const equals = word.indexOf("=");
    const name = knownName(equals === -1 ? word : word.slice(0, equals));
    if (sent.has(name)) throw new UsageError(`--${name} is given twice`);
    const { alone, takes } = FLAGS[name];
    if (equals !== -1) sent.set(name, word.slice(equals + 1));
    else if (takesNextWord(name, words[at + 1])) sent.set(name, words[++at] ?? "");
    else if (alone !== null) sent.set(name, alone);
    else throw new UsageError(`--${name} takes ${takes}`);
  }
  const values = new Map<FlagName, unknown>();
  const given = new Map<FlagName, string>();
  for (const name of names()) {
    const asked = askedOf(name, sent.get(name), env);
    values.set(name, asked === undefined ? FLAGS[name].fallback : readAsked(asked));
    if (asked === undefined) continue;
    given.set(name, asked.by);
    if (NOT_AVAILABLE.has(name) && values.get(name) !== FLAGS[name].fallback) {
      throw new UsageError(`${asked.by} is not available yet`);
    }
  }
  const flags = Object.fromEntries(values) as Flags;
  const named: Named = (name) => given.get(name) ?? `--${name}`;
  refuseCombinations(flags, named, given.has("data"));
  return { kind: "run", flags, named };
}

function refuseCombinations(flags: Flags, named: Named, dataIsNamed: boolean): void {
  if (flags["in-memory"] && dataIsNamed)
    throw new UsageError(`${named("in-memory")} keeps no data, so ${named("data")} does not go with it`);
  const { hostname } = flags.listen;
  const asks = [flags.token, flags["jwt-secret"], flags["jwt-secret-file"], flags["jwt-keys"]].some(
    (way) => way !== null,
  );
  if (!isLoopback(hostname) && !asks && !flags.insecure) {
    throw new UsageError(
      `${named("listen")} ${hostname} lets other machines in, and nobody is asked for a token: set --token or --jwt-secret-file, or --insecure`,
    );
  }
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "::1" || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

/** The text of `--help`. */
export function helpText(): string {
  const rows = names().map((name) => {
    const { takes, alone } = FLAGS[name];
    const value = alone === null ? ` ${takes}` : `[=${takes}]`;
    const how = takes === null ? `--${name}` : `--${name}${value}`;
    const fallback = shown(FLAGS[name].fallback);
    const end = NOT_AVAILABLE.has(name) ? " (not available yet)" : fallback === "" ? "" : ` (${fallback})`;
    return [how, `${FLAGS[name].help}${end}`] as const;
  });
  rows.push(["--help", "prints this"], ["--version", "prints the version"]);
  const width = Math.max(...rows.map(([how]) => how.length));
  return [
    "fenec: a job-queue database server",
    "",
    ...rows.map(([how, help]) => `  ${how.padEnd(width)}  ${help}`),
    "",
    "Each flag is an environment variable as well: --max-body is FENEC_MAX_BODY. PORT=n is --listen 127.0.0.1:n.",
    "",
  ].join("\n");
}

function shown(fallback: unknown): string {
  if (fallback === null || fallback === false) return "";
  if (fallback === true) return "on";
  if (typeof fallback !== "object") return String(fallback);
  return addressText(fallback as Address);
}

export function addressText({ hostname, port }: Address): string {
  return hostname.includes(":") ? `[${hostname}]:${port}` : `${hostname}:${port}`;
}

function names(): FlagName[] {
  return Object.keys(FLAGS) as FlagName[];
}

function knownName(word: string): FlagName {
  const name = word.replace(/^-+/, "");
  if (word.startsWith("--") && Object.hasOwn(FLAGS, name)) return name as FlagName;
  const near = ELSEWHERE.get(name) ?? nearestWord(name, names());
  const isFlag = word.startsWith("-");
  const hint = near === undefined || !isFlag ? "--help lists them all" : `did you mean --${near}?`;
  if (word.startsWith("--")) throw new UsageError(`there is no flag ${word}: ${hint}`);
  throw new UsageError(`${JSON.stringify(word)} is no flag: ${isFlag ? "" : "they begin with --, and "}${hint}`);
}

function takesNextWord(name: FlagName, next: string | undefined): boolean {
  if (next === undefined) return false;
  if (name === "cors") return next === "*" || next.includes("://");
  // A value may begin with a dash (a token does as it likes), a flag's name not be one.
  return FLAGS[name].takes !== null && !Object.hasOwn(FLAGS, next.replace(/^--/, ""));
}

interface Asked {
  readonly text: string;
  readonly by: string;
  readonly read: (text: string) => unknown;
}

/** What the command line says goes first, then the flag's own variable; an empty variable says nothing. */
function askedOf(
  name: FlagName,
  sent: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): Asked | undefined {
  const { read } = FLAGS[name];
  if (sent !== undefined) return { text: sent, by: `--${name}`, read };
  const variable = variableOf(name);
  const text = env[variable] ?? "";
  if (text !== "") return { text, by: variable, read };
  const { PORT: port = "" } = env;
  return name === "listen" && port !== "" ? { text: port, by: "PORT", read: portHere } : undefined;
}

function readAsked({ text, by, read }: Asked): unknown {
  try {
    return read(text);
  } catch (error) {
    if (!(error instanceof WrongValue)) throw error;
    throw new UsageError(`${by} takes ${error.message}, not ${JSON.stringify(text)}`);
  }
}

function variableOf(name: FlagName): string {
  return `FENEC_${name.toUpperCase().replaceAll("-", "_")}`;
}

class WrongValue extends Error {}

function flag<T>(takes: string, fallback: T, help: string, read: (text: string) => T): Flag<T> {
  return { takes, alone: null, fallback, help, read };
}

function on(help: string): Flag<boolean> {
  return { takes: null, alone: "on", fallback: false, help, read: onOff };
}

function onOff(sent: string): boolean {
  if (/^(on|true|yes|1)$/i.test(sent)) return true;
  if (/^(off|false|no|0)$/i.test(sent)) return false;
  throw new WrongValue("on or off");
}

function text(sent: string): string {
  if (sent === "") throw new WrongValue("something");
  return sent;
}

function count(sent: string): number {
  const number = /^\d+$/.test(sent) ? Number(sent) : Number.NaN;
  if (!Number.isSafeInteger(number)) throw new WrongValue("a whole number from 0");
  return number;
}

function seconds(sent: string): number {
  const number = /^\d+$/.test(sent) ? Number(sent) : 0;
  if (number < 1 || !Number.isSafeInteger(number * 1_000)) throw new WrongValue("a whole number of seconds from 1");
  return number;
}

/** The runtime takes no more than 255. */
function idleSeconds(sent: string): number {
  const number = /^\d+$/.test(sent) ? Number(sent) : 0;
  if (number < 1 || number > 255) throw new WrongValue("a whole number of seconds from 1 to 255");
  return number;
}

const UNITS = new Map([
  ["", 1],
  ["kb", 1024],
  ["mb", 1024 ** 2],
  ["gb", 1024 ** 3],
]);

function bytes(sent: string): number {
  const [, digits = "", unit = ""] = /^(\d+)([kmg]b)?$/i.exec(sent) ?? [];
  const number = digits === "" ? 0 : Number(digits) * (UNITS.get(unit.toLowerCase()) ?? 1);
  if (number < 1 || !Number.isSafeInteger(number))
    throw new WrongValue("a number of bytes, such as 1048576, 64mb or 2gb");
  return number;
}

function address(sent: string): Address {
  const words = "<host>:<port>, such as 127.0.0.1:8080";
  const colon = sent.lastIndexOf(":");
  const host = colon === -1 ? "127.0.0.1" : sent.slice(0, colon);
  const port = sent.slice(colon + 1);
  const hostname = host.startsWith("[") && host.endsWith("]") ? host.slice(1, -1) : host;
  if (hostname === "" || (hostname === host && host.includes(":"))) throw new WrongValue(words);
  if (!isPort(port)) throw new WrongValue(words);
  return { hostname, port: Number(port) };
}

function portHere(sent: string): Address {
  if (!isPort(sent)) throw new WrongValue("a port from 0 to 65535");
  return { hostname: "127.0.0.1", port: Number(sent) };
}

function isPort(sent: string): boolean {
  return /^\d{1,5}$/.test(sent) && Number(sent) <= 65_535;
}

function sync(sent: string): SyncPolicy {
  if (sent === "always" || sent === "off") return sent;
  if (/^[1-9]\d{0,8}$/.test(sent)) return Number(sent);
  throw new WrongValue("always, off, or a number of milliseconds");
}

function origin(sent: string): string {
  if (sent === "*" || /^(on|true|yes|1)$/i.test(sent)) return "*";
  if (/^[a-z][a-z0-9+.-]*:\/\/[^/\s]+$/i.test(sent)) return sent;
  throw new WrongValue("one origin, such as https://app.example.com, or *");
}
