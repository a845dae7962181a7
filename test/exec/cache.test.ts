/** What the cache of plans keeps, and what it does not. */

import { expect, setDefaultTimeout, test } from "bun:test";
import { StatementCache } from "../../src/exec/cache.ts";

setDefaultTimeout(60_000);

const claim = "set jobs {owner: $1, run_at: now() + 30000} where run_at <= now() order run_at limit 10 returning *";
const put = (n: number): string => `put jobs {payload: {n: ${n}}, run_at: now()}`;

test("a text that comes again is kept with its literals, whatever comes between", () => {
  const cache = new StatementCache();
  const first = cache.parse(claim);
  cache.parse(claim);
  const kept = cache.parse(claim);
  for (let n = 0; n < 5_000; n++) cache.parse(put(n));
  const later = cache.parse(claim);
  expect(later).toBe(kept);
  expect(later.shape).toBe(first.shape);
  expect(later.literals).toEqual([30_000, 10]);
});

test("texts that differ in their literals share what was planned", () => {
  const cache = new StatementCache();
  const { shape } = cache.parse(put(1));
  for (let n = 2; n < 100; n++) expect(cache.parse(put(n)).shape).toBe(shape);
  expect(cache.parse(put(7)).literals).toEqual(cache.parse(put(7)).literals);
});

test("what is kept of a text keeps no more than the text", () => {
  const cache = new StatementCache();
  const size = 2 * 1024 * 1024;
  const memory = (): number => {
    Bun.gc(true);
    return process.memoryUsage().rss;
  };
  const send = (n: number): void => {
    // As a statement is cut out of a request's body.
    const body = `{"query":"get jobs where owner = $${1 + (n % 90)} and attempts > $95 order f${n}","params":["${"x".repeat(size)}"]}`;
    const flat = Buffer.from(body).toString("latin1");
    cache.parse(flat.slice(10, flat.indexOf('","params"')));
  };
  for (let n = 0; n < 10; n++) send(n);
  const before = memory();
  for (let n = 10; n < 70; n++) send(n);
  // Sixty bodies of 2 MB are 120 MB.
  expect(memory() - before).toBeLessThan(60 * 1024 * 1024);
});
