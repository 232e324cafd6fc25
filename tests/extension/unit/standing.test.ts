import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";

import { Mismatch } from "../../../extension/src/model/json";
import { readStanding } from "../../../extension/src/model/standing";

const SAMPLE = readFileSync(join(import.meta.dirname, "../../contract/standing.json"), "utf8");

/** What was read, without what a newer agent would have said beyond that. */
function without(document: unknown): unknown {
  return JSON.parse(
    JSON.stringify(document, (key, value: unknown) => (key === "extra" ? undefined : value)),
  );
}

describe("where a stack frame stands", () => {
  test("is read whole", () => {
    assert.deepEqual(without(readStanding(SAMPLE)), JSON.parse(SAMPLE));
  });

  test("keeps what a newer agent adds", () => {
    const newer = SAMPLE.replace('"name": "h"', '"age": 3, "name": "h"').replace(
      "{",
      '{"depth": 2,',
    );
    const standing = readStanding(newer);
    assert.deepEqual(standing?.extra, { depth: 2 });
    assert.deepEqual(standing.variables[0]?.extra, { age: 3 });
  });

  test("may say nothing of variables", () => {
    const known = JSON.parse(SAMPLE) as Record<string, unknown>;
    const rest = { ...known, variables: undefined, unbound: undefined };
    const standing = readStanding(JSON.stringify(rest));
    assert.deepEqual(standing?.variables, []);
    assert.equal(standing.unbound, null);
  });

  test("may not be known", () => {
    assert.equal(readStanding("null"), undefined);
    assert.throws(() => readStanding("{}"), Mismatch);
  });
});
