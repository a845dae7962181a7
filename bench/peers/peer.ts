/**
 * What the benchmark asks of each queue it measures: to be started, filled and drained. Servers run in processes of
 * their own; `fill` and `drain` run in a client process that is started anew for each.
 */

export interface Peer {
  readonly name: string;
  readonly title: string;
  /** What a crash of the machine takes back of what was answered. */
  readonly loses: string;
  readonly configuration: string;
  /** How jobs are taken and acked. */
  readonly way: string;
  /** Which part of the jobs it is measured over, from 0 to 1: less where all of them would take minutes. */
  readonly share: number;
  /** What has to be installed first, or null: all is there. */
  missing(): string | null;
  version(): string;
  start(directory: string): Promise<Running>;
  connect(address: Address, clients: number, page: number): Promise<Drainer>;
}

/** What the client process is told of the server, as json. */
export type Address = Readonly<Record<string, string | number>>;

export interface Running {
  readonly address: Address;
  /** Null: there is no server, it is all in the client process. */
  readonly pid: number | null;
  stop(): Promise<void>;
}

export interface Drainer {
  /** Puts jobs that are ready. */
  fill(jobs: number): Promise<void>;
  /** Takes and acks them all; resolves when the last ack was answered. Throws when one was not handed out and acked. */
  drain(jobs: number): Promise<void>;
  close(): Promise<void>;
}

/** A package of `bench/peers/package.json`, or null where they are not installed. */
export function packageVersion(name: string): string | null {
  try {
    const manifest: unknown = require(`${import.meta.dir}/node_modules/${name}/package.json`);
    return String((manifest as { version: unknown }).version);
  } catch {
    return null;
  }
}

/** Loaded by name, so that the project is type-checked where they are not installed; `T` is what is used of it. */
export async function loadPackage<T>(name: string): Promise<T> {
  return (await import(name)) as T;
}

export const PACKAGES = "`bun install --cwd bench/peers`";
