import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
  describeTarget,
  isSameTarget,
  isTraceable,
  plan,
  readTarget,
  type Target,
} from "../../../extension/src/model/target";

const FILE: Target = { kind: "file", path: "/work/train.py" };
const MODULE: Target = { kind: "module", module: "package.train", folder: null };
const CONFIGURATION: Target = { kind: "configuration", name: "Train", folder: "work" };

test("targets are read as they were stored", () => {
  for (const target of [FILE, MODULE, CONFIGURATION]) {
    assert.deepEqual(readTarget(JSON.parse(JSON.stringify(target))), target);
  }
});

test("what is no target is none", () => {
  for (const stored of [undefined, null, "file", {}, { kind: "file" }, { kind: "all", path: "" }]) {
    assert.equal(readTarget(stored), undefined);
  }
});

test("targets are the same whatever the order of their keys", () => {
  assert.ok(isSameTarget({ path: "/work/train.py", kind: "file" }, FILE));
  assert.ok(!isSameTarget(MODULE, CONFIGURATION));
});

test("targets are told in a few words", () => {
  assert.deepEqual([FILE, MODULE, CONFIGURATION].map(describeTarget), [
    "train.py",
    "python -m package.train",
    "Train",
  ]);
});

describe("the plan", () => {
  const script = { path: "/work/train.py", hasEntryPoint: true };
  const library = { path: "/work/model.py", hasEntryPoint: false };

  test("runs a script that is in the editor", () => {
    const expected = { kind: "run", target: FILE, isRemembered: false };
    assert.deepEqual(plan(script, undefined, false), expected);
    assert.deepEqual(plan(script, MODULE, false), expected);
  });

  test("runs what was chosen for this very script, which may have arguments", () => {
    const expected = { kind: "run", target: CONFIGURATION, isRemembered: true };
    assert.deepEqual(plan(script, CONFIGURATION, true), expected);
  });

  test("runs what was chosen before, from a file that only defines something", () => {
    const expected = { kind: "run", target: MODULE, isRemembered: true };
    assert.deepEqual(plan(library, MODULE, false), expected);
    assert.deepEqual(plan(undefined, MODULE, false), expected);
  });

  test("asks where nothing was chosen yet", () => {
    assert.deepEqual(plan(library, undefined, false), { kind: "ask" });
    assert.deepEqual(plan(undefined, undefined, false), { kind: "ask" });
  });
});

test("launches of Python programs can be traced, and nothing else", () => {
  const launch = { name: "Train", type: "debugpy", request: "launch", program: "train.py" };
  const traceable = ["debugpy", "python", "shapetrace"].map((type) => ({ ...launch, type }));
  assert.ok(traceable.every(isTraceable));
  const others = [
    { ...launch, type: "node" },
    { ...launch, request: "attach" },
    { ...launch, purpose: ["debug-test"] },
    { type: "debugpy", request: "launch" },
  ];
  assert.deepEqual(others.filter(isTraceable), []);
});
