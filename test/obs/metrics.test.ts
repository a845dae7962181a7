import { describe, expect, test } from "bun:test";
import { Exposition } from "../../src/obs/exposition.ts";
import { DURATION_BOUNDS, Histogram } from "../../src/obs/histogram.ts";
import { Log } from "../../src/obs/log.ts";
import { Metrics } from "../../src/obs/metrics.ts";
import { Store } from "../../src/store/store.ts";

/** A plain reader of the exposition format; throws on a line that is none. */
function samplesOf(text: string): Map<string, number> {
  const samples = new Map<string, number>();
  const typed = new Map<string, string>();
  expect(text.endsWith("\n")).toBe(true);
  for (const line of text.trimEnd().split("\n")) {
    const type = /^# TYPE ([a-z_]+) (counter|gauge|histogram)$/.exec(line);
    if (type !== null) {
      expect(typed.has(type[1]!)).toBe(false);
      typed.set(type[1]!, type[2]!);
      continue;
    }
    if (/^# HELP [a-z_]+ \S/.test(line)) continue;
    const sample = /^([a-z_]+)((?:\{(?:[a-z_]+="(?:[^"\\]|\\["\\n])*",?)+\})?) (\S+)$/.exec(line);
    if (sample === null) throw new Error(`no sample: ${line}`);
    const family = sample[1]!.replace(/_(bucket|sum|count)$/, "");
    expect(typed.has(sample[1]!) || typed.get(family) === "histogram").toBe(true);
    expect(samples.has(sample[1]! + sample[2]!)).toBe(false);
    samples.set(sample[1]! + sample[2]!, Number(sample[3]));
  }
  return samples;
}

describe("metrics", () => {
  test("what was counted and what stands", () => {
    const store = new Store();
    store.apply([
      {
        op: "create",
        schema: {
          cid: 1,
          name: "été",
          fields: [{ name: "a", type: { kind: "int" }, required: false, slot: 1 }],
          indexes: [],
        },
      },
      { op: "put", cid: 1, row: [1, 5] },
    ]);
    const metrics = new Metrics(1_700_000_000_500);
    metrics.statement("read", 0.0003);
    metrics.statement("write", 20);
    metrics.statement("write", 0.0001);
    metrics.error("write");
    metrics.heldStatement();
    metrics.heldWoken(0.0004);
    metrics.slow();
    const samples = samplesOf(
      metrics.render({
        version: '1.2"3',
        connections: 3,
        streams: 2,
        store,
        queues: [{ collection: "q", ready: 1, delayed: 2, leased: 3, dead: 4, oldestReadySeconds: 1.5 }],
        seq: 7,
        storageFailed: true,
        logged: { frames: 9, bytes: 900, syncs: 4, syncMs: 2_500, fileBytes: 7_000 },
        held: { held: 1, looks: 5, runs: 4 },
      }),
    );
    const of = (name: string): number | undefined => samples.get(name);
    expect(of('fenec_statements_total{transport="http",kind="read"}')).toBe(1);
    expect(of('fenec_statements_total{transport="http",kind="write"}')).toBe(4);
    expect(of('fenec_statement_errors_total{transport="http",kind="write"}')).toBe(1);
    expect(of('fenec_statement_duration_seconds_bucket{transport="http",kind="write",le="0.0001"}')).toBe(1);
    expect(of('fenec_statement_duration_seconds_bucket{transport="http",kind="write",le="10"}')).toBe(1);
    expect(of('fenec_statement_duration_seconds_bucket{transport="http",kind="write",le="+Inf"}')).toBe(2);
    expect(of('fenec_statement_duration_seconds_count{transport="http",kind="write"}')).toBe(2);
    expect(of('fenec_statement_duration_seconds_sum{transport="http",kind="write"}')).toBeCloseTo(20.0001);
    expect(of('fenec_slow_statements_total{transport="http"}')).toBe(1);
    expect(of("fenec_change_sequence")).toBe(7);
    expect(of("fenec_storage_failed")).toBe(1);
    expect(of('fenec_connections{transport="http"}')).toBe(3);
    expect(of("fenec_log_frames_total")).toBe(9);
    expect(of("fenec_file_bytes")).toBe(7_000);
    expect(of("fenec_log_bytes_total")).toBe(900);
    expect(of("fenec_log_syncs_total")).toBe(4);
    expect(of("fenec_log_sync_seconds_total")).toBe(2.5);
    expect(of("fenec_held_claims")).toBe(1);
    expect(of("fenec_held_looks_total")).toBe(5);
    expect(of("fenec_held_runs_total")).toBe(4);
    expect(of('fenec_held_wake_seconds_bucket{le="0.0005"}')).toBe(1);
    expect(of("fenec_held_wake_seconds_count")).toBe(1);
    expect(of('fenec_queue_oldest_ready_seconds{collection="q"}')).toBe(1.5);
    expect(of('fenec_queue_leased{collection="q"}')).toBe(3);
    expect(of('fenec_documents{collection="été"}')).toBe(1);
    expect(of('fenec_build_info{version="1.2\\"3"}')).toBe(1);
    expect(of("fenec_start_time_seconds")).toBe(1_700_000_000.5);
    expect(of("fenec_memory_bytes")).toBeGreaterThan(1_000_000);
  });

  test("a bound belongs to the bucket it ends", () => {
    const histogram = new Histogram();
    for (const bound of DURATION_BOUNDS) histogram.observe(bound);
    histogram.observe(0);
    const out = new Exposition();
    out.family("x", "histogram", "Help.");
    histogram.write(out, "x", []);
    const samples = samplesOf(String(out));
    let below = 1;
    for (const bound of DURATION_BOUNDS) expect(samples.get(`x_bucket{le="${bound}"}`)).toBe(++below);
    expect(samples.get('x_bucket{le="+Inf"}')).toBe(below);
  });

  test("a log line is one line, its fields told apart", () => {
    const lines: string[] = [];
    const log = new Log((line) => lines.push(line));
    log.warn("two\nlines", { text: 'a "b"\n', ms: 5, kind: "read" });
    expect(lines[0]).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z warn two lines text="a \\"b\\"\\n" ms=5 kind=read\n$/);
    log.error("broke", {}, new Error("why"));
    expect(lines[2]).toContain("Error: why");
  });
});
