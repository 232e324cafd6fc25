import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, describe, test } from "node:test";

import { PYTHON, ROOT } from "../../../scripts/setup.mjs";

const STAND_IN = join(ROOT, "extension", "launcher");
const BACKEND = join(ROOT, "python_backend");

const folder = mkdtempSync(join(tmpdir(), "shapetrace launcher größe "));
const launcher = join(folder, "launcher");
mkdirSync(launcher);
writeFileSync(
  join(launcher, "__main__.py"),
  [
    "import json, os, sys",
    "print(json.dumps([__name__, sys.argv, sys.path[0], os.environ['PYTHONPATH']]))",
  ].join("\n"),
);

after(() => {
  rmSync(folder, { recursive: true });
});

/** What the real launcher sees of how it was started. */
function launch(pythonPath: string | undefined): readonly unknown[] {
  const result = spawnSync(PYTHON, [STAND_IN, launcher, "40123", "--", "train.py", "--a b"], {
    encoding: "utf8",
    // A variable that is undefined is none to the program.
    env: { ...process.env, PYTHONPATH: pythonPath },
  });
  assert.equal(result.stderr, "");
  return JSON.parse(result.stdout) as unknown[];
}

describe("the stand-in for the launcher", () => {
  test("becomes the real one, with its arguments and its folder", () => {
    const [name, parameters, path] = launch(undefined);
    assert.equal(name, "__main__");
    assert.deepEqual((parameters as string[]).slice(1), ["40123", "--", "train.py", "--a b"]);
    assert.equal(path, launcher);
  });

  test("puts the backend before what the shell has in PYTHONPATH", () => {
    assert.equal(launch(`/a${delimiter}/b`)[3], [BACKEND, "/a", "/b"].join(delimiter));
  });

  test("adds no empty entry", () => {
    assert.equal(launch(undefined)[3], BACKEND);
    assert.equal(launch("")[3], BACKEND);
  });

  test("does it once in a program that starts another one", () => {
    const once = `${BACKEND}${delimiter}/a`;
    assert.equal(launch(once)[3], once);
  });
});
