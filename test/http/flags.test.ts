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
    [["--read-only=maybe"], {}, "on or off"],
    [["--data", "x", "--in-memory"], {}, "does not go with"],
    [[], { FENEC_MAX_BODY: "big" }, "FENEC_MAX_BODY takes a number of bytes"],
    [[], { PORT: "http" }, "<host>:<port>"],
    [["--listen", "0.0.0.0:80"], {}, "--insecure"],
  ] as const) {
    test(`refused: ${[...words, ...Object.keys(env)].join(" ")}`, () => {
      expect(() => readCommand(words, env)).toThrow(UsageError);
      expect(() => readCommand(words, env)).toThrow(says);
    });
  }

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
