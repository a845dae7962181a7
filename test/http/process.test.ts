/** What only a process and its sockets show: starting, stopping, the shape of bytes on a connection. */

import { afterAll, afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { Scratch, Server, startRefused } from "../harness/server.ts";
import { signToken } from "../harness/token.ts";

/** A process starts in a quarter of a second, and in many on a machine that has other things to do. */
setDefaultTimeout(60_000);

const servers: Server[] = [];
const sockets: Socket[] = [];
let shared: Server | undefined;

async function start(...flags: string[]): Promise<Server> {
  const server = await Server.start({ flags });
  servers.push(server);
  return server;
}

/** One server for the tests that leave it as it is. */
async function anyServer(): Promise<Server> {
  shared ??= await Server.start({ flags: ["--in-memory", "--max-body", "100kb"] });
  return shared;
}

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const server of servers.splice(0)) await server.kill();
});

afterAll(async () => {
  await shared?.kill();
});

/** A connection, and what came over it so far. */
class Wire {
  received = "";
  ended = false;
  readonly socket: Socket;
  #wake: () => void = () => {};

  constructor(server: Server) {
    this.socket = connect(server.port, "127.0.0.1");
    sockets.push(this.socket);
    this.socket.on("data", (bytes: Buffer) => {
      this.received += bytes.toString("latin1");
      this.#wake();
    });
    const end = (): void => {
      this.ended = true;
      this.#wake();
    };
    this.socket.on("end", end).on("close", end).on("error", end);
  }

  send(text: string): void {
    this.socket.write(text);
  }

  async until(reached: (wire: this) => boolean): Promise<void> {
    while (!reached(this)) {
      if (this.ended && !reached(this)) throw new Error(`the connection ended: ${this.received.slice(0, 500)}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

function post(body: string, headers = ""): string {
  return `POST /query HTTP/1.1\r\nHost: x\r\n${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

const COLLECTIONS = post('{"query":"collections"}');

describe("starting", () => {
  test("says where it listens and what it holds, in one line", async () => {
    using scratch = new Scratch();
    const server = await start("--data", join(scratch.path, "data"));
    expect(server.startLine).toMatch(
      /^fenec \d+\.\d+\.\d+ listening on http:\/\/127\.0\.0\.1:\d+, data in .*data, sync always, 0 collections, 0 rows$/,
    );
    await server.run("create collection jobs (a int)");
    await server.run("put jobs [{a: 1}, {a: 2}]");
    expect(await server.stop()).toBe(0);
    const again = await start("--data", join(scratch.path, "data"), "--sync", "250");
    expect(again.startLine).toEndWith("sync every 250 ms, 1 collections, 2 rows");
  });

  test("a second server on the port is refused in a line", async () => {
    const server = await anyServer();
    const child = Bun.spawn([process.execPath, join(import.meta.dir, "../../src/server.ts"), "--in-memory"], {
      env: { ...process.env, PORT: String(server.port) },
      stdout: "pipe",
      stderr: "pipe",
    });
    const said = await new Response(child.stderr).text();
    expect(await child.exited).toBe(1);
    expect(said).toBe(`fenec: cannot listen on 127.0.0.1:${server.port}: the address is in use\n`);
  });

  test("a second server on the directory is refused in a line", async () => {
    using scratch = new Scratch();
    await start("--data", scratch.path);
    const { status, words } = await startRefused({ flags: ["--data", scratch.path] });
    expect(status).toBe(1);
    expect(words).toMatch(/^fenec: the data directory .* is in use .*\n$/);
  });

  test("--help and --version print and end", async () => {
    for (const [flag, said] of [
      ["--help", "--max-body <bytes>"],
      ["--version", "fenec "],
    ] as const) {
      const child = Bun.spawn([process.execPath, join(import.meta.dir, "../../src/server.ts"), flag]);
      expect(await new Response(child.stdout).text()).toContain(said);
      expect(await child.exited).toBe(0);
    }
  });
});

describe("stopping", () => {
  test("answers what is under way and what is held, closes quiet connections, and ends with 0", async () => {
    const server = await start("--in-memory");
    await server.run("create collection jobs (run_at timestamp @sorted)");
    const quiet = Array.from({ length: 20 }, () => new Wire(server));
    for (const wire of quiet) {
      wire.send(COLLECTIONS);
      await wire.until(({ received }) => received.includes('"jobs"'));
    }
    const held = new Wire(server);
    held.send(post('{"query":"del jobs where run_at <= now() limit 1 returning id"}', "Fenec-Wait: 30000\r\n"));
    const late = new Wire(server);
    late.send("POST /query HTTP/1.1\r\nHost: x\r\nFenec-After: 99\r\nFenec-Wait: 30000\r\nContent-Length: 23\r\n\r\n");
    late.send('{"query":"collections"}');
    const busy = async () => (await server.ask({ path: "/_metrics" })).body.includes("fenec_held_claims 1");
    while (!(await busy()));
    expect(await server.stop()).toBe(0);
    await held.until(({ ended }) => ended);
    expect(held.received).toStartWith("HTTP/1.1 200");
    expect(held.received).toEndWith("[]");
    await late.until(({ ended }) => ended);
    expect(late.received).toStartWith("HTTP/1.1 503");
    for (const wire of quiet) await wire.until(({ ended }) => ended);
  });

  test("told twice, it ends at once", async () => {
    const server = await start("--in-memory");
    // A body that never comes keeps a request under way.
    const wire = new Wire(server);
    wire.send("POST /query HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{");
    const alone = 'fenec_connections{transport="http"} 1\n';
    while ((await server.ask({ path: "/_metrics" })).body.includes(alone));
    process.kill(server.pid, "SIGINT");
    const again = setInterval(() => {
      try {
        process.kill(server.pid, "SIGINT");
      } catch {
        // Gone already.
      }
    }, 20);
    const status = await server.stop();
    clearInterval(again);
    expect(status).toBe(1);
  });
});

describe("on a connection", () => {
  test("requests are answered one after another", async () => {
    const wire = new Wire(await anyServer());
    for (let i = 1; i <= 3; i++) {
      wire.send(COLLECTIONS);
      await wire.until(({ received }) => received.split("HTTP/1.1 200 OK").length === i + 1 && received.endsWith("[]"));
    }
    expect(wire.ended).toBe(false);
  });

  test("HEAD has the length of what GET would send, and nothing of it", async () => {
    const wire = new Wire(await anyServer());
    wire.send("HEAD /_health HTTP/1.1\r\nHost: x\r\n\r\n");
    await wire.until(({ received }) => received.includes("\r\n\r\n"));
    expect(wire.received.toLowerCase()).toContain("content-length: 11\r\n");
    wire.send(COLLECTIONS);
    await wire.until(({ received }) => received.endsWith("[]"));
    expect(wire.received.split("HTTP/1.1 200 OK").length).toBe(3);
    expect(wire.received).not.toContain("true");
  });

  test("bodies come whole or in chunks, to the same ceiling", async () => {
    const server = await anyServer();
    const chunked = (body: string, size: number): string => {
      let text = "POST /query HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
      for (let at = 0; at < body.length; at += size) {
        const piece = body.slice(at, at + size);
        text += `${piece.length.toString(16)}\r\n${piece}\r\n`;
      }
      return `${text}0\r\n\r\n`;
    };
    const fitting = `{"query":"collections${" ".repeat(50_000)}"}`;
    const large = `{"query":"collections${" ".repeat(150_000)}"}`;
    for (const [text, status] of [
      [chunked(fitting, 999), 200],
      [chunked(large, 999), 413],
      [post(large), 413],
      [chunked('{"query":"collections"}', 1), 200],
    ] as const) {
      const wire = new Wire(server);
      wire.send(text);
      await wire.until(({ received }) => received.endsWith("]") || received.endsWith("}"));
      expect(wire.received).toStartWith(`HTTP/1.1 ${status}`);
      expect(wire.received.toLowerCase()).toContain("content-type: application/json");
    }
  });

  test("a block of headers may have 64 KiB; past it 431", async () => {
    const server = await anyServer();
    for (const [length, status] of [
      [60_000, 200],
      [70_000, 431],
    ] as const) {
      const wire = new Wire(server);
      wire.send(`GET /_health HTTP/1.1\r\nHost: x\r\nX: ${"y".repeat(length)}\r\n\r\n`);
      await wire.until(({ received }) => received.includes("\r\n\r\n"));
      expect(wire.received).toStartWith(`HTTP/1.1 ${status}`);
    }
  });

  test("a request cut off midway hurts nobody", async () => {
    const server = await anyServer();
    for (const part of [
      "POST /qu",
      "POST /query HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{",
      COLLECTIONS.slice(0, -5),
    ]) {
      const wire = new Wire(server);
      wire.send(part);
      await new Promise<void>((resolve) => wire.socket.end(resolve));
      await wire.until(({ ended }) => ended);
    }
    expect((await server.query("collections")).status).toBe(200);
  });

  test("what is no http is refused and the server goes on", async () => {
    const server = await anyServer();
    for (const noise of ["\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "GET\r\n\r\n", "\0\0\0\0\r\n\r\n"]) {
      const wire = new Wire(server);
      wire.socket.end(Buffer.from(noise, "latin1"));
      await wire.until(({ ended }) => ended);
    }
    expect((await server.query("collections")).status).toBe(200);
  });
});

describe("a change stream", () => {
  test("ends with the token it was opened by", async () => {
    using scratch = new Scratch();
    const secret = "a secret of more than thirty-two bytes";
    const secretFile = join(scratch.path, "secret");
    const policy = join(scratch.path, "policy");
    writeFileSync(secretFile, secret);
    writeFileSync(policy, "diary read,write where owner = $jwt.sub\n");
    const rules = ["--token", "root", "--jwt-secret-file", secretFile, "--policy", policy, "--auth-delay", "0"];
    const server = await start("--in-memory", "--test-clock", ...rules);
    const root = { Authorization: "Bearer root" };
    await server.query("create collection diary (owner text, t text)", [], root);
    const { now } = JSON.parse((await server.ask({ path: "/_clock", headers: root })).body) as { now: number };
    const exp = Math.ceil(now / 1_000) + 60;
    const token = signToken(JSON.stringify({ sub: "ann", exp }), secret);
    const wire = new Wire(server);
    wire.send(`GET /diary/changes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`);
    await wire.until(({ received }) => received.includes("event: seed"));
    const move = (ms: number) =>
      server.ask({ method: "POST", path: "/_clock", headers: root, body: JSON.stringify({ advance_ms: ms }) });
    await move(exp * 1_000 - now - 1);
    await server.query('put diary {owner: "ann", t: "in time"}', [], root);
    await wire.until(({ received }) => received.includes("in time"));
    expect(wire.received).not.toContain("event: error");
    await move(1);
    await wire.until(({ received }) => received.includes("event: error") && received.endsWith("0\r\n\r\n"));
    expect(wire.received).toContain('"status":401');
  });
});
