/** Programs that run already, and processes that a program starts. Pure: imports no `vscode`. */
import { type AgentSession, type Configuration, objectOf } from "./launchEnvironment";

/** Returns whether a debugged program has started this process: its debugger knows it by its id. */
export function isChild(configuration: Configuration): boolean {
  return configuration["subProcessId"] !== undefined;
}

/** The machine that a program to be attached to is on; undefined for this one. */
export function otherMachine(configuration: Configuration): string | undefined {
  const host: unknown = objectOf(configuration["connect"])["host"] ?? configuration["host"];
  return typeof host === "string" && host !== "" && !LOOPBACK.test(host) ? host : undefined;
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[?::1\]?|0\.0\.0\.0)$/i;

/** The code for the debugger to run in the program: one expression without a value. */
export function entering(source: string, backend: string, session: AgentSession): string {
  // JSON's texts are Python's too.
  const given = JSON.stringify({ backend, session: JSON.stringify(session) });
  return `exec(${JSON.stringify(source)}, ${given})`;
}

/** The reason why the agent could not be loaded into a program. */
export type Obstacle =
  | { readonly kind: "elsewhere" }
  | { readonly kind: "oldPython"; readonly version: string }
  | { readonly kind: "failed"; readonly reason: string };

/** Reads the debugger's answer, which is a traceback of Python's. */
export function readObstacle(answer: string): Obstacle {
  const last = answer.trim().split("\n").at(-1)?.trim() ?? "";
  const said = /shapetrace: (elsewhere|python) ?(\S*)/.exec(answer);
  if (said?.[1] === "elsewhere") {
    return { kind: "elsewhere" };
  }
  return said === null
    ? { kind: "failed", reason: last }
    : { kind: "oldPython", version: said[2] ?? "" };
}

/** Returns whether the debugger's output says that the system has denied access to a process. */
export function isForbidden(output: string): boolean {
  return /Operation not permitted|ptrace_scope|Could not attach to process|not allowed to attach/i.test(
    output,
  );
}

/** Returns whether it says that the tool for attaching is not installed. */
export function lacksInjector(output: string): boolean {
  return /No such file or directory: '(gdb|lldb)'|\b(gdb|lldb): (command )?not found/.test(output);
}
