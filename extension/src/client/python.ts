/** Asking a Python what it is. */
import { execFile } from "node:child_process";

import {
  type Asked,
  type Candidate,
  NO_TORCH,
  parseVersion,
  TORCH_PROBE,
  VERSION_PROBE,
} from "../model/interpreters";

/** A Python that says nothing for so long is none to work with. */
const PATIENCE_MILLISECONDS = 10_000;

interface Outcome {
  readonly output: string;
  readonly code: number | null;
  readonly failure: string | undefined;
}

/** Starts a candidate to learn its version. */
export async function askVersion(candidate: Candidate): Promise<Asked> {
  const { output, failure } = await run([...candidate.command, ...VERSION_PROBE], {});
  const version = parseVersion(output);
  return version === undefined
    ? { candidate, failure: failure ?? "it is not Python" }
    : { candidate, version };
}

/** Returns whether a program with this Python, folder and environment could import torch. */
export async function hasTorch(
  command: readonly string[],
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv },
): Promise<boolean> {
  const { code } = await run([...command, ...TORCH_PROBE], options);
  return code !== NO_TORCH;
}

function run(
  [program = "", ...parameters]: readonly string[],
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv },
): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(
      program,
      parameters,
      { ...options, timeout: PATIENCE_MILLISECONDS, windowsHide: true },
      (error, output) => {
        const code = error === null ? 0 : typeof error.code === "number" ? error.code : null;
        resolve({ output, code, failure: error === null ? undefined : reasonOf(error) });
      },
    );
  });
}

function reasonOf(error: NodeJS.ErrnoException | Error): string {
  const code = "code" in error ? error.code : undefined;
  switch (code) {
    case "ENOENT":
      return "there is no such file";
    case "EACCES":
      return "permission to run it is denied";
    default:
      return error.message.split("\n")[0] ?? "it failed";
  }
}
