import { afterEach, expect, test } from "bun:test";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileDisk } from "../../src/log/disk.ts";
import { DirectoryTaken } from "../../src/log/lock.ts";

const directories: string[] = [];

function directory(): string {
  const path = fs.mkdtempSync(join(tmpdir(), "fenec-lock-"));
  directories.push(path);
  return path;
}

afterEach(() => {
  for (const path of directories.splice(0)) fs.rmSync(path, { recursive: true, force: true });
});

const holder = (path: string): string => `
  import { fileDisk } from ${JSON.stringify(join(import.meta.dir, "../../src/log/disk.ts"))};
  try {
    fileDisk(${JSON.stringify(path)});
  } catch (error) {
    console.error(error.message);
    process.exit(3);
  }
  // A child of the holder must not keep the lock when the holder is gone.
  const child = Bun.spawn(["sleep", "60"]);
  console.log(child.pid);
  setInterval(() => {}, 1000);
`;

function start(path: string): Bun.Subprocess<"ignore", "pipe", "pipe"> {
  return Bun.spawn([process.execPath, "-e", holder(path)], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
}

async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  const reader = stream.getReader();
  let text = "";
  while (!text.includes("\n")) {
    const { value, done } = await reader.read();
    if (done) break;
    text += new TextDecoder().decode(value);
  }
  return text.trim();
}

test("within one process a directory is held once, and can be had again after it was let go", () => {
  const path = directory();
  const disk = fileDisk(path);
  expect(() => fileDisk(path)).toThrow(DirectoryTaken);
  expect(() => fileDisk(path)).toThrow(`process ${process.pid}`);
  disk.close();
  fileDisk(path).close();
});

test("a second process is told who holds the directory; killed, the first holds nothing", async () => {
  const path = directory();
  const first = start(path);
  const grandchild = Number(await firstLine(first.stdout));
  try {
    const second = start(path);
    expect(await second.exited).toBe(3);
    expect(await new Response(second.stderr).text()).toContain(`in use by another server (process ${first.pid})`);
    expect(() => fileDisk(path)).toThrow(DirectoryTaken);
    first.kill("SIGKILL");
    await first.exited;
    fileDisk(path).close();
  } finally {
    first.kill("SIGKILL");
    process.kill(grandchild, "SIGKILL");
  }
});
