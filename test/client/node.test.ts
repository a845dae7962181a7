/** The client needs nothing of Bun: bundled for a browser, it runs in Node, and names no module of either. */

import { describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PROJECT } from "../harness/server.ts";

const node = Bun.which("node");

async function bundle(): Promise<string> {
  const built = await Bun.build({
    entrypoints: [join(PROJECT, "src", "client", "index.ts")],
    target: "browser",
    format: "esm",
  });
  expect(built.success).toBe(true);
  return (await built.outputs[0]?.text()) ?? "";
}

test("another project has it as a dependency", () => {
  const directory = mkdtempSync(join(tmpdir(), "fenec-app-"));
  try {
    mkdirSync(join(directory, "node_modules"));
    symlinkSync(PROJECT, join(directory, "node_modules", "fenec"));
    writeFileSync(
      join(directory, "app.ts"),
      'import { from } from "fenec/client";\nconsole.log(from("jobs").limit(1).toFenecQL()[0]);\n',
    );
    const ran = Bun.spawnSync([process.execPath, "app.ts"], { cwd: directory });
    expect(ran.stderr.toString()).toBe("");
    expect(ran.stdout.toString()).toBe("get jobs limit 1\n");
  } finally {
    rmSync(directory, { recursive: true });
  }
});

describe("outside of Bun", () => {
  test("the bundle imports nothing, and names neither Bun nor Node", async () => {
    const text = await bundle();
    expect(new Bun.Transpiler({ loader: "js" }).scanImports(text)).toEqual([]);
    expect(text.match(/\bBun\.|\bprocess\.|\bBuffer\./g)).toBeNull();
  });

  test.skipIf(node === null)("a worker runs in Node (where one is installed)", async () => {
    const directory = mkdtempSync(join(tmpdir(), "fenec-node-"));
    let claims = 0;
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: async (request) => {
        const body = await request.text();
        if (new URL(request.url).pathname === "/batch") {
          return Response.json({ ok: 1, results: body.split("\n").map(() => ({ affected: 1 })) });
        }
        claims++;
        const rows = claims === 1 ? '[{"id":1,"payload":{"n":9007199254740993},"attempts":1}]' : "[]";
        return new Response(rows, { headers: { "Content-Type": "application/json" } });
      },
    });
    try {
      await Bun.write(join(directory, "client.js"), await bundle());
      await Bun.write(join(directory, "package.json"), '{"type":"module"}');
      await Bun.write(
        join(directory, "main.js"),
        `import { connect, worker } from "./client.js";
         const one = worker(connect(process.argv[2]).from("jobs"), (job) => { console.log(typeof job.payload.n); }, { waitMs: 0 });
         one.on("done", (job) => { console.log("done " + job.id); one.stop(); });
         await one.done;`,
      );
      const child = Bun.spawn([node ?? "node", join(directory, "main.js"), server.url.href], {
        stdout: "pipe",
        stderr: "pipe",
      });
      const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
      expect({ out, err, status: await child.exited }).toEqual({ out: "bigint\ndone 1\n", err: "", status: 0 });
    } finally {
      await server.stop(true);
      rmSync(directory, { recursive: true, force: true });
    }
  });
});
