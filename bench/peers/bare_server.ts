/**
 * What HTTP itself costs: routes on Elysia that answer what the drain's requests would be answered, of the same length, from
 * a counter. No statement is read, nothing is kept. `bun bare_server.ts <port>`.
 */

import { Elysia } from "elysia";
import { payloadOf } from "../load.ts";

const PAGE = 10;

let filled = 0;
let taken = 0;

function answer(body: string): Response {
  return new Response(body, { headers: { "content-type": "application/json", "fenec-seq": String(taken) } });
}

function claimed(): string {
  const rows: string[] = [];
  for (; rows.length < PAGE && taken < filled; taken++) rows.push(`{"id":${taken + 1},"payload":${payloadOf(taken)}}`);
  return `[${rows.join(",")}]`;
}

new Elysia({ strictPath: true, normalize: false })
  .post(
    "/query",
    async ({ request }) => {
      const body = await request.text();
      if (!body.startsWith('{"query":"put ')) return answer(claimed());
      const rows = body.split('"run_at"').length - 1;
      filled += rows;
      return answer(`{"affected":${rows}}`);
    },
    { parse: "none" },
  )
  .post(
    "/batch",
    async ({ request }) => {
      const lines = (await request.text()).split("\n").length - 1;
      return answer(`{"ok":${lines},"results":[${new Array(lines).fill('{"affected":1}').join(",")}]}`);
    },
    { parse: "none" },
  )
  .listen({ hostname: "127.0.0.1", port: Number(process.argv[2]), reusePort: false });
