/** The routes that are about the server and not about rows. */

import { TIME_MAX_MS } from "../base/limits.ts";
import { Refusal } from "../base/refusal.ts";
import { EXPOSITION_TYPE } from "../obs/exposition.ts";
import { parseTime } from "../value/time.ts";
import { bodyText, readClock } from "./body.ts";
import { contextOf, targetOf } from "./request_headers.ts";
import type { Hold, Identity } from "./seams.ts";
import type { Service } from "./service.ts";

/**
 * `GET /`: which server this is and what it holds. `fenecdb` says the version again, as it is the member by which
 * clients of this interface know it.
 */
export const answerRoot = route(async (service, request, who) => {
  const { engine } = service.data();
  const names = engine.names(contextOf(request, who, ""));
  await engine.durable(true);
  const version = JSON.stringify(service.settings.version);
  return service.answers.ok(`{"fenec":${version},"fenecdb":${version},"collections":${JSON.stringify(names)}}`);
});

/** `GET /collections`. */
export const answerCollections = route(async (service, request, who) => {
  const { engine } = service.data();
  const body = engine.collections(contextOf(request, who, ""));
  await engine.durable(true);
  return service.answers.ok(body);
});

/** `GET /_whoami`. */
export const answerWhoami = route(async (service, _request, who) => {
  const { engine } = service.data();
  if (service.gate !== null) return service.answers.ok(service.gate.whoami(who));
  return service.answers.ok(
    `{"read_only":${engine.readOnly},"kind":"open","sub":null,"tenants":null,"unbound":true,"append_only":[],"rules":[]}`,
  );
});

const NOTHING_HELD: Pick<Hold, "held" | "looks" | "runs"> = { held: 0, looks: 0, runs: 0 };

/** `GET /_metrics`; not for a token held to rules. Answered however many requests are under way. */
export const answerMetrics = route(async (service, _request, who) => {
  if (who.kind === "scoped") throw new Refusal("unauthorized", "metrics are shown to the server's token alone");
  const data = service.open ?? service.data();
  const text = service.metrics.render({
    version: service.settings.version,
    connections: service.connections,
    streams: data.streams.count,
    store: data.engine.store,
    queues: await data.queues.read(() => service.clock.now()),
    seq: data.engine.seq,
    storageFailed: !data.engine.health().ok,
    logged: data.engine.logged,
    held: data.hold ?? NOTHING_HELD,
  });
  return service.answers.other(200, text, { "content-type": EXPOSITION_TYPE });
});

/** `GET /_health`: asks nobody who they are and waits for nothing. */
export function answerHealth(service: Service): Response {
  const data = service.open;
  if (service.stopping) return unwell(service, "stopping", "the server is stopping");
  if (data === undefined) return unwell(service, "loading", `loading: ${service.progressWords()}`);
  const health = data.engine.health();
  return health.ok ? service.answers.ok('{"ok":true}') : unwell(service, health.code, health.why);
}

function unwell(service: Service, code: string, why: string): Response {
  return service.answers.json(503, JSON.stringify({ ok: false, why, error: why, code }), { "retry-after": "1" });
}

/** `GET /_clock` of a server on the test clock. */
export const answerClock = route(async (service, request, who) => {
  const clock = testClock(service, request, who);
  return service.answers.ok(`{"now":${clock.now()}}`);
});

/** `POST /_clock`: answered when everything that came due has run. */
export const answerMoveClock = route(async (service, request, who) => {
  const clock = testClock(service, request, who);
  const { advance_ms: byMs, set } = readClock(await bodyText(request, service.settings.maxBodyBytes));
  if (byMs !== undefined) {
    if (clock.now() + byMs > TIME_MAX_MS) throw new Refusal("bad_request", "the clock stays within the year 9999");
    await clock.advance(byMs);
  } else {
    const toMs = parseTime(set ?? "");
    if (toMs === undefined) throw new Refusal("bad_request", `${JSON.stringify(set)} is no ISO time`);
    if (toMs < clock.now()) throw new Refusal("bad_request", "the clock moves forwards only");
    await clock.set(toMs);
  }
  return service.answers.ok(`{"now":${clock.now()}}`);
});

function testClock(service: Service, request: Request, who: Identity) {
  if (service.testClock === null) throw noRoute(request);
  if (who.kind === "scoped") throw new Refusal("forbidden", "the clock is moved by the server's token alone");
  return service.testClock;
}

/** What was asked for is quoted up to here. */
const QUOTED = 100;

export function noRoute(request: Request): Refusal {
  const asked = `${request.method} ${targetOf(request.url).split("?", 1)[0]?.slice(0, QUOTED)}`;
  return new Refusal("unknown_route", `there is no route ${asked}`);
}

type Answerer = (service: Service, request: Request) => Promise<Response>;

function route(run: (service: Service, request: Request, who: Identity) => Promise<Response>): Answerer {
  return async (service, request) => {
    try {
      return await run(service, request, await service.identity(request));
    } catch (error) {
      return service.failed(error, request);
    }
  };
}
