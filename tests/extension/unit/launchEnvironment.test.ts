import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
  type AgentSession,
  type Configuration,
  mergeEnvironment,
  type Surroundings,
  withAgent,
  withHiddenFiles,
} from "../../../extension/src/debug/launchEnvironment";
import { markOf, withMark } from "../../../extension/src/debug/mark";

const SESSION: AgentSession = {
  session: "7d1f",
  port: 40123,
  token: "5f2c",
  mode: "debug",
  afterPass: "stop",
  level: "torch",
  showsVariables: true,
  folder: "/home/me",
  captures: ["layers.*.forward"],
  watches: ["video", "transform:mask"],
};

const LINUX: Surroundings = {
  platform: "linux",
  environment: {},
  fileVariables: {},
  backend: "/extension/python_backend",
  launcher: "/extension/launcher",
};

const WINDOWS: Surroundings = {
  ...LINUX,
  platform: "win32",
  backend: "C:\\extension\\python_backend",
  launcher: "C:\\extension\\launcher",
};

function environmentOf(
  configuration: Configuration,
  surroundings: Surroundings,
): Record<string, unknown> {
  return withAgent(configuration, SESSION, surroundings)["env"] as Record<string, unknown>;
}

/** The PYTHONPATH of a program without a terminal. */
function inherited(pythonPath: string | undefined): unknown {
  const surroundings = { ...LINUX, environment: { PYTHONPATH: pythonPath } };
  return environmentOf({ console: "internalConsole" }, surroundings)["PYTHONPATH"];
}

/** The PYTHONPATH of a program whose configuration says one. */
function stated(pythonPath: string | null, console = "integratedTerminal"): unknown {
  const surroundings = { ...LINUX, environment: { PYTHONPATH: "/of/the/editor" } };
  return environmentOf({ console, env: { PYTHONPATH: pythonPath } }, surroundings)["PYTHONPATH"];
}

describe("PYTHONPATH", () => {
  test("is the backend alone where there was none", () => {
    assert.equal(inherited(undefined), "/extension/python_backend");
  });

  test("has no empty entry where there was an empty one", () => {
    assert.equal(inherited(""), "/extension/python_backend");
    assert.equal(stated(""), "/extension/python_backend");
  });

  test("without a terminal comes before that of the debug adapter", () => {
    assert.equal(inherited("/a:/b"), "/extension/python_backend:/a:/b");
  });

  test("of the configuration wins over that of the adapter, in any console", () => {
    for (const console of ["internalConsole", "integratedTerminal", "externalTerminal"]) {
      assert.equal(stated("/mine", console), "/extension/python_backend:/mine");
    }
  });

  test("that the configuration removes stays removed but for ours", () => {
    assert.equal(stated(null), "/extension/python_backend");
  });

  test("of the envFile wins over that of the adapter", () => {
    const surroundings = { ...LINUX, fileVariables: { PYTHONPATH: "/file" } };
    const environment = environmentOf({ console: "internalConsole" }, surroundings);
    assert.equal(environment["PYTHONPATH"], "/extension/python_backend:/file");
  });

  test("keeps the user's own entries as they are, even an empty one", () => {
    assert.equal(stated(":/a"), "/extension/python_backend::/a");
  });

  test("is not lengthened twice when a session is restarted as it was", () => {
    const first = withAgent({ console: "internalConsole" }, SESSION, LINUX);
    const again = withAgent(first, SESSION, LINUX);
    assert.deepEqual(again, first);
  });

  test("on Windows is found in any case, and joined as there", () => {
    const environment = environmentOf({ env: { PythonPath: "C:\\mine" } }, WINDOWS);
    assert.equal(environment["PythonPath"], "C:\\extension\\python_backend;C:\\mine");
    assert.ok(!("PYTHONPATH" in environment));
  });
});

describe("in a terminal", () => {
  test("the shell's PYTHONPATH is left to the launcher", () => {
    for (const console of ["integratedTerminal", "externalTerminal", undefined]) {
      const configuration = withAgent({ console }, SESSION, {
        ...LINUX,
        environment: { PYTHONPATH: "/of/the/editor" },
      });
      assert.equal(configuration["debugLauncherPath"], "/extension/launcher");
      assert.deepEqual(Object.keys(configuration["env"] as object), ["SHAPETRACE_SESSION"]);
    }
  });

  test("the adapter's is taken where no launcher can stand in", () => {
    const environment = environmentOf({}, { ...LINUX, launcher: undefined });
    assert.equal(environment["PYTHONPATH"], "/extension/python_backend");
  });
});

test("the agent is told all it needs, beside the user's variables", () => {
  const environment = environmentOf({ env: { A: "1", B: null } }, LINUX);
  assert.deepEqual(JSON.parse(String(environment["SHAPETRACE_SESSION"])), SESSION);
  assert.equal(environment["A"], "1");
  assert.equal(environment["B"], null);
});

test("the user's configuration is not changed", () => {
  const configuration = { env: { PYTHONPATH: "/a" }, rules: [] };
  withAgent(configuration, SESSION, LINUX);
  assert.deepEqual(configuration, { env: { PYTHONPATH: "/a" }, rules: [] });
});

describe("rules", () => {
  const OURS = { path: "/extension/python_backend/**", include: false };

  test("hide our files, ahead of the user's rules", () => {
    const own = { module: "torch", include: true };
    assert.deepEqual(withHiddenFiles({ rules: [own] }, LINUX)["rules"], [OURS, own]);
    assert.deepEqual(withHiddenFiles({}, LINUX)["rules"], [OURS]);
  });

  test("are added once", () => {
    const once = withHiddenFiles({}, LINUX);
    assert.equal(withHiddenFiles(once, LINUX), once);
  });

  test("are written as Windows writes paths", () => {
    const path = "C:\\extension\\python_backend\\**";
    assert.deepEqual(withHiddenFiles({}, WINDOWS)["rules"], [{ path, include: false }]);
  });
});

describe("variables of an envFile", () => {
  test("give way to those of the configuration", () => {
    const merged = mergeEnvironment({ A: "file", B: "file" }, { A: "own", C: null }, "linux");
    assert.deepEqual(merged, { A: "own", B: "file", C: null });
  });

  test("do so in any case on Windows", () => {
    assert.deepEqual(mergeEnvironment({ Path: "file" }, { PATH: "own" }, "win32"), { PATH: "own" });
    assert.deepEqual(mergeEnvironment({ a: "1" }, undefined, "linux"), { a: "1" });
  });
});

test("a configuration's mark is found again, and nothing else is taken for one", () => {
  assert.deepEqual(markOf(withMark({ a: 1 }, { mode: "forwardPass" })), { mode: "forwardPass" });
  const mark = { mode: "debug", session: "7d1f" } as const;
  assert.deepEqual(markOf(withMark({}, mark)), mark);
  assert.equal(markOf({}), undefined);
  assert.equal(markOf({ __shapetrace: "debug" }), undefined);
});
