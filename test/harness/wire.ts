/**
 * HTTP/1.1 over a socket of its own for every request, so that a test can leave one unanswered, drop it, half-close it,
 * and say on which connection what was sent. `fetch` pools connections and hides all of that.
 */

import { connect, type Socket } from "node:net";

export interface Request {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

export interface Answer {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** How the body's end is told. */
type Framing = "none" | "chunked" | "close" | { readonly left: number };

/** Reads one answer from the bytes of a connection as they come. */
export class AnswerReader {
  status = 0;
  readonly headers = new Map<string, string>();
  /** Set once the head is whole. */
  started = false;
  ended = false;
  readonly #hasBody: boolean;
  #pending: Buffer = Buffer.alloc(0);
  #framing: Framing = "close";
  readonly #onBody: (bytes: Buffer) => void;

  constructor(method: string, onBody: (bytes: Buffer) => void) {
    this.#hasBody = method !== "HEAD";
    this.#onBody = onBody;
  }

  take(bytes: Buffer): void {
    this.#pending = Buffer.concat([this.#pending, bytes]);
    if (!this.started) this.#readHead();
    if (this.started && !this.ended) this.#readBody();
  }

  /** The peer will send no more. */
  finish(): void {
    if (this.started && this.#framing === "close") this.ended = true;
  }

  #readHead(): void {
    const end = this.#pending.indexOf("\r\n\r\n");
    if (end < 0) return;
    const [line = "", ...rest] = this.#pending.subarray(0, end).toString("latin1").split("\r\n");
    this.status = Number(line.split(" ")[1]);
    for (const header of rest) {
      const colon = header.indexOf(":");
      this.headers.set(header.slice(0, colon).toLowerCase(), header.slice(colon + 1).trim());
    }
    this.#pending = this.#pending.subarray(end + 4);
    this.started = true;
    const length = this.headers.get("content-length");
    if (!this.#hasBody || this.status === 204 || this.status === 304) this.#framing = "none";
    else if (this.headers.get("transfer-encoding") === "chunked") this.#framing = "chunked";
    else if (length !== undefined) this.#framing = { left: Number(length) };
  }

  #readBody(): void {
    if (this.#framing === "none") this.ended = true;
    else if (this.#framing === "chunked") this.#readChunks();
    else if (this.#framing === "close") this.#hand(this.#pending.length);
    else {
      const taken = Math.min(this.#pending.length, this.#framing.left);
      this.#framing = { left: this.#framing.left - taken };
      this.#hand(taken);
      this.ended = this.#framing.left === 0;
    }
  }

  #readChunks(): void {
    while (!this.ended) {
      const line = this.#pending.indexOf("\r\n");
      if (line < 0) return;
      const length = Number.parseInt(this.#pending.subarray(0, line).toString("latin1"), 16);
      const from = line + 2;
      if (this.#pending.length < from + length + 2) return;
      if (length === 0) this.ended = true;
      this.#pending = this.#pending.subarray(from);
      this.#hand(length);
      this.#pending = this.#pending.subarray(2);
    }
  }

  #hand(length: number): void {
    if (length > 0) this.#onBody(this.#pending.subarray(0, length));
    this.#pending = this.#pending.subarray(length);
  }
}

/** One request on its own connection. */
export class Exchange {
  /** `Date.now()` when the request was handed to the socket. */
  readonly sentAt = Date.now();
  /** `Date.now()` when the answer was whole. */
  answeredAt: number | undefined;
  /** Rejects when the connection ends before the answer does, or when it was dropped. */
  readonly answer: Promise<Answer>;
  readonly #socket: Socket;

  constructor(port: number, request: Request) {
    const method = request.method ?? "GET";
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    this.answer = promise;
    // A test that drops the connection does not wait for its answer.
    promise.catch(() => undefined);
    const body: Buffer[] = [];
    const reader = new AnswerReader(method, (bytes) => body.push(bytes));
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    this.#socket = socket;

    const settle = (): void => {
      if (!reader.ended || this.answeredAt !== undefined) return;
      this.answeredAt = Date.now();
      resolve({ status: reader.status, headers: reader.headers, body: Buffer.concat(body).toString("utf8") });
      socket.destroy();
    };
    socket.on("connect", () => writeRequest(socket, method, request, () => reader.started));
    socket.on("data", (bytes: Buffer) => {
      reader.take(bytes);
      settle();
    });
    socket.on("error", reject);
    socket.on("end", () => {
      reader.finish();
      settle();
      reject(new Error(`${method} ${request.path}: the connection ended without an answer`));
      socket.destroy();
    });
    socket.on("close", () => reject(new Error(`${method} ${request.path}: the connection was closed`)));
  }

  get answered(): boolean {
    return this.answeredAt !== undefined;
  }

  /** Closes the connection with a reset, as a process that dies does. */
  drop(): void {
    this.#socket.resetAndDestroy();
  }

  /** Closes this side alone; answers can still be read. */
  halfClose(): void {
    this.#socket.end();
  }
}

/** A request's head and body onto a socket. A body is not sent on once an answer has begun: it was refused by its head. */
export function writeRequest(socket: Socket, method: string, request: Request, answered: () => boolean): void {
  const body = typeof request.body === "string" ? Buffer.from(request.body) : (request.body ?? new Uint8Array(0));
  const headers = new Map([["Host", "127.0.0.1"]]);
  if (request.body !== undefined || method === "POST") headers.set("Content-Length", String(body.length));
  for (const [name, value] of Object.entries(request.headers ?? {})) headers.set(name, value);
  const lines = [...headers].map(([name, value]) => `${name}: ${value}\r\n`).join("");
  socket.write(`${method} ${request.path} HTTP/1.1\r\n${lines}\r\n`);

  const slice = 1 << 20;
  let at = 0;
  const more = (): void => {
    while (at < body.length && !answered() && !socket.destroyed) {
      const part = body.subarray(at, at + slice);
      at += part.length;
      if (!socket.write(part)) {
        socket.once("drain", more);
        return;
      }
    }
  };
  more();
}

/** Sends and waits for the answer. */
export function ask(port: number, request: Request): Promise<Answer> {
  return new Exchange(port, request).answer;
}
