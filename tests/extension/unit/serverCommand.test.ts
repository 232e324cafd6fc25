import assert from "node:assert/strict";
import { test } from "node:test";

import { DEBUG_PORT, serverCommand } from "../../../extension/src/client/serverCommand";
import { foldersOf } from "../../../extension/src/folders";

const folders = foldersOf("/ext größe", "/storage", "4711-1a2b");

test("the server runs isolated from the user's Python", () => {
  const { cwd, parameters, program } = serverCommand(["py", "-3"], folders, { PATH: "/bin" });
  assert.equal(program, "py");
  assert.deepEqual(parameters.slice(0, 3), ["-3", "-I", "-S"]);
  assert.ok(parameters.includes("pycache_prefix=/storage/bytecode"));
  assert.equal(cwd, "/storage/windows/4711-1a2b");
});

test("the server's folders are handed over beside its code, whatever their names", () => {
  const { parameters } = serverCommand(["python3"], folders, {});
  const code = parameters[parameters.indexOf("-c") + 1] ?? "";
  assert.match(code, /run_module\('shapetrace\.server', run_name='__main__'/);
  assert.ok(!code.includes("größe"));
  assert.deepEqual(parameters.slice(-3), [
    "/ext größe/python_backend",
    "/ext größe/python_libraries/server",
    "--stdio",
  ]);
});

test("a developer's debugger is listened for, before anything of the server runs", () => {
  const { parameters } = serverCommand(["python3"], folders, { [DEBUG_PORT]: "5679" });
  const code = parameters[parameters.indexOf("-c") + 1] ?? "";
  assert.match(code, /debugpy\.listen\(.*run_module\('shapetrace\.server'/s);
  assert.deepEqual(parameters.slice(-5), [
    "/ext größe/python_libraries/debugpy",
    "5679",
    "/ext größe/python_backend",
    "/ext größe/python_libraries/server",
    "--stdio",
  ]);
});
