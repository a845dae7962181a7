/** Processes a benchmark starts, on loopback ports and in temporary directories, and what they cost. */

import { accessSync, chownSync, constants, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Clock ticks a second in /proc, on every Linux there is. */
const TICKS = 100;
const START_MS = 15_000;

/** Where Debian keeps programs that are not on everybody's path. */
const PLACES = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"];

/** The path of a program, or null where it is not installed. */
export function programOf(name: string, places: readonly string[] = []): string | null {
  const known = Bun.which(name);
  if (known !== null) return known;
  for (const place of [...places, ...PLACES]) {
    const path = join(place, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {}
  }
  return null;
}

/** The first line a program says of its version. */
export function versionOf(program: string, ...args: string[]): string {
  const { stdout, stderr } = Bun.spawnSync([program, ...args]);
  return `${stdout}${stderr}`.trim().split("\n", 1)[0] ?? "";
}

/** What is undone when the benchmark ends, however it ends; the last made goes first. */
const left = new Set<() => void>();
process.on("exit", () => {
  for (const undo of [...left].reverse()) undo();
});

/** Has a child killed if it is still there at the end. */
export function endWithUs(child: Bun.Subprocess): void {
  const kill = (): void => child.kill("SIGKILL");
  left.add(kill);
  void child.exited.then(() => left.delete(kill));
}

export interface Scratch {
  readonly path: string;
  remove(): void;
}

/** A directory of its own, under `TMPDIR`: it is to be on the disk that is measured, not in memory. */
export function scratchDirectory(): Scratch {
  const path = mkdtempSync(join(tmpdir(), "fenec-bench-"));
  const remove = (): void => {
    left.delete(remove);
    rmSync(path, { recursive: true, force: true, maxRetries: 3 });
  };
  left.add(remove);
  return { path, remove };
}

/** A port nobody listens on now. */
export function freePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}

export interface Child {
  readonly pid: number;
  /** Signals it and waits for its end. */
  end(signal?: NodeJS.Signals): Promise<void>;
}

export function startChild(command: readonly string[], cwd: string): Child {
  const child = Bun.spawn([...command], {
    cwd,
    stdin: "ignore",
    stdout: Bun.file(join(cwd, "stdout.txt")),
    stderr: Bun.file(join(cwd, "stderr.txt")),
  });
  endWithUs(child);
  return {
    pid: child.pid,
    end: async (signal = "SIGTERM") => {
      child.kill(signal);
      await child.exited;
    },
  };
}

/** Resolves once something listens on the port; rejects when nothing does in time. */
export async function listening(port: number): Promise<void> {
  const deadline = performance.now() + START_MS;
  for (;;) {
    try {
      const socket = await Bun.connect({ hostname: "127.0.0.1", port, socket: { data() {} } });
      socket.end();
      return;
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await Bun.sleep(20);
    }
  }
}

/** Programs that refuse to run as root are run as somebody else: the words to put before theirs. */
export function unprivileged(directory: string): string[] {
  if (process.getuid?.() !== 0) return [];
  const user = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"))
    .find(([name]) => name === "postgres" || name === "nobody");
  if (user === undefined) throw new Error("there is no user to run it as");
  const [, , uid = "", gid = ""] = user;
  chownSync(directory, Number(uid), Number(gid));
  return ["setpriv", `--reuid=${uid}`, `--regid=${gid}`, "--clear-groups"];
}

/** Memory of a process that is in use now. */
export function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;
}

/** CPU seconds of a process so far, with those of its children, ended ones too. */
export function cpuSeconds(pid: number): number {
  let ticks = 0;
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const fields = statOf(name);
    if (fields === undefined) continue;
    const isItself = Number(name) === pid;
    if (!isItself && Number(fields[1]) !== pid) continue;
    ticks += Number(fields[11]) + Number(fields[12]);
    if (isItself) ticks += Number(fields[13]) + Number(fields[14]);
  }
  return ticks / TICKS;
}

/** What follows the name in /proc/<pid>/stat: state, parent, ... */
function statOf(pid: string): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  } catch {
    return undefined;
  }
}
