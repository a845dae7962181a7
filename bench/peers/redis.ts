/** Redis, and the barest queue on it: a list, popped ten at a time. There is no ack, so a job dies with its worker. */

import { payloadOf } from "../load.ts";
import { freePort, listening, programOf, startChild, versionOf } from "../processes.ts";
import { LineSocket } from "./line_socket.ts";
import type { Drainer, Peer, Running } from "./peer.ts";

const FILL_PAGE = 1_000;

export type Appendfsync = "always" | "everysec";

export const REDIS_MISSING = "apt-get install redis-server";

export function redisMissing(): string | null {
  return programOf("redis-server") === null ? REDIS_MISSING : null;
}

export function redisVersion(): string {
  const words = versionOf(programOf("redis-server") ?? "redis-server", "--version");
  return `Redis ${/v=(\S+)/.exec(words)?.[1] ?? words}`;
}

export async function startRedis(directory: string, appendfsync: Appendfsync): Promise<Running> {
  const port = freePort();
  const program = programOf("redis-server") ?? "redis-server";
  const child = startChild(
    [
      program,
      ...["--port", String(port), "--bind", "127.0.0.1", "--dir", directory, "--daemonize", "no"],
      ...["--appendonly", "yes", "--appendfsync", appendfsync, "--save", ""],
    ],
    directory,
  );
  await listening(port);
  return { address: { port }, pid: child.pid, stop: () => child.end() };
}

function command(...words: string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join("")}`;
}

/** The end of the answer that begins at `at`, -1 when it is not all there; `items` of it are counted. */
function answerEnd(text: string, at: number, items: { count: number }): number {
  const lineEnd = text.indexOf("\r\n", at);
  if (lineEnd === -1) return -1;
  const size = Number(text.slice(at + 1, lineEnd));
  switch (text[at]) {
    case ":":
    case "+":
      return lineEnd + 2;
    case "*": {
      let end = lineEnd + 2;
      for (let item = 0; item < size && end !== -1; item++) end = answerEnd(text, end, items);
      return end;
    }
    case "$": {
      if (size < 0) return lineEnd + 2;
      const end = lineEnd + 2 + size + 2;
      if (end > text.length) return -1;
      items.count++;
      return end;
    }
    default:
      throw new Error(`Redis answered ${text.slice(at, lineEnd)}`);
  }
}

/** One connection that has one command under way. */
class RedisClient {
  #socket: LineSocket | null = null;
  #answered: ((items: number) => void) | null = null;

  static async open(port: number): Promise<RedisClient> {
    const client = new RedisClient();
    client.#socket = await LineSocket.open(port, (text) => {
      const items = { count: 0 };
      const end = answerEnd(text, 0, items);
      if (end === -1) return 0;
      const answered = client.#answered;
      client.#answered = null;
      answered?.(items.count);
      return end;
    });
    return client;
  }

  ask(text: string, answered: (items: number) => void): void {
    this.#answered = answered;
    this.#socket?.send(text);
  }

  close(): void {
    this.#socket?.close();
  }
}

async function connectRedis(port: number, clients: number, page: number): Promise<Drainer> {
  const connections: RedisClient[] = [];
  for (let at = 0; at < clients; at++) connections.push(await RedisClient.open(port));
  const pop = command("RPOP", "jobs", String(page));
  return {
    fill: async (jobs) => {
      for (let from = 0; from < jobs; from += FILL_PAGE) {
        const payloads: string[] = [];
        for (let job = from; job < Math.min(jobs, from + FILL_PAGE); job++) payloads.push(payloadOf(job));
        await new Promise<number>((resolve) => connections[0]?.ask(command("LPUSH", "jobs", ...payloads), resolve));
      }
    },
    drain: async (jobs) => {
      let taken = 0;
      const { promise, resolve } = Promise.withResolvers<void>();
      let running = connections.length;
      for (const connection of connections) {
        const next = (items: number): void => {
          taken += items;
          if (items > 0) connection.ask(pop, next);
          else if (--running === 0) resolve();
        };
        connection.ask(pop, next);
      }
      await promise;
      if (taken !== jobs) throw new Error(`${taken} of ${jobs} jobs were popped`);
    },
    close: async () => {
      for (const connection of connections) connection.close();
    },
  };
}

export const redisPop: Peer = {
  name: "redis-rpop-always",
  title: "Redis RPOP of ten, appendfsync always",
  loses: "nothing answered; a worker that dies loses its ten",
  configuration: "appendonly yes, appendfsync always",
  way: "RPOP jobs 10 over a raw socket; no lease and no ack",
  share: 1,
  missing: redisMissing,
  version: redisVersion,
  start: (directory) => startRedis(directory, "always"),
  connect: ({ port }, clients, page) => connectRedis(Number(port), clients, page),
};
