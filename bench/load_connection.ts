/**
 * One keep-alive HTTP connection over a raw socket: the load generator shares its two cores with the server it measures,
 * and `fetch` would take more of them than the server does.
 *
 * It sends one request at a time and reads answers with a `Content-Length`, as this server's are. Bodies are read as
 * latin1: the jobs of the benchmarks are ascii.
 */

import type { Socket } from "bun";

export type OnAnswer = (status: number, body: string) => void;

const HEAD_END = "\r\n\r\n";
const STATUS_AT = "HTTP/1.1 ".length;

export class LoadConnection {
  readonly #host: string;
  #socket: Socket | null = null;
  #received = "";
  #unsent: Buffer | null = null;
  #onAnswer: OnAnswer | null = null;
  readonly #broken: (why: Error) => void;

  private constructor(host: string, broken: (why: Error) => void) {
    this.#host = host;
    this.#broken = broken;
  }

  /** @param broken told when the connection ends under a request, or an answer is not understood */
  static async open(port: number, broken: (why: Error) => void): Promise<LoadConnection> {
    const connection = new LoadConnection(`127.0.0.1:${port}`, broken);
    connection.#socket = await Bun.connect({
      hostname: "127.0.0.1",
      port,
      socket: {
        data: (_, bytes) => connection.#data(bytes),
        drain: () => connection.#drain(),
        close: () => connection.#closed(),
        error: (_, error) => broken(error),
      },
    });
    return connection;
  }

  /**
   * Sends a POST and calls `onAnswer` with its answer. The one before must have been answered.
   *
   * @param headers further ones, each line with its end
   */
  post(path: string, body: string, onAnswer: OnAnswer, headers = ""): void {
    this.#begin(onAnswer);
    this.#send(
      `POST ${path} HTTP/1.1\r\nHost: ${this.#host}\r\nContent-Length: ${body.length}\r\n${headers}\r\n${body}`,
    );
  }

  /** Sends a GET, likewise. */
  get(path: string, onAnswer: OnAnswer): void {
    this.#begin(onAnswer);
    this.#send(`GET ${path} HTTP/1.1\r\nHost: ${this.#host}\r\n\r\n`);
  }

  /** A POST as a promise, for what is not measured. */
  ask(path: string, body: string): Promise<{ status: number; body: string }> {
    return new Promise((resolve) => this.post(path, body, (status, answer) => resolve({ status, body: answer })));
  }

  close(): void {
    this.#onAnswer = null;
    this.#socket?.end();
  }

  #begin(onAnswer: OnAnswer): void {
    if (this.#onAnswer !== null) throw new Error("a request is under way");
    this.#onAnswer = onAnswer;
  }

  #send(request: string): void {
    const socket = this.#socket;
    if (socket === null) throw new Error("the connection is not open");
    const written = socket.write(request);
    if (written < request.length) this.#unsent = Buffer.from(request, "latin1").subarray(Math.max(0, written));
  }

  #drain(): void {
    const rest = this.#unsent;
    if (rest === null) return;
    const written = this.#socket?.write(rest) ?? 0;
    this.#unsent = written < rest.length ? rest.subarray(written) : null;
  }

  #data(bytes: Buffer): void {
    const text = bytes.toString("latin1");
    this.#received = this.#received === "" ? text : this.#received + text;
    const head = this.#received.indexOf(HEAD_END);
    if (head === -1) return;
    const [, length] = /\r\ncontent-length: (\d+)/i.exec(this.#received) ?? [];
    if (length === undefined) {
      this.#broken(new Error(`an answer without a length: ${this.#received.slice(0, 200)}`));
      return;
    }
    const end = head + HEAD_END.length + Number(length);
    if (this.#received.length < end) return;
    const status = Number(this.#received.slice(STATUS_AT, STATUS_AT + 3));
    const body = this.#received.slice(head + HEAD_END.length, end);
    this.#received = this.#received.slice(end);
    const onAnswer = this.#onAnswer;
    this.#onAnswer = null;
    onAnswer?.(status, body);
  }

  #closed(): void {
    if (this.#onAnswer !== null) this.#broken(new Error("the server closed the connection under a request"));
  }
}
