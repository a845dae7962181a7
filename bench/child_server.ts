/** This server as a benchmark's child: started on a free port over a directory of its own, told of by its start line. */

import { join } from "node:path";
import { cpuSeconds, endWithUs, scratchDirectory } from "./processes.ts";

export interface ChildServer {
  readonly port: number;
  readonly pid: number;
  readonly directory: string;
  /** Seconds of CPU it has taken so far, all threads. */
  cpuSeconds(): number;
  /** From the start of its process until it said that it answers. */
  readonly startMs: number;
  /** Ends it and removes its directory, unless it was given one. */
  stop(): Promise<void>;
}

export interface ChildOptions {
  /** `--sync`; ignored with `--in-memory` among the arguments. */
  readonly sync?: string;
  /** Further flags of the server. */
  readonly args?: readonly string[];
  /** The data directory, which stays when it ends; else one of its own. */
  readonly directory?: string;
  /** Flags of the runtime: a profile. */
  readonly runtime?: readonly string[];
  /** Where a runtime that profiles leaves its file. */
  readonly cwd?: string;
}

const SERVER = join(import.meta.dir, "..", "src", "server.ts");

export async function startServer(options: ChildOptions = {}): Promise<ChildServer> {
  const scratch = options.directory === undefined ? scratchDirectory() : null;
  const directory = scratch?.path ?? options.directory ?? "";
  const startedMs = performance.now();
  const child = Bun.spawn(
    [
      process.execPath,
      ...(options.runtime ?? []),
      SERVER,
      "--listen",
      "127.0.0.1:0",
      "--data",
      directory,
      "--sync",
      options.sync ?? "always",
      ...(options.args ?? []),
    ],
    { stdout: "pipe", stderr: "pipe", cwd: options.cwd ?? directory, env: environment() },
  );
  endWithUs(child);
  void passOn(child.stderr);
  const line = await firstLine(child.stdout);
  const startMs = performance.now() - startedMs;
  const port = Number(/:(\d+),/.exec(line)?.[1]);
  if (!Number.isSafeInteger(port)) throw new Error(`the server did not start: ${line}`);
  return {
    port,
    pid: child.pid,
    directory,
    startMs,
    cpuSeconds: () => cpuSeconds(child.pid),
    stop: async () => {
      child.kill("SIGTERM");
      await child.exited;
      scratch?.remove();
    },
  };
}

/** Without the flags that an environment may carry; the allocator as `scripts/start` sets it. */
function environment(): Record<string, string | undefined> {
  const kept = Object.entries(process.env).filter(([name]) => !/^(FENEC_|PORT$)/.test(name));
  return { MIMALLOC_PURGE_DELAY: "10000", MIMALLOC_PURGE_HOLES: "0", ...Object.fromEntries(kept) };
}

async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  const reader = stream.getReader();
  while (!text.includes("\n")) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
  }
  reader.releaseLock();
  return text.split("\n", 1)[0] ?? "";
}

/** What it complains of, without what it merely tells. */
async function passOn(stream: ReadableStream<Uint8Array>): Promise<void> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stream) {
    const lines = (text + decoder.decode(chunk, { stream: true })).split("\n");
    text = lines.pop() ?? "";
    for (const line of lines) if (!line.includes(" info ")) process.stderr.write(`${line}\n`);
  }
}
