import { describe, expect, test } from "bun:test";
import { ByteReader, ByteWriter, NO_STRING, ownText } from "../../src/base/bytes.ts";
import { withRandom } from "../store/random.ts";

type Item =
  | readonly ["u8" | "u32" | "f64" | "varint", number]
  | readonly ["i64", bigint]
  | readonly ["string", string]
  | readonly ["bytes", Uint8Array];

function write(w: ByteWriter, item: Item): void {
  switch (item[0]) {
    case "i64":
      w.i64(item[1]);
      break;
    case "string":
      w.string(item[1]);
      break;
    case "bytes":
      w.bytes(item[1]);
      break;
    default:
      w[item[0]](item[1]);
  }
}

const written = (item: Item): number[] => {
  const w = new ByteWriter();
  write(w, item);
  return [...w.view()];
};

describe("the layout", () => {
  const rows: readonly (readonly [Item, readonly number[]])[] = [
    [["u8", 200], [200]],
    [
      ["u32", 0x01020304],
      [4, 3, 2, 1],
    ],
    [
      ["u32", 0xffffffff],
      [255, 255, 255, 255],
    ],
    [
      ["f64", 1],
      [0, 0, 0, 0, 0, 0, 0xf0, 0x3f],
    ],
    [
      ["i64", -2n],
      [254, 255, 255, 255, 255, 255, 255, 255],
    ],
    [["varint", 0], [0]],
    [["varint", 127], [127]],
    [
      ["varint", 128],
      [0x80, 1],
    ],
    [
      ["varint", 300],
      [0xac, 2],
    ],
    [
      ["varint", 2 ** 31],
      [0x80, 0x80, 0x80, 0x80, 8],
    ],
    [
      ["varint", Number.MAX_SAFE_INTEGER],
      [255, 255, 255, 255, 255, 255, 255, 15],
    ],
    [
      ["bytes", new Uint8Array([7, 8])],
      [2, 7, 8],
    ],
    [["string", ""], [0]],
    [
      ["string", "ab"],
      [8, 97, 98],
    ],
    [
      ["string", "é"],
      [2 * 4 + 1, 0xc3, 0xa9],
    ],
    [
      ["string", "😀"],
      [4 * 4 + 1, 0xf0, 0x9f, 0x98, 0x80],
    ],
    [
      ["string", "\ud800"],
      [2 * 4 + 2, 0x00, 0xd8],
    ],
    [
      ["string", "a\udc00"],
      [4 * 4 + 2, 97, 0, 0x00, 0xdc],
    ],
  ];
  test.each(rows.map((row) => [row[0][0], String(row[0][1]), ...row] as const))("%s %p", (...row) => {
    expect(written(row[2])).toEqual([...row[3]]);
  });

  test("no string begins as the mark of none does", () => {
    for (const text of ["", "a", "é", "\ud800", "x".repeat(100), "é".repeat(100)]) {
      expect(written(["string", text])[0]).not.toBe(NO_STRING);
    }
  });
});

test("varints of every size come back", () => {
  const w = new ByteWriter(1);
  const numbers: number[] = [];
  for (let bits = 0; bits < 53; bits++) numbers.push(2 ** bits - 1, 2 ** bits, 2 ** bits + 1);
  numbers.push(Number.MAX_SAFE_INTEGER);
  for (const n of numbers) w.varint(n);
  const r = new ByteReader(w.view());
  for (const n of numbers) expect(r.varint()).toBe(n);
  expect(r.remaining).toBe(0);
  for (const n of [-1, 2 ** 53]) expect(() => w.varint(n)).toThrow();
});

test("every unit alone, and pairs around the surrogates, come back", () => {
  const w = new ByteWriter(8);
  const edges = [
    0, 0x41, 0x7f, 0x80, 0xff, 0x100, 0x7ff, 0x800, 0xd7ff, 0xd800, 0xdbff, 0xdc00, 0xdfff, 0xe000, 0xffff,
  ];
  const texts = Array.from({ length: 65_536 }, (_, unit) => String.fromCharCode(unit));
  for (const a of edges)
    for (const b of edges) texts.push(String.fromCharCode(a, b), String.fromCharCode(0x41, a, b, 0x42));
  for (const text of texts) w.string(text);
  const r = new ByteReader(w.view());
  for (const text of texts) {
    if (r.string() !== text) throw new Error(JSON.stringify(text));
    if (ownText(text) !== text) throw new Error(`own text of ${JSON.stringify(text)}`);
  }
  expect(r.remaining).toBe(0);
});

test("texts of every length around the sizes where something changes", () => {
  const w = new ByteWriter(1);
  const lengths = [0, 1, 30, 31, 32, 33, 4095, 4096, 16_383, 16_384, 16_385, 70_000];
  const texts = lengths.flatMap((length) => ["a", "é", "日", "\ud83d", "😀"].map((part) => part.repeat(length)));
  for (const text of texts) w.string(text);
  const r = new ByteReader(w.view());
  for (const text of texts) {
    expect(r.string() === text).toBe(true);
    expect(ownText(text) === text).toBe(true);
  }
});

test("random items in a row come back, whatever the writer's first size", () => {
  withRandom((random) => {
    for (let round = 0; round < 200; round++) {
      const items: Item[] = Array.from({ length: random.below(60) }, (): Item => {
        switch (random.below(6)) {
          case 0:
            return ["u8", random.below(256)];
          case 1:
            return ["u32", random.below(2 ** 32)];
          case 2:
            return ["f64", (random.next() - 0.5) * 10 ** (random.below(600) - 300)];
          case 3:
            return ["varint", Math.floor(random.next() * 2 ** random.below(54))];
          case 4:
            return [
              "i64",
              BigInt.asIntN(64, BigInt(Math.floor(random.next() * 2 ** 53)) * BigInt(random.below(2 ** 32))),
            ];
          default:
            return random.chance(0.5)
              ? ["bytes", Uint8Array.from({ length: random.below(50) }, () => random.below(256))]
              : [
                  "string",
                  String.fromCharCode(
                    ...Array.from({ length: random.below(30) }, () => random.below(random.pick([128, 256, 65_536]))),
                  ),
                ];
        }
      });
      const w = new ByteWriter(1 + random.below(40));
      w.u32(7);
      w.reset();
      const places: number[] = [];
      for (const item of items) {
        places.push(w.length);
        write(w, item);
      }
      // Read in the middle of something larger, as a frame of a file is.
      const around = new Uint8Array(w.length + 10);
      around.set(w.view(), 5);
      const r = new ByteReader(around, 5, 5 + w.length);
      for (const [i, item] of items.entries()) {
        expect(r.position).toBe(5 + places[i]!);
        const value = item[0] === "bytes" ? r.bytes() : r[item[0]]();
        expect(value).toEqual(item[1]);
      }
      expect(r.remaining).toBe(0);
    }
  });
});

describe("the reader", () => {
  test("never reads past its end, wherever the bytes are cut", () => {
    const items: readonly Item[] = [
      ["u8", 1],
      ["u32", 1],
      ["f64", 1],
      ["i64", 1n],
      ["varint", 2 ** 40],
      ["bytes", new Uint8Array(20)],
      ["string", "some text"],
      ["string", "é"],
      ["string", "\ud800"],
    ];
    for (const item of items) {
      const bytes = Uint8Array.from([...written(item), 1, 2, 3, 4, 5, 6, 7, 8]);
      const size = bytes.length - 8;
      for (let end = 0; end < size; end++) {
        const r = new ByteReader(bytes, 0, end);
        expect(() => (item[0] === "bytes" ? r.bytes() : r[item[0]]())).toThrow("past the end");
      }
    }
  });

  test("refuses what no writer writes", () => {
    expect(() => new ByteReader(new Uint8Array(10).fill(0xff)).varint()).toThrow("at most 8 bytes");
    expect(() => new ByteReader(new Uint8Array([NO_STRING])).string()).toThrow();
    expect(new ByteReader(new Uint8Array([NO_STRING])).stringOrNull()).toBeNull();
    expect(() => new ByteReader(new Uint8Array([7, 1])).string()).toThrow();
  });

  test("hands out bytes of their own", () => {
    const w = new ByteWriter();
    w.bytes(new Uint8Array([1, 2]));
    const read = new ByteReader(w.view()).bytes();
    w.reset();
    w.bytes(new Uint8Array([8, 9]));
    expect(read).toEqual(new Uint8Array([1, 2]));
    expect(read).not.toBeInstanceOf(Buffer);
    expect(read.buffer.byteLength).toBe(2);
  });
});

test("a writer's copy stays, its view does not", () => {
  const w = new ByteWriter(4);
  w.string("abc");
  const copy = w.copy();
  const middle = w.copy(1);
  w.setU32(0, 0);
  expect([...w.view()]).toEqual([0, 0, 0, 0]);
  expect([...copy]).toEqual([12, 97, 98, 99]);
  expect([...middle]).toEqual([97, 98, 99]);
  w.reset();
  expect(w.length).toBe(0);
  expect(() => w.setU32(0, 1)).toThrow();
});
