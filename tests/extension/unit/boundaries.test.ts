import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import typescript from "typescript";

const MODEL = join(import.meta.dirname, "../../../extension/src/model");

/** What a module of the model imports beyond the model and the messages: it must need no editor. */
function foreignImports(source: string): string[] {
  return typescript
    .preProcessFile(source, true, true)
    .importedFiles.map((imported) => imported.fileName)
    .filter((name) => !/^\.\/(?!.*\.\.)/.test(name) && name !== "../protocol.generated");
}

test("the model imports nothing but itself and the messages", () => {
  const files = readdirSync(MODEL, { recursive: true, encoding: "utf8" });
  const modules = files.filter((file) => file.endsWith(".ts"));
  assert.ok(modules.includes("pagedTree.ts"));
  for (const module of modules) {
    assert.deepEqual(foreignImports(readFileSync(join(MODEL, module), "utf8")), [], module);
  }
});

test("a planted import is found", () => {
  const planted = [
    'import * as vscode from "vscode";',
    'import type { Uri } from "vscode-uri";',
    'export { log } from "../log";',
    'const fs = require("node:fs");',
    'const late = import("./sub/../../status");',
    'import { fileName } from "./paths";',
    'import type { Status } from "../protocol.generated";',
  ];
  assert.deepEqual(foreignImports(planted.join("\n")), [
    "vscode",
    "vscode-uri",
    "../log",
    "node:fs",
    "./sub/../../status",
  ]);
});
