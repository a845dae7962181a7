import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { createHmac, generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { exportJWK, exportSPKI, generateKeyPair, type JWK, SignJWT } from "jose";
import { KeyError, Keys, readKeys } from "../../src/auth/keys.ts";
import { mintToken } from "../../src/auth/mint.ts";
import { parsePolicy } from "../../src/auth/policy.ts";
import { type ScopedToken, type TokenOptions, Tokens } from "../../src/auth/tokens.ts";
import { VERIFIED_TOKENS } from "../../src/base/limits.ts";
import { FUNCTION_NAMES } from "../../src/plan/functions.ts";
import { Scratch } from "../harness/server.ts";
import { signToken } from "../harness/token.ts";

// RSA keys take their time to be found.
setDefaultTimeout(60_000);

const NOW_MS = Date.parse("2026-03-01T12:00:00Z");
const NOW_S = NOW_MS / 1_000;
const SECRET = "a secret of more than thirty-two bytes";
const OPTIONS: TokenOptions = { requireExp: true, maxAgeSeconds: null };
const POLICY = parsePolicy("jobs read where queue = $jwt.queue\njobs read for keeper\nlog append-only", FUNCTION_NAMES);

function tokensOf(keys: Keys, options: Partial<TokenOptions> = {}): Tokens {
  return new Tokens(keys, POLICY, { ...OPTIONS, ...options });
}

async function why(tokens: Tokens, bearer: string, now = NOW_MS): Promise<string> {
  return tokens.verify(bearer, now).then(
    () => "taken",
    (error: Error) => error.message,
  );
}

const bySecret = (claims: Record<string, unknown>, secret = SECRET, algorithm = "HS256"): string =>
  signToken(JSON.stringify({ exp: NOW_S + 60, ...claims }), secret, algorithm);

function octKey(secret: string, kid?: string): JWK {
  const key: JWK = { kty: "oct", k: Buffer.from(secret).toString("base64url") };
  return kid === undefined ? key : { ...key, kid };
}

async function rsaPair(): Promise<{ pair: Awaited<ReturnType<typeof generateKeyPair>>; jwk: JWK }> {
  const pair = await generateKeyPair("RS256", { extractable: true });
  return { pair, jwk: await exportJWK(pair.publicKey) };
}

describe("tokens of a secret", () => {
  test("are verified, and told apart by what they claim", async () => {
    const tokens = tokensOf(Keys.fromSecret(SECRET));
    const token = await tokens.verify(bySecret({ sub: "ann", queue: "mail", n: 1.5, nested: { a: [1] } }), NOW_MS);
    expect(token).toMatchObject({ subject: "ann", expiresAtMs: NOW_MS + 60_000 });
    expect(token.claims.get("queue")).toBe("mail");
    expect(token.rules.of("jobs")?.read).toHaveLength(1);
    const other = await tokens.verify(bySecret({ sub: 7, role: ["x", "keeper"] }), NOW_MS);
    expect(other.subject).toBe("");
    expect(other.rules.of("jobs")?.read).toEqual([null]);
    expect((await tokens.verify(bySecret({ sub: "ann" }), NOW_MS)).rules.of("jobs")).toBeUndefined();
    expect((await tokens.verify(bySecret({ sub: "ann", queue: null }), NOW_MS)).rules.of("jobs")).toBeUndefined();
  });

  test("a secret has 32 bytes", () => {
    expect(() => Keys.fromSecret("x".repeat(31))).toThrow(KeyError);
    expect(() => Keys.fromSecret("é".repeat(16))).not.toThrow();
  });

  for (const [name, bearer, says] of [
    ["of another secret", bySecret({}, "another secret of thirty-two bytes"), "not signed by a key"],
    ["signed by nobody", bySecret({}, SECRET, "none"), "not signed by a key"],
    ["of another algorithm", bySecret({}, SECRET, "HS512"), "not signed by a key"],
    ["of no head", "x.y.z", "not readable"],
    ["empty", "..", "not readable"],
    ["tampered with", bySecret({ sub: "ann" }).replace(/\.(.)/, ".f"), "not signed by a key"],
    ["past its end", bySecret({ exp: NOW_S }), "expired"],
    ["of a time that is none", bySecret({ exp: "soon" }), "no number of seconds"],
    ["not good yet", bySecret({ nbf: NOW_S + 1 }), "not good yet"],
    ["of no end", signToken('{"sub":"a"}', SECRET), "no exp"],
    ["of claims that are no object", signToken("[1]", SECRET), "no json object"],
    ["of a claim twice", signToken(`{"sub":"a","sub":"b","exp":${NOW_S + 60}}`, SECRET), "no json object"],
    ["of a list too long", bySecret({ halls: Array.from({ length: 1_001 }, (_, n) => n) }), "lists more than 1000"],
  ] as const) {
    test(`refused: one ${name}`, async () => {
      const tokens = tokensOf(Keys.fromSecret(SECRET));
      expect(await why(tokens, bearer)).toContain(says);
      expect(() => tokens.known(bearer, NOW_MS)).not.toThrow(/taken/);
    });
  }

  test("the end of a remembered token is asked each time", async () => {
    const tokens = tokensOf(Keys.fromSecret(SECRET));
    const bearer = bySecret({ sub: "ann" });
    const token = await tokens.verify(bearer, NOW_MS);
    expect(tokens.known(bearer, NOW_MS + 59_999)).toBe(token);
    expect(() => tokens.known(bearer, NOW_MS + 60_000)).toThrow("expired");
    expect(await why(tokens, bearer, NOW_MS + 60_000)).toContain("expired");
  });

  test("an end may be left out, or bounded, when the server is told so", async () => {
    const endless = signToken('{"sub":"a"}', SECRET);
    expect(await why(tokensOf(Keys.fromSecret(SECRET), { requireExp: false }), endless)).toBe("taken");
    const aged = tokensOf(Keys.fromSecret(SECRET), { requireExp: false, maxAgeSeconds: 60 });
    expect(await why(aged, endless)).toContain("no exp");
    expect(await why(aged, bySecret({ exp: NOW_S + 61 }))).toContain("further ahead than 60 s");
    expect(await why(aged, bySecret({ exp: NOW_S + 60 }))).toBe("taken");
  });

  test("remembered are so many and no more", async () => {
    const tokens = tokensOf(Keys.fromSecret(SECRET));
    const bearers = Array.from({ length: VERIFIED_TOKENS + 50 }, (_, n) => bySecret({ n }));
    for (const bearer of bearers) await tokens.verify(bearer, NOW_MS);
    expect(tokens.remembered).toBe(VERIFIED_TOKENS);
    expect(tokens.known(bearers[0] as string, NOW_MS)).toBeUndefined();
    expect(tokens.known(bearers.at(-1) as string, NOW_MS)).toBeDefined();
  });

  test("rights are equal where rules and the claims they read are", async () => {
    const tokens = tokensOf(Keys.fromSecret(SECRET));
    const rights = async (claims: Record<string, unknown>): Promise<string> =>
      (await tokens.verify(bySecret(claims), NOW_MS)).rights;
    const mail = await rights({ sub: "ann", queue: "mail" });
    expect(await rights({ sub: "ben", queue: "mail", jti: "x" })).toBe(mail);
    expect(await rights({ sub: "ann", queue: "video" })).not.toBe(mail);
    expect(await rights({ sub: "ann", queue: "mail", role: "keeper" })).not.toBe(mail);
    expect(await rights({ sub: "ann", queue: ["mail"] })).not.toBe(mail);
    expect(mail).toHaveLength(22);
  });
});

describe("tokens of a key file", () => {
  test("the kind of a key decides, never the token", async () => {
    const { pair, jwk } = await rsaPair();
    const keys = await keysOf({ keys: [{ ...jwk, kid: "r" }, octKey(SECRET, "o")] });
    const tokens = tokensOf(keys);
    const signed = await new SignJWT({ exp: NOW_S + 60 })
      .setProtectedHeader({ alg: "RS256", kid: "r" })
      .sign(pair.privateKey);
    expect(await why(tokens, signed)).toBe("taken");
    // The public key is no secret: a token signed with it as one is nobody's.
    for (const known of [await exportSPKI(pair.publicKey), JSON.stringify(jwk), jwk.n ?? ""]) {
      for (const algorithm of ["HS256", "RS256"]) {
        expect(await why(tokens, forged({ alg: algorithm, kid: "r" }, known))).toContain("not signed");
      }
    }
    expect(await why(tokens, bySecret({}))).toBe("taken");
  });

  test("a token that names a key is tried on that one alone", async () => {
    const tokens = tokensOf(
      await keysOf([octKey(SECRET, "one"), octKey(`${SECRET} two`, "two"), octKey(`${SECRET} bare`)]),
    );
    const signed = (secret: string, kid?: string): string =>
      forged(kid === undefined ? { alg: "HS256" } : { alg: "HS256", kid }, secret);
    expect(await why(tokens, signed(SECRET, "one"))).toBe("taken");
    expect(await why(tokens, signed(`${SECRET} two`, "two"))).toBe("taken");
    expect(await why(tokens, signed(`${SECRET} two`))).toBe("taken");
    expect(await why(tokens, signed(`${SECRET} bare`))).toBe("taken");
    expect(await why(tokens, signed(SECRET, "two"))).toContain("not signed");
    expect(await why(tokens, signed(`${SECRET} bare`, "one"))).toContain("not signed");
    expect(await why(tokens, signed(SECRET, "nobody"))).toContain("not signed");
  });

  test("what is no usable key is passed over, and a file without any refused", async () => {
    const small = generateKeyPairSync("rsa", { modulusLength: 1_024 }).publicKey.export({ format: "jwk" });
    const useless: unknown[] = [
      octKey("too short"),
      { ...octKey(SECRET), use: "enc" },
      { ...octKey(SECRET), alg: "HS512" },
      { kty: "EC", crv: "P-256", x: "x", y: "y" },
      { kty: "RSA", n: "!", e: "AQAB" },
      small,
      null,
      "key",
    ];
    expect(await readKeys(JSON.stringify([...useless, { ...octKey(SECRET), use: "sig", alg: "HS256" }]))).toHaveLength(
      1,
    );
    for (const text of [JSON.stringify(useless), "{}", '{"keys":[]}', "[]", "null", "no json", ""]) {
      expect(readKeys(text)).rejects.toThrow(KeyError);
    }
  });

  test("a file that changes is read again, and what the old keys verified is forgotten", async () => {
    using scratch = new Scratch();
    const file = join(scratch.path, "keys.json");
    const warnings: string[] = [];
    let elapsedMs = 0;
    writeFileSync(file, JSON.stringify([octKey(SECRET, "old")]));
    const keys = await Keys.fromFile(
      file,
      (words) => warnings.push(words),
      () => elapsedMs,
    );
    const tokens = tokensOf(keys);
    const old = forged({ alg: "HS256", kid: "old" }, SECRET);
    const next = forged({ alg: "HS256", kid: "next" }, `${SECRET} next`);
    const taken = async (bearer: string): Promise<boolean> => {
      if (tokens.known(bearer, NOW_MS) !== undefined) return true;
      return (await why(tokens, bearer)) === "taken";
    };
    expect([await taken(old), await taken(next)]).toEqual([true, false]);

    writeFileSync(file, JSON.stringify([octKey(SECRET, "old"), octKey(`${SECRET} next`, "next")]));
    elapsedMs += 999;
    expect(await taken(next)).toBe(false);
    elapsedMs += 1;
    expect([await taken(old), await taken(next)]).toEqual([true, true]);

    writeFileSync(file, JSON.stringify([octKey(`${SECRET} next`, "next")]));
    elapsedMs += 1_000;
    expect([await taken(old), await taken(next)]).toEqual([false, true]);

    for (const bad of ["", "[]", "{"]) {
      writeFileSync(file, bad);
      elapsedMs += 1_000;
      expect([await taken(old), await taken(next)]).toEqual([false, true]);
    }
    expect(warnings).toHaveLength(3);
    expect(warnings[0]).toContain("the keys before it stay");
    writeFileSync(file, JSON.stringify([octKey(SECRET, "old")]));
    elapsedMs += 1_000;
    expect([await taken(old), await taken(next)]).toEqual([true, false]);
  });
});

test("all who ask while a changed key file is read are answered by what it says", async () => {
  using scratch = new Scratch();
  const file = join(scratch.path, "keys.json");
  const { pair, jwk } = await rsaPair();
  writeFileSync(file, JSON.stringify([octKey(SECRET, "old")]));
  let elapsedMs = 0;
  const keys = await Keys.fromFile(
    file,
    () => {},
    () => elapsedMs,
  );
  const tokens = tokensOf(keys);
  const old = forged({ alg: "HS256", kid: "old" }, SECRET);
  expect(await why(tokens, old)).toBe("taken");
  const next = await new SignJWT({ exp: NOW_S + 60 }).setProtectedHeader({ alg: "RS256" }).sign(pair.privateKey);
  writeFileSync(file, JSON.stringify([jwk]));
  elapsedMs += 1_000;
  const first = why(tokens, next);
  expect(tokens.known(old, NOW_MS)).toBeUndefined();
  const asked = [why(tokens, next), why(tokens, old)];
  expect(await first).toBe("taken");
  expect(await Promise.all(asked)).toEqual(["taken", "the token is not signed by a key of this server"]);
});

describe("a minted token", () => {
  test("is one that the same keys take, for an hour unless it says otherwise", async () => {
    for (const keys of [Keys.fromSecret(SECRET), await keysOf([octKey(SECRET, "k")])]) {
      const tokens = tokensOf(keys);
      const minted = await mintToken('{"sub":"w1","role":"keeper"}', keys, NOW_MS);
      const token: ScopedToken = await tokens.verify(minted, NOW_MS);
      expect(token).toMatchObject({ subject: "w1", expiresAtMs: NOW_MS + 3_600_000 });
      const short = await mintToken(`{"exp":${NOW_S + 5}}`, keys, NOW_MS);
      expect((await tokens.verify(short, NOW_MS)).expiresAtMs).toBe(NOW_MS + 5_000);
    }
  });

  test("takes claims and a secret", async () => {
    for (const claims of ["", "w1", "[]", "null"]) {
      expect(mintToken(claims, Keys.fromSecret(SECRET), NOW_MS)).rejects.toThrow("claims are a json object");
    }
    const { jwk } = await rsaPair();
    expect(mintToken("{}", await keysOf([jwk]), NOW_MS)).rejects.toThrow("public keys alone");
  });
});

async function keysOf(jwks: unknown): Promise<Keys> {
  using scratch = new Scratch();
  const file = join(scratch.path, "keys.json");
  writeFileSync(file, JSON.stringify(jwks));
  return Keys.fromFile(
    file,
    () => {},
    () => Number.NEGATIVE_INFINITY,
  );
}

/** HMAC over any head. */
function forged(header: Record<string, unknown>, secret: string): string {
  const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const signed = `${encode(header)}.${encode({ exp: NOW_S + 60 })}`;
  return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`;
}
