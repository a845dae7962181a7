/** `scripts/demo`: both parts, with a bar while they run and figures at the end. Exits 1 when anything is not right. */

import { parseArgs } from "node:util";
import { runCouriers } from "./couriers.ts";
import { startServer } from "./server.ts";
import { runWebhooks } from "./webhooks.ts";

const HELP = `usage: sh scripts/demo [--jobs <n>] [--places <n>] [--claims <n>] [--seed <n>]

Starts a server of its own over a directory that is gone afterwards, syncing every write, and sends real jobs through it:
  1. webhook deliveries to 16 workers in a second process, who ack, fail with backoff, and die on some
  2. pickups in the world's cities, and couriers who claim the nearest

  --jobs <n>     webhook deliveries (3290: each example ten times)
  --places <n>   cities (all of them, more than 100 000)
  --claims <n>   couriers' claims (300)
  --seed <n>     of what fails and where couriers are (1)
`;

const { values } = parseArgs({
  options: {
    jobs: { type: "string", default: "3290" },
    places: { type: "string", default: "1000000" },
    claims: { type: "string", default: "300" },
    seed: { type: "string", default: "1" },
    help: { type: "boolean", default: false },
  },
});

/** A bar on a terminal; a line each tenth elsewhere. */
function barOf(title: string): (ended: number, of: number) => void {
  let shown = -1;
  return (ended, of) => {
    const share = of === 0 ? 1 : ended / of;
    const step = Math.floor(share * (process.stdout.isTTY ? 200 : 10));
    if (step === shown) return;
    shown = step;
    const width = 40;
    const full = Math.round(share * width);
    const bar = `${"#".repeat(full)}${"-".repeat(width - full)}`;
    const line = `${title} [${bar}] ${String(Math.floor(share * 100)).padStart(3)} % ${ended}/${of}`;
    process.stdout.write(process.stdout.isTTY ? `\r${line}${share >= 1 ? "\n" : ""}` : `${line}\n`);
  };
}

function number(name: string, text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  process.stderr.write(`demo: --${name} takes a whole number from 0, not ${text}\n`);
  process.exit(2);
}

if (values.help) {
  process.stdout.write(HELP);
  process.exit(0);
}
const jobs = number("jobs", values.jobs);
const places = number("places", values.places);
const claims = number("claims", values.claims);
const seed = number("seed", values.seed);

const server = await startServer();
try {
  const webhooks = await runWebhooks(server, jobs, seed, barOf("deliveries"));
  process.stdout.write(
    [
      `${webhooks.jobs} deliveries in ${webhooks.seconds.toFixed(1)} s: ${(webhooks.jobs / webhooks.seconds).toFixed(0)} a second`,
      `  done ${webhooks.done}, dead letters ${webhooks.dead}; failed and tried again ${webhooks.failed}, died on ${webhooks.died}, late acks refused ${webhooks.late}`,
      `  done twice ${webhooks.doneTwice}, lost ${webhooks.lost}, payloads changed ${webhooks.changedPayloads}`,
      `  a claim of ten: p50 ${webhooks.claimMs.p50.toFixed(1)} ms, p99 ${webhooks.claimMs.p99.toFixed(1)} ms; from ready to done: p50 ${webhooks.jobMs.p50.toFixed(0)} ms, p99 ${webhooks.jobMs.p99.toFixed(0)} ms`,
      "",
    ].join("\n"),
  );
  const couriers = await runCouriers(server, places, claims, seed, barOf("couriers  "));
  process.stdout.write(
    [
      `${couriers.places} pickups placed, ${couriers.placedPerSecond.toFixed(0)} a second`,
      `  ${couriers.claims} claims of the nearest: p50 ${couriers.claimMs.p50.toFixed(2)} ms, p99 ${couriers.claimMs.p99.toFixed(2)} ms; not the nearest: ${couriers.wrong}`,
      "",
    ].join("\n"),
  );
  const right =
    webhooks.doneTwice === 0 && webhooks.lost === 0 && webhooks.changedPayloads === 0 && couriers.wrong === 0;
  process.exitCode = right ? 0 : 1;
} finally {
  await server.stop();
}
