import { describe, expect, test } from "bun:test";
import { type Flags, helpText, readCommand, UsageError } from "../../src/flags.ts";

function flagsOf(words: string[], env: Record<string, string> = {}): Flags {
  const command = readCommand(words, env);
  if (command.kind !== "run") throw new Error(command.kind);
  return command.flags;
}

describe("flags", () => {
  test("are what the page says when nobody says", () => {
    expect(flagsOf([])).toMatchObject({
      listen: { hostname: "127.0.0.1", port: 8080 },
      data: "./snapshots",
      "in-memory": false,
      sync: "always",
      "read-only": false,
      "max-connections": 10_000,
      "max-body": 64 * 1024 * 1024,
      "idempotency-ttl": 86_400,
      "auth-delay": 100,
      "jwt-require-exp": true,
      cors: null,
      "slow-ms": null,
      "test-clock": false,
    });
  });

  test("are read from words, with = or without", () => {
    const flags = flagsOf([
      "--listen=[::1]:0",
      "--data",
      "/d",
      "--sync",
      "250",
      "--max-body=2mb",
      "--slow-ms",
      "5",
      "--read-only",
    ]);
    expect(flags).toMatchObject({
      listen: { hostname: "::1", port: 0 },
      data: "/d",
      sync: 250,
      "max-body": 2 * 1024 * 1024,
      "slow-ms": 5,
      "read-only": true,
    });
    expect(flagsOf(["--listen", "9000"]).listen).toEqual({ hostname: "127.0.0.1", port: 9000 });
    expect(flagsOf(["--sync=off"]).sync).toBe("off");
    expect(flagsOf(["--read-only=off"])["read-only"]).toBe(false);
  });

  test("--cors stands alone or names an origin", () => {
    expect(flagsOf(["--cors", "--read-only"])).toMatchObject({ cors: "*", "read-only": true });
    expect(flagsOf(["--cors", "https://a.example"]).cors).toBe("https://a.example");
    expect(flagsOf(["--cors=*"]).cors).toBe("*");
  });

  test("each has its environment variable, behind the command line", () => {
    const env = { FENEC_MAX_BODY: "1kb", FENEC_IN_MEMORY: "true", FENEC_TEST_CLOCK: "0", FENEC_SLOW_MS: "" };
    expect(flagsOf([], env)).toMatchObject({
      "max-body": 1024,
      "in-memory": true,
      "test-clock": false,
      "slow-ms": null,
    });
    expect(flagsOf(["--max-body", "2kb"], env)["max-body"]).toBe(2048);
    expect(flagsOf([], { PORT: "7777" }).listen).toEqual({ hostname: "127.0.0.1", port: 7777 });
    expect(flagsOf([], { PORT: "7777", FENEC_LISTEN: "127.0.0.1:1" }).listen.port).toBe(1);
    expect(flagsOf(["--listen", "127.0.0.1:2"], { PORT: "7777" }).listen.port).toBe(2);
  });

  for (const [words, env, says] of [
    [["--lisen", "x"], {}, "did you mean --listen?"],
    [["--nothing-like-it"], {}, "--help lists them all"],
    [["--__proto__", "1"], {}, "there is no flag"],
    [["jobs"], {}, "begin with --"],
    [["-token", "x"], {}, '"-token" is no flag: did you mean --token?'],
    [["--port", "80"], {}, "did you mean --listen?"],
    [["--data-dir", "d"], {}, "did you mean --data?"],
    [["--data"], {}, "--data takes <directory>"],
    [["--data", "--read-only"], {}, "--data takes <directory>"],
    [["--sync", "sometimes"], {}, "always, off, or a number of milliseconds"],
    [["--sync", "0"], {}, "always, off, or a number of milliseconds"],
    [["--max-body", "big"], {}, "a number of bytes"],
    [["--max-body", "0"], {}, "a number of bytes"],
    [["--max-connections", "-1"], {}, "a whole number from 0"],
    [["--idle-timeout", "256"], {}, "from 1 to 255"],
    [["--listen", "127.0.0.1:99999"], {}, "<host>:<port>"],
    [["--listen", ":80"], {}, "<host>:<port>"],
    [["--listen", "::1:80"], {}, "<host>:<port>"],
    [["--cors", "--cors"], {}, "twice"],
    [["--cors=app.example"], {}, "one origin"],
    [["--cors="], {}, '--cors takes one origin, such as https://app.example.com, or *, not ""'],
    [["--read-only=maybe"], {}, "on or off"],
    [["--read-only="], {}, "on or off"],
    [["--data", "x", "--in-memory"], {}, "--in-memory keeps no data, so --data does not go with it"],
    [["--in-memory"], { FENEC_DATA: "x" }, "--in-memory keeps no data, so FENEC_DATA does not go with it"],
    [[], { FENEC_MAX_BODY: "big" }, "FENEC_MAX_BODY takes a number of bytes"],
    [[], { PORT: "http" }, 'PORT takes a port from 0 to 65535, not "http"'],
    [[], { PORT: "65536" }, "PORT takes a port from 0 to 65535"],
    [[], { PORT: "127.0.0.1:80" }, "PORT takes a port from 0 to 65535"],
    [["--listen", "0.0.0.0:80"], {}, "--listen 0.0.0.0 lets other machines in"],
    [[], { FENEC_LISTEN: "0.0.0.0:80" }, "FENEC_LISTEN 0.0.0.0 lets other machines in"],
    [["--cdc"], {}, "--cdc is not available yet"],
    [[], { FENEC_REPLICA_OF: "http://a" }, "FENEC_REPLICA_OF is not available yet"],
  ] as const) {
    test(`refused: ${[...words, ...Object.keys(env)].join(" ")}`, () => {
      expect(() => readCommand(words, env)).toThrow(UsageError);
      expect(() => readCommand(words, env)).toThrow(says);
    });
  }

  test("each that takes a value wants one, not an empty one, and only once", () => {
    const fallbacks = flagsOf([]);
    for (const name of Object.keys(fallbacks)) {
      const word = `--${name}`;
      expect(() => readCommand([`${word}=`], {}), word).toThrow(`${word} takes `);
      expect(() => readCommand([`${word}=1`, `${word}=1`], {}), word).toThrow(`${word} is given twice`);
      if (fallbacks[name as keyof Flags] === false || name === "cors") continue;
      expect(() => readCommand([word], {}), word).toThrow(`${word} takes `);
    }
  });

  test("one that is not available yet may be said to be off", () => {
    expect(flagsOf([], { FENEC_CDC: "off" }).cdc).toBe(false);
  });

  test("know how they were given", () => {
    const command = readCommand(["--data", "d"], { FENEC_POLICY: "p", PORT: "1", FENEC_DATA: "e" });
    if (command.kind !== "run") throw new Error(command.kind);
    expect(command.named("data")).toBe("--data");
    expect(command.named("policy")).toBe("FENEC_POLICY");
    expect(command.named("listen")).toBe("PORT");
    expect(command.named("token")).toBe("--token");
  });

  test("beyond this machine when told that it is meant", () => {
    expect(flagsOf(["--listen", "0.0.0.0:80", "--insecure"]).listen.hostname).toBe("0.0.0.0");
  });

  test("help names every flag, on lines of its own", () => {
    expect(readCommand(["--read-only", "--help"], {}).kind).toBe("help");
    expect(readCommand(["--version"], {}).kind).toBe("version");
    const help = helpText();
    for (const name of Object.keys(flagsOf([]))) expect(help).toContain(`\n  --${name}`);
  });
});
