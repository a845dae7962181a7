/** Signs a JWT by HMAC with SHA-256, and ones that a server must refuse. */

import { createHmac } from "node:crypto";

/** `claims` is json text. Another `algorithm` than HS256 is only named in the head; `none` leaves the signature out. */
export function signToken(claims: string, secret: string, algorithm = "HS256"): string {
  const head = encode(JSON.stringify({ alg: algorithm, typ: "JWT" }));
  const signed = `${head}.${encode(claims)}`;
  if (algorithm === "none") return `${signed}.`;
  return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`;
}

function encode(text: string): string {
  return Buffer.from(text).toString("base64url");
}
