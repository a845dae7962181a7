/** Every route of the server, on Elysia. A handler reads the request's body itself: see `body.ts`. */

import { Elysia } from "elysia";
import { Refusal } from "../base/refusal.ts";
import { answerBatch, answerQuery } from "./query.ts";
import {
  answerChanges,
  answerDelete,
  answerDeleteAll,
  answerInsert,
  answerRead,
  answerUpdate,
  answerUpdateAll,
} from "./rest_routes.ts";
import {
  answerClock,
  answerCollections,
  answerHealth,
  answerMetrics,
  answerMoveClock,
  answerRoot,
  answerWhoami,
  noRoute,
} from "./server_routes.ts";
import type { Service } from "./service.ts";

/** The body is left to the handler. */
const UNREAD = { parse: "none" } as const;

interface Asked {
  readonly request: Request;
}
interface AskedOf extends Asked {
  readonly params: { readonly collection: string };
}

/** The app, not yet listening. What can be got can be asked about: of a HEAD Bun leaves the body out and says its length. */
export function appOf(service: Service) {
  const root = ({ request }: Asked) => answerRoot(service, request);
  const collections = ({ request }: Asked) => answerCollections(service, request);
  const health = () => answerHealth(service);
  const whoami = ({ request }: Asked) => answerWhoami(service, request);
  const metrics = ({ request }: Asked) => answerMetrics(service, request);
  const clock = ({ request }: Asked) => answerClock(service, request);
  const read = ({ request, params }: AskedOf) => answerRead(service, request, params.collection);
  const update = ({ request, params }: AskedOf) => answerUpdate(service, request, params.collection);
  const updateAll = ({ request, params }: AskedOf) => answerUpdateAll(service, request, params.collection);
  const app = new Elysia({ strictPath: true, normalize: false })
    .onError(({ error, code, request }) => {
      if (code === "NOT_FOUND") return service.answers.refusal(unknownRoute(request));
      return service.failed(error, request);
    })
    .post("/query", ({ request }) => answerQuery(service, request), UNREAD)
    .post("/batch", ({ request }) => answerBatch(service, request), UNREAD)
    .get("/", root, UNREAD)
    .head("/", root, UNREAD)
    .get("/collections", collections, UNREAD)
    .head("/collections", collections, UNREAD)
    .get("/_health", health, UNREAD)
    .head("/_health", health, UNREAD)
    .get("/_whoami", whoami, UNREAD)
    .head("/_whoami", whoami, UNREAD)
    .get("/_metrics", metrics, UNREAD)
    .head("/_metrics", metrics, UNREAD)
    .get("/_clock", clock, UNREAD)
    .head("/_clock", clock, UNREAD)
    .post("/_clock", ({ request }) => answerMoveClock(service, request), UNREAD)
    .get("/:collection", read, UNREAD)
    .head("/:collection", read, UNREAD)
    .post("/:collection", ({ request, params }) => answerInsert(service, request, params.collection), UNREAD)
    .patch("/:collection", update, UNREAD)
    .put("/:collection", update, UNREAD)
    .delete("/:collection", ({ request, params }) => answerDelete(service, request, params.collection), UNREAD)
    .patch("/:collection/all", updateAll, UNREAD)
    .put("/:collection/all", updateAll, UNREAD)
    .get("/:collection/changes", ({ request, params }) => answerChanges(service, request, params.collection), UNREAD)
    .delete("/:collection/all", ({ request, params }) => answerDeleteAll(service, request, params.collection), UNREAD);
  if (service.settings.cors !== null) app.options("/*", () => service.answers.preflight(), UNREAD);
  return app;
}

function unknownRoute(request: Request): Refusal {
  if (request.method !== "OPTIONS") return noRoute(request);
  return new Refusal("unknown_route", "no page of another origin may ask here: the server was started without --cors");
}
