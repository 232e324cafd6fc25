import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
  configurationOfFile,
  handedOver,
  INITIAL_CONFIGURATIONS,
  problemOf,
  withDefaults,
} from "../../../extension/src/debug/configurations";

test("a file without a launch.json is launched by our own type", () => {
  assert.deepEqual(configurationOfFile("/work/größe 2.py"), {
    name: "Shapetrace: größe 2.py",
    type: "shapetrace",
    request: "launch",
    program: "/work/größe 2.py",
  });
});

test("a handed over configuration changes in nothing but its type", () => {
  const configuration = { type: "debugpy", request: "launch", module: "train", justMyCode: false };
  assert.deepEqual(handedOver(configuration), { ...configuration, type: "shapetrace" });
});

test("a handed over configuration does without the other extension's commands", () => {
  const configuration = { type: "debugpy", request: "launch", program: "train.py" };
  const asked = { ...configuration, python: ["${command:python.interpreterPath}"] };
  const expected = { ...configuration, type: "shapetrace" };
  assert.deepEqual(handedOver(asked), expected);
  assert.deepEqual(handedOver({ ...configuration, python: "/env/bin/python" }), {
    ...expected,
    python: "/env/bin/python",
  });
});

describe("defaults", () => {
  test("of a launch", () => {
    assert.deepEqual(withDefaults({ request: "launch", program: "a.py" }, "/folder"), {
      request: "launch",
      program: "a.py",
      console: "integratedTerminal",
      internalConsoleOptions: "neverOpen",
      showReturnValue: true,
      cwd: "/folder",
      envFile: "/folder/.env",
    });
  });

  test("give way to what the configuration says", () => {
    const configuration = {
      request: "launch",
      program: "a.py",
      console: "internalConsole",
      cwd: "/other",
      envFile: "/other/.env",
      showReturnValue: false,
    };
    assert.deepEqual(withDefaults(configuration, "/folder"), configuration);
  });

  test("take the place of empty texts that a form left behind", () => {
    const given = { request: "launch", program: "a.py", module: "", python: "", cwd: "" };
    const configuration = withDefaults(given, undefined);
    assert.deepEqual(configuration, {
      request: "launch",
      program: "a.py",
      console: "integratedTerminal",
      internalConsoleOptions: "neverOpen",
      showReturnValue: true,
    });
  });

  test("of attaching say nothing of what runs already", () => {
    const configuration = { request: "attach", connect: { port: 5678 } };
    assert.deepEqual(withDefaults(configuration, "/folder"), {
      ...configuration,
      showReturnValue: true,
    });
  });
});

describe("problems", () => {
  test("none with one thing to run", () => {
    for (const key of ["program", "module", "code"]) {
      assert.equal(problemOf({ request: "launch", [key]: "a" }), undefined);
    }
  });

  test("are told with what to do", () => {
    assert.match(problemOf({ request: "launch" }) ?? "", /add "program" or "module"/);
    const both = problemOf({ request: "launch", program: "a", module: "b" });
    assert.match(both ?? "", /"program" and "module": keep one/);
    assert.match(problemOf({ request: "run" }) ?? "", /"launch" or "attach"/);
  });
});

test("a new launch.json runs the file in the editor", () => {
  assert.deepEqual(
    INITIAL_CONFIGURATIONS.map(({ program, request, type }) => ({ program, request, type })),
    [{ program: "${file}", request: "launch", type: "shapetrace" }],
  );
});
