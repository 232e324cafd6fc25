/** The launcher's stand-in for a debugger that is not the bundled one. */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { extensions } from "vscode";

import type { Folders } from "../folders";
import { type Log, messageOf } from "../log";
import { property } from "../model/interpreters";

const PYTHON_DEBUGGER = "ms-python.debugpy";

/** Returns whether Microsoft's Python Debugger is installed and can run its own configurations. */
export function isPythonDebuggerThere(): boolean {
  return extensions.getExtension(PYTHON_DEBUGGER) !== undefined;
}

/** The launcher of Microsoft's Python Debugger: the adapter and it must be of one version. */
export async function foreignLauncher(log: Log): Promise<string | undefined> {
  const extension = extensions.getExtension<unknown>(PYTHON_DEBUGGER);
  if (extension === undefined) {
    return undefined;
  }
  let debugpy = join(extension.extensionPath, "bundled", "libs", "debugpy");
  try {
    const debug = property(await extension.activate(), "debug");
    const getPath = property(debug, "getDebuggerPackagePath");
    const path: unknown =
      typeof getPath === "function" ? await Reflect.apply(getPath, debug, []) : null;
    debugpy = typeof path === "string" ? path : debugpy;
  } catch (error) {
    log.warn(`${PYTHON_DEBUGGER} did not tell where its debugger is: ${messageOf(error)}`);
  }
  const launcher = join(debugpy, "launcher");
  return existsSync(join(launcher, "__main__.py")) ? launcher : undefined;
}

/** A file for `debugLauncherPath`: our stand-in, which then runs that launcher. */
export function standInFor(launcher: string, folders: Folders): string {
  const source = [
    `"""Made by Shapetrace: puts it on the path of a program in a terminal."""`,
    "import runpy",
    "import sys",
    `sys.argv.insert(1, ${JSON.stringify(launcher)})`,
    `runpy.run_path(${JSON.stringify(join(folders.launcher, "__main__.py"))}, run_name="__main__")`,
    "",
  ].join("\n");
  const name = createHash("sha256").update(source).digest("hex").slice(0, 12);
  const file = join(folders.storage, `launch_${name}.py`);
  if (!existsSync(file)) {
    mkdirSync(folders.storage, { recursive: true });
    writeFileSync(file, source);
  }
  return file;
}
