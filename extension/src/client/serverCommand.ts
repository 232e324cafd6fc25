/** How the language server is started. Imports no `vscode`. */
import { dirname } from "node:path";

import type { Folders } from "../folders";

/** A program with everything it needs. */
export interface ServerCommand {
  readonly program: string;
  readonly parameters: readonly string[];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

/** Runs the server with the folders that follow on its path, as `python -m` would. */
const START = [
  "import runpy, sys",
  "sys.path[:0] = sys.argv[1:3]",
  "del sys.argv[1:3]",
  "runpy.run_module('shapetrace.server', run_name='__main__', alter_sys=True)",
].join("; ");

/** The environment variable with a port: the server listens there for a debugger. */
export const DEBUG_PORT = "SHAPETRACE_SERVER_DEBUG_PORT";

/** The code before `START` for that, given the debugger's folder and the port. */
const LISTEN = [
  "import sys",
  "sys.path.insert(0, sys.argv[1])",
  "import debugpy",
  "debugpy.listen(('127.0.0.1', int(sys.argv[2])))",
  "del sys.argv[1:3], sys.path[0]",
].join("; ");

/**
 * The server runs isolated from the user's Python: without its environment variables, site-packages
 * and `.pth` files, so that nothing there can shadow a library of ours, print into the channel, or
 * slow down the start. Byte code goes to a folder of its own: the extension's may be read-only.
 */
export function serverCommand(
  python: readonly [string, ...string[]],
  folders: Folders,
  environment: NodeJS.ProcessEnv,
): ServerCommand {
  const [program, ...options] = python;
  const port = environment[DEBUG_PORT];
  const [unfrozen, debugging] =
    port === undefined
      ? [[], []]
      : [
          ["-X", "frozen_modules=off"],
          [dirname(folders.debugpy), port],
        ];
  return {
    program,
    parameters: [
      ...options,
      ...["-I", "-S", "-X", "utf8", "-X", `pycache_prefix=${folders.bytecode}`],
      ...unfrozen,
      ...["-c", port === undefined ? START : `${LISTEN}; ${START}`],
      ...debugging,
      ...[folders.backend, folders.serverLibraries],
      "--stdio",
    ],
    cwd: folders.storage,
    env: { ...environment },
  };
}
