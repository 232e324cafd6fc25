import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
  outcomeInWords,
  outcomeOf,
  readOutcome,
  runIn,
} from "../../../extension/src/model/evaluation";

const AGENT = `__import__("sys").modules["shapetrace.agent.in_place"]`;

test("any text can be evaluated", () => {
  const text = `model("größe", '\\n')\n  .sum()`;
  assert.equal(runIn(7, 3, text), `${AGENT}.run(3, 7, "model(\\"größe\\", '\\\\n')\\n  .sum()")`);
  assert.equal(outcomeOf(3), `${AGENT}.outcome(3)`);
});

describe("what came of an expression", () => {
  for (const [answer, expected] of [
    [{ kind: "value", value: "f32[2,10]", calls: 143 }, "f(x) → f32[2,10], 143 calls recorded"],
    [{ kind: "value", value: "3", calls: 0 }, "f(x) → 3, no call of torch recorded"],
    [{ kind: "value", value: "f32[2]", calls: 1 }, "f(x) → f32[2], 1 call recorded"],
    [
      { kind: "error", value: "RuntimeError: bad\n  shapes", calls: 2, origin: ["/a.py", 3] },
      "f(x) raised RuntimeError: bad shapes (2 calls recorded up to there)",
    ],
    [{ kind: "refused", value: "why", calls: 0 }, "f(x) was not evaluated: why"],
    [{ kind: "cancelled" }, "f(x) was cancelled"],
  ] as const) {
    test(expected, () => {
      const outcome = readOutcome(JSON.stringify(answer));
      assert.ok(outcome);
      assert.equal(outcomeInWords("f(x)", outcome), expected);
    });
  }

  test("is cut where it is long", () => {
    const outcome = readOutcome(
      JSON.stringify({ kind: "value", value: "v".repeat(999), calls: 2 }),
    );
    assert.ok(outcome);
    const words = outcomeInWords(`f(\n    ${"x, ".repeat(99)}\n)`, outcome);
    assert.ok(words.startsWith("f( x, x, "));
    assert.ok(words.length < 400);
  });

  test("may not be known", () => {
    assert.equal(readOutcome("null"), undefined);
  });

  for (const answer of [
    ...["", "NameError: no", "[]", "3", "{}", '{"kind": "done"}', '{"kind": ["value"]}'],
    ...['{"kind": "value", "value": 3}', '{"kind": "value", "value": "3", "calls": "many"}'],
  ]) {
    test(`is not taken from ${answer}`, () => {
      assert.throws(() => readOutcome(answer));
    });
  }

  test("names a place only where there is one", () => {
    for (const origin of [null, "/a.py", ["/a.py"], [3, "/a.py"], ["/a.py", "3"]]) {
      const answer = { kind: "error", value: "RuntimeError", calls: 0, origin };
      assert.equal(readOutcome(JSON.stringify(answer))?.origin, null);
    }
  });
});
