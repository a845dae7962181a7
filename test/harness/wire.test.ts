import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { AddressInfo } from "node:net";
import { createServer, type Server, type Socket } from "node:net";
import { EventStream } from "./event_stream.ts";
import { ask, Exchange } from "./wire.ts";

/** Answers by what the path says, in bytes a real server might never send. */
let server: Server;
let port = 0;
const seen: string[] = [];
/** Called when the other side sees a connection end. */
let onEnding: () => void = () => undefined;

function answer(socket: Socket, request: string): void {
  const [, path = ""] = request.split(" ");
  if (path === "/length") socket.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b: c\r\n\r\nhél");
  if (path === "/length") setImmediate(() => socket.write("l"));
  if (path === "/chunks") socket.write("HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab");
  if (path === "/chunks") setImmediate(() => socket.write("c\r\n1\r\nd\r\n0\r\n\r\n"));
  if (path === "/none") socket.write('HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n\r\n');
  if (path === "/head") socket.write("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n");
  if (path === "/until-close") socket.end("HTTP/1.1 200 OK\r\n\r\nall of it");
  if (path === "/cut") socket.end("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab");
  if (path === "/big") socket.write("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n");
  if (path === "/events") {
    const events = ": hello\n\nevent: seed\ndata: {}\n\nevent: change\nda";
    socket.write(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${events.length.toString(16)}\r\n${events}\r\n`);
    setImmediate(() => socket.end("6\r\nta: 1\n\r\n1\r\n\n\r\n0\r\n\r\n"));
  }
}

beforeAll(async () => {
  server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.once("data", (bytes) => {
      seen.push(bytes.toString());
      answer(socket, bytes.toString());
    });
    // This runtime tells a reset as an end.
    socket.on("error", () => onEnding());
    socket.on("end", () => {
      socket.end("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate");
      onEnding();
    });
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  port = (server.address() as AddressInfo).port;
});

afterAll(() => {
  server.close();
});

function nextEnding(): Promise<void> {
  return new Promise((resolve) => {
    onEnding = resolve;
  });
}

describe("an answer is read", () => {
  test("by its length, in bytes and in pieces", async () => {
    const { status, headers, body } = await ask(port, { path: "/length" });
    expect([status, headers.get("x-a"), body]).toEqual([200, "b: c", "héll"]);
  });

  test("by its chunks, cut anywhere", async () => {
    const { status, body } = await ask(port, { path: "/chunks" });
    expect([status, body]).toEqual([201, "abcd"]);
  });

  test("without a body where there is none", async () => {
    expect((await ask(port, { path: "/none" })).status).toBe(304);
    const head = await ask(port, { method: "HEAD", path: "/head" });
    expect([head.headers.get("content-length"), head.body]).toEqual(["11", ""]);
  });

  test("to the end of the connection, and cut short is no answer", async () => {
    expect((await ask(port, { path: "/until-close" })).body).toBe("all of it");
    await expect(ask(port, { path: "/cut" })).rejects.toThrow("ended without an answer");
  });

  test("before the whole of a large body is sent", async () => {
    const body = "x".repeat(64 << 20);
    expect((await ask(port, { method: "POST", path: "/big", body })).status).toBe(413);
  });
});

describe("a request is sent", () => {
  test("with its headers and its length in bytes", async () => {
    await ask(port, { method: "POST", path: "/length", headers: { "Fenec-Wait": "5" }, body: "é" });
    expect(seen.at(-1)).toStartWith("POST /length HTTP/1.1\r\n");
    expect(seen.at(-1)).toContain("Content-Length: 2\r\nFenec-Wait: 5\r\n\r\n");
  });

  test("and dropped, its answer never", async () => {
    const ending = nextEnding();
    const before = seen.length;
    const exchange = new Exchange(port, { path: "/never" });
    while (seen.length === before) await new Promise(setImmediate);
    exchange.drop();
    await ending;
    await expect(exchange.answer).rejects.toThrow("/never: the connection");
    expect(exchange.answered).toBe(false);
  });

  test("and half-closed, its answer still read", async () => {
    const ending = nextEnding();
    const before = seen.length;
    const exchange = new Exchange(port, { path: "/at-end" });
    while (seen.length === before) await new Promise(setImmediate);
    exchange.halfClose();
    await ending;
    expect((await exchange.answer).body).toBe("late");
  });
});

test("a stream gives its events in turn, comments left out, and tells its end", async () => {
  const stream = new EventStream(port, { path: "/events" });
  expect(await stream.status).toBe(200);
  expect(await stream.next(1_000)).toEqual({ name: "seed", data: "{}" });
  expect(await stream.next(1_000)).toEqual({ name: "change", data: "1" });
  expect(await stream.next(1_000)).toBeUndefined();
  expect(await stream.isClosed(1_000)).toBe(true);
});
