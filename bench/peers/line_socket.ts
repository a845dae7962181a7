/**
 * A raw socket for peers that speak lines: as lean as the generator this server is driven by, so that no client library
 * is measured in the place of a server.
 */

import type { Socket } from "bun";

export class LineSocket {
  #socket: Socket | null = null;
  #received = "";
  #unsent: Buffer | null = null;
  #onText: ((text: string) => number) | null = null;

  /** `onText` is given what was received and not used yet, and answers how much of it it used. */
  static async open(port: number, onText: (text: string) => number): Promise<LineSocket> {
    const line = new LineSocket();
    line.#onText = onText;
    line.#socket = await Bun.connect({
      hostname: "127.0.0.1",
      port,
      socket: { data: (_, bytes) => line.#data(bytes), drain: () => line.#drain() },
    });
    return line;
  }

  send(text: string): void {
    const written = this.#socket?.write(text) ?? 0;
    if (written < text.length) this.#unsent = Buffer.from(text, "latin1").subarray(Math.max(0, written));
  }

  close(): void {
    this.#socket?.end();
  }

  #data(bytes: Buffer): void {
    this.#received += bytes.toString("latin1");
    const used = this.#onText?.(this.#received) ?? 0;
    this.#received = this.#received.slice(used);
  }

  #drain(): void {
    const rest = this.#unsent;
    if (rest === null) return;
    const written = this.#socket?.write(rest) ?? 0;
    this.#unsent = written < rest.length ? rest.subarray(written) : null;
  }
}
