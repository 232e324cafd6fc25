import assert from "node:assert/strict";
import { describe, test } from "node:test";

import type { Compared, ComparedCall } from "../../../extension/src/protocol.generated";
import {
  differenceAt,
  differenceRows,
  positionText,
  sideNames,
  stepped,
} from "../../../extension/src/model/comparison";

function call(title: string, left: number, right: number): ComparedCall {
  return {
    kind: "shape",
    title,
    detail: "f32[2] → f32[3]",
    left,
    right,
    a: null,
    b: null,
  };
}

const CALLS = [call("layers.0  @", 3, 3), call("layers.1  @", 9, 8), call("head", 20, 21)];

const COMPARED: Compared = {
  ...{ left: "", right: "", summary: "" },
  ...{ differences: CALLS, first: 1 },
};

describe("compared traces", () => {
  test("are named after their files, and their folders where these are called alike", () => {
    assert.deepEqual(sideNames("/a/good.json", "/b/bad.json"), ["good.json", "bad.json"]);
    assert.deepEqual(sideNames("/a/run.json", "C:\\b\\run.json"), ["a/run.json", "b/run.json"]);
    assert.deepEqual(sideNames(null, "/b/run.json"), ["this session", "run.json"]);
  });

  test("have a list that marks the first difference that matters", () => {
    assert.deepEqual(
      differenceRows(COMPARED).map(({ label, description, position }) => [
        label,
        description,
        position,
      ]),
      [
        ["layers.0  @", "shape", 0],
        ["$(arrow-right) layers.1  @", "shape · first", 1],
        ["head", "shape", 2],
      ],
    );
  });

  test("are walked through in a circle", () => {
    assert.equal(stepped(0, 1, 3), 1);
    assert.equal(stepped(2, 1, 3), 0);
    assert.equal(stepped(0, -1, 3), 2);
    assert.equal(stepped(0, 1, 1), 0);
  });

  test("have a difference near every line", () => {
    assert.equal(differenceAt(CALLS, "right", 0, 0), 0);
    assert.equal(differenceAt(CALLS, "right", 8, 0), 1);
    assert.equal(differenceAt(CALLS, "left", 9, 0), 1);
    assert.equal(differenceAt(CALLS, "right", 400, 0), 2);
    assert.equal(differenceAt([], "right", 3, 0), 0);
  });

  test("that have no line of their own are not taken for the next one", () => {
    const calls = [call("only in A", 3, 3), call("both", 4, 3)];
    assert.equal(differenceAt(calls, "right", 3, 0), 0);
    assert.equal(differenceAt(calls, "right", 3, 1), 1);
    assert.equal(differenceAt(calls, "left", 4, 0), 1);
  });

  test("say which difference is shown", () => {
    assert.equal(positionText(COMPARED, 2), "3 of 3: head: f32[2] → f32[3]");
  });
});
