/** Reads a `text/event-stream` answer event by event; lines that are only there to keep the connection are passed over. */

import { connect, type Socket } from "node:net";
import { AnswerReader, type Request, writeRequest } from "./wire.ts";

export interface StreamEvent {
  readonly name: string;
  readonly data: string;
}

export class EventStream {
  /** The status, once the head of the answer is there. Rejects when the connection ends before it. */
  readonly status: Promise<number>;
  /** The whole body so far, for an answer that is no stream. */
  body = "";
  /** Set when the server has closed the connection. */
  closed = false;
  readonly #socket: Socket;
  readonly #events: StreamEvent[] = [];
  readonly #waiting: (() => void)[] = [];
  #unread = "";

  constructor(port: number, request: Request) {
    const status = Promise.withResolvers<number>();
    this.status = status.promise;
    status.promise.catch(() => undefined);
    const decoder = new TextDecoder();
    const reader = new AnswerReader("GET", (bytes) => this.#take(decoder.decode(bytes, { stream: true })));
    const socket = connect({ port, host: "127.0.0.1" });
    this.#socket = socket;
    socket.on("connect", () => writeRequest(socket, "GET", request, () => reader.started));
    socket.on("data", (bytes: Buffer) => {
      reader.take(bytes);
      if (reader.started) status.resolve(reader.status);
      if (reader.ended) this.#end();
    });
    socket.on("error", () => this.#end());
    socket.on("close", () => {
      status.reject(new Error(`GET ${request.path}: the connection ended without an answer`));
      this.#end();
    });
  }

  /** The next event that has not been taken yet, or undefined when none comes within so many milliseconds. */
  async next(withinMs: number): Promise<StreamEvent | undefined> {
    if (this.#events.length === 0 && !this.closed) await this.#change(withinMs);
    return this.#events.shift();
  }

  /** Whether the server has closed the connection, or does so within so many milliseconds. */
  async isClosed(withinMs: number): Promise<boolean> {
    const end = Date.now() + withinMs;
    while (!this.closed && Date.now() < end) await this.#change(end - Date.now());
    return this.closed;
  }

  close(): void {
    this.#socket.destroy();
  }

  #change(withinMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, withinMs);
    this.#waiting.push(() => {
      clearTimeout(timer);
      resolve();
    });
    return promise;
  }

  #end(): void {
    this.closed = true;
    this.#wake();
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  #take(text: string): void {
    this.body += text;
    this.#unread += text;
    for (let end = this.#unread.indexOf("\n\n"); end >= 0; end = this.#unread.indexOf("\n\n")) {
      const event = readEvent(this.#unread.slice(0, end));
      this.#unread = this.#unread.slice(end + 2);
      if (event !== undefined) this.#events.push(event);
    }
    if (this.#events.length > 0) this.#wake();
  }
}

function readEvent(block: string): StreamEvent | undefined {
  let name = "message";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) name = line.slice("event:".length).trim();
    if (line.startsWith("data:")) data.push(line.slice("data:".length).trim());
  }
  return data.length === 0 ? undefined : { name, data: data.join("\n") };
}
