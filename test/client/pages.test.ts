/** The TypeScript blocks of the client's pages, each page's put together, hold to the compiler's strictest rules. */

import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { blocksOf } from "../docs/page.ts";
import { PROJECT } from "../harness/server.ts";

const PAGES = ["client.md", "worker.md"];

test("the code of the pages compiles", async () => {
  const directory = mkdtempSync(join(tmpdir(), "fenec-page-"));
  try {
    for (const page of PAGES) {
      const blocks = blocksOf(readFileSync(join(PROJECT, "docs", page), "utf8")).filter(({ info }) => info === "ts");
      expect(blocks.length).toBeGreaterThan(3);
      writeFileSync(join(directory, `${page}.ts`), `${blocks.map(({ text }) => text).join("\n")}\nexport {};\n`);
    }
    const compilerOptions = {
      noUnusedLocals: false,
      typeRoots: [join(PROJECT, "node_modules")],
      paths: { "fenec/client": [join(PROJECT, "src", "client", "index.ts")] },
    };
    const config = { extends: join(PROJECT, "tsconfig.json"), compilerOptions, include: ["*.ts"] };
    writeFileSync(join(directory, "tsconfig.json"), JSON.stringify(config));
    const tsc = join(PROJECT, "node_modules", "typescript", "bin", "tsc");
    const child = Bun.spawn([process.execPath, tsc, "-p", directory], { stdout: "pipe", stderr: "pipe" });
    const [out, err, status] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    expect({ out, err, status }).toEqual({ out: "", err: "", status: 0 });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}, 60_000);
