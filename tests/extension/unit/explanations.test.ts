import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { Crashes } from "../../../extension/src/model/crashes";
import { explainSilence } from "../../../extension/src/model/explanations";
import { expandVariables, fileName } from "../../../extension/src/model/paths";

describe("a program that says nothing", () => {
  const start = {
    python: "/env/bin/python",
    pythonOptions: [],
    usesSudo: false,
    isAttached: false,
  };

  for (const option of ["-I", "-E", "-sE", "-IB"]) {
    test(`runs with ${option}, which is named`, () => {
      const said = explainSilence("train.py", { ...start, pythonOptions: ["-u", option] });
      assert.ok(said.isConfigured);
      assert.match(said.text, new RegExp(`runs with ${option}, .*Remove the option`));
    });
  }

  test("runs, after it was attached to, where our ports are not", () => {
    const { text } = explainSilence("train.py", { ...start, isAttached: true });
    assert.match(text, /cannot reach VS Code.*container/);
  });

  test("runs under sudo", () => {
    assert.match(
      explainSilence("train.py", { ...start, usesSudo: true }).text,
      /sudo removes PYTHONPATH/,
    );
  });

  test("may have several reasons otherwise", () => {
    const options = ["-u", "-X", "dev"];
    const { isConfigured, text } = explainSilence("train.py", { ...start, pythonOptions: options });
    assert.ok(!isConfigured);
    assert.match(text, /\(\/env\/bin\/python\).*-I or -E, sudo, conda run.*too old.*Debug it/);
  });
});

describe("a server that keeps ending", () => {
  test("is given up after a few times within some minutes", () => {
    const crashes = new Crashes();
    const worth = [0, 1, 2, 3, 4].map((second) => crashes.note(second * 1000));
    assert.deepEqual(worth, [true, true, true, true, false]);
  });

  test("is started again as long as there is time between", () => {
    const crashes = new Crashes();
    const worth = [0, 1, 2, 3, 4, 5].map((hour) => crashes.note(hour * 3_600_000));
    assert.ok(worth.every(Boolean));
  });

  test("has another chance when the user asks for it", () => {
    const crashes = new Crashes();
    for (const second of [0, 1, 2, 3]) {
      crashes.note(second);
    }
    crashes.forget();
    assert.equal(crashes.note(4), true);
  });
});

describe("paths in settings", () => {
  const environment = { HOME: "/home/ada", NAME: "x" };

  test("may have variables", () => {
    const expand = (path: string) => expandVariables(path, "/work", environment);
    assert.equal(expand("${workspaceFolder}/.venv/bin/python"), "/work/.venv/bin/python");
    assert.equal(expand("~/env/python"), "/home/ada/env/python");
    assert.equal(expand("${userHome}/${env:NAME}/${env:NONE}"), "/home/ada/x/");
    assert.equal(expand("/plain~/python"), "/plain~/python");
  });

  test("without a folder keep its variable, which then is no path", () => {
    const path = "${workspaceFolder}/python";
    assert.equal(expandVariables(path, undefined, environment), path);
  });

  test("have a last part, with either separator", () => {
    assert.deepEqual(["/a/b.py", "C:\\a\\b.py", "b.py"].map(fileName), ["b.py", "b.py", "b.py"]);
  });
});
