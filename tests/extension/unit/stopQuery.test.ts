import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { isSideEffectFree, readStop } from "../../../extension/src/model/stopQuery";

describe("the agent's answer to what a stack frame belongs to", () => {
  test("names the process and the stop", () => {
    assert.deepEqual(readStop("[4711, 12]"), { process: 4711, number: 12 });
  });

  for (const answer of ["null", "", "undefined", "[4711]", "[4711, null]", '["4711", 12]', "{}"]) {
    test(`may be none: ${answer}`, () => {
      assert.equal(readStop(answer), undefined);
    });
  }
});

test("an expression is asked about as a text of Python", () => {
  assert.match(isSideEffectFree(7, 'd["k"]'), /\.is_side_effect_free\(7, "d\[\\"k\\"\]"\)$/);
});
