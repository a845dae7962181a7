/** A server of the demo's own: a child process over a data directory that is gone afterwards. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface DemoServer {
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts it under the strictest sync policy on a free port of this machine. */
export async function startServer(): Promise<DemoServer> {
  const directory = mkdtempSync(join(tmpdir(), "fenec-demo-"));
  const entry = join(import.meta.dir, "../../src/server.ts");
  const child = Bun.spawn([process.execPath, entry, "--listen", "127.0.0.1:0", "--data", directory], {
    stdout: "pipe",
    stderr: "ignore",
  });
  const reader = child.stdout.getReader();
  let line = "";
  while (!line.includes("\n")) {
    const { done, value } = await reader.read();
    if (done) throw new Error("the server did not start");
    line += new TextDecoder().decode(value);
  }
  const url = /http:\/\/\S+?(?=[,\s])/.exec(line)?.[0];
  if (url === undefined) throw new Error(`no address in the start line: ${line}`);
  return {
    url,
    stop: async () => {
      child.kill("SIGTERM");
      await child.exited;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** One statement, answered as text: what stands in it is compared byte for byte. Throws what the server refuses. */
export async function ask(
  url: string,
  query: string,
  params = "[]",
  headers: Record<string, string> = {},
): Promise<string> {
  const response = await fetch(`${url}/query`, {
    method: "POST",
    headers,
    body: `{"query":${JSON.stringify(query)},"params":${params}}`,
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status} to ${query}: ${text}`);
  return text;
}

/** Several statements as one: `[query, params]` each. Answers the status. */
export async function askBatch(url: string, lines: readonly (readonly [string, string])[]): Promise<number> {
  const body = lines.map(([query, params]) => `{"query":${JSON.stringify(query)},"params":${params}}`).join("\n");
  const response = await fetch(`${url}/batch`, { method: "POST", body });
  await response.text();
  return response.status;
}

/** The value a share of the sorted numbers lies under. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}
