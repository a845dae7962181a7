/** beanstalkd: leases and acks, one job a command. */

import { payloadOf } from "../load.ts";
import { freePort, listening, programOf, startChild, versionOf } from "../processes.ts";
import { LineSocket } from "./line_socket.ts";
import type { Drainer, Peer } from "./peer.ts";

const FILL_PAGE = 1_000;

/** A client of ten commands at a time: reserves, then deletes, each burst in one write. */
class Client {
  #socket: LineSocket | null = null;
  readonly #page: number;
  #ids: string[] = [];
  #expected = 0;
  #answers = 0;
  #deleting = false;
  #deleted = 0;
  #done: ((deleted: number) => void) | null = null;

  private constructor(page: number) {
    this.#page = page;
  }

  static async open(port: number, page: number): Promise<Client> {
    const client = new Client(page);
    client.#socket = await LineSocket.open(port, (text) => client.#received(text));
    return client;
  }

  put(payloads: readonly string[]): Promise<number> {
    return new Promise((resolve) => {
      this.#expect(payloads.length, true, resolve);
      this.#socket?.send(payloads.map((each) => `put 0 0 60 ${each.length}\r\n${each}\r\n`).join(""));
    });
  }

  /** Resolves with the number of jobs it deleted. */
  drain(): Promise<number> {
    return new Promise((resolve) => {
      this.#deleted = 0;
      this.#reserve(resolve);
    });
  }

  close(): void {
    this.#socket?.close();
  }

  #reserve(done: (deleted: number) => void): void {
    this.#ids = [];
    this.#expect(this.#page, false, done);
    this.#socket?.send("reserve-with-timeout 0\r\n".repeat(this.#page));
  }

  #expect(answers: number, deleting: boolean, done: (deleted: number) => void): void {
    this.#expected = answers;
    this.#answers = 0;
    this.#deleting = deleting;
    this.#done = done;
  }

  #received(text: string): number {
    let at = 0;
    while (this.#answers < this.#expected) {
      const lineEnd = text.indexOf("\r\n", at);
      if (lineEnd === -1) return at;
      const [word = "", id = "", size = "0"] = text.slice(at, lineEnd).split(" ");
      let end = lineEnd + 2;
      if (word === "RESERVED") {
        end += Number(size) + 2;
        if (end > text.length) return at;
        this.#ids.push(id);
      } else if (word === "DELETED") this.#deleted++;
      else if (word !== "INSERTED" && word !== "TIMED_OUT") throw new Error(`beanstalkd answered ${word}`);
      this.#answers++;
      at = end;
    }
    this.#next();
    return at;
  }

  #next(): void {
    const done = this.#done;
    if (done === null) return;
    const ids = this.#ids;
    if (this.#deleting && ids.length === 0) {
      this.#done = null;
      done(this.#deleted);
    } else if (this.#deleting) this.#reserve(done);
    else if (ids.length === 0) {
      this.#done = null;
      done(this.#deleted);
    } else {
      this.#expect(ids.length, true, done);
      this.#socket?.send(ids.map((id) => `delete ${id}\r\n`).join(""));
    }
  }
}

async function connect(port: number, clients: number, page: number): Promise<Drainer> {
  const all: Client[] = [];
  for (let at = 0; at < clients; at++) all.push(await Client.open(port, page));
  const filler = await Client.open(port, page);
  return {
    fill: async (jobs) => {
      for (let from = 0; from < jobs; from += FILL_PAGE) {
        const payloads: string[] = [];
        for (let job = from; job < Math.min(jobs, from + FILL_PAGE); job++) payloads.push(payloadOf(job));
        await filler.put(payloads);
      }
    },
    drain: async (jobs) => {
      const deleted = await Promise.all(all.map((client) => client.drain()));
      const sum = deleted.reduce((a, b) => a + b, 0);
      if (sum !== jobs) throw new Error(`${sum} of ${jobs} jobs were deleted`);
    },
    close: async () => {
      for (const client of [...all, filler]) client.close();
    },
  };
}

function beanstalkd(syncMs: number, loses: string): Peer {
  return {
    name: `beanstalkd-${syncMs}`,
    title: `beanstalkd -f ${syncMs}`,
    loses,
    configuration: `-b <directory> -f ${syncMs}`,
    way: "ten reserves, then ten deletes, each ten in one write over a raw socket",
    share: syncMs === 0 ? 0.02 : 1,
    missing: () => (programOf("beanstalkd") === null ? "apt-get install beanstalkd" : null),
    version: () => versionOf(programOf("beanstalkd") ?? "beanstalkd", "-v"),
    start: async (directory) => {
      const port = freePort();
      const program = programOf("beanstalkd") ?? "beanstalkd";
      const args = ["-l", "127.0.0.1", "-p", String(port), "-b", directory, "-f", String(syncMs)];
      const child = startChild([program, ...args], directory);
      await listening(port);
      return { address: { port }, pid: child.pid, stop: () => child.end() };
    },
    connect: ({ port }, clients, page) => connect(Number(port), clients, page),
  };
}

export const beanstalkd0 = beanstalkd(0, "nothing");
export const beanstalkd50 = beanstalkd(50, "50 ms");
