import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";

import { readStanding } from "../../../extension/src/model/standing";

const SAMPLE = readFileSync(join(import.meta.dirname, "../../contract/standing.json"), "utf8");

describe("where a stack frame stands", () => {
  test("is read whole", () => {
    assert.deepEqual(readStanding(SAMPLE), JSON.parse(SAMPLE));
  });

  test("may not be known", () => {
    assert.equal(readStanding("null"), undefined);
  });
});
