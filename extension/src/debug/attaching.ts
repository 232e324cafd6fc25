/** Programs that run already, and processes that a program starts. Pure: imports no `vscode`. */
import { type AgentSession, type Configuration, objectOf } from "./launchEnvironment";

/** Whether it is a process that a debugged program has started: its debugger knows it by its id. */
export function isChild(configuration: Configuration): boolean {
  return configuration["subProcessId"] !== undefined;
}

/** The machine that a program to be attached to is on; undefined for this one. */
export function otherMachine(configuration: Configuration): string | undefined {
  const host: unknown = objectOf(configuration["connect"])["host"] ?? configuration["host"];
  return typeof host === "string" && host !== "" && !LOOPBACK.test(host) ? host : undefined;
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[?::1\]?|0\.0\.0\.0)$/i;

/** What the debugger is to run in the program, in one expression that is worth nothing. */
export function entering(source: string, backend: string, session: AgentSession): string {
  // JSON's texts are Python's too.
  const given = JSON.stringify({ backend, session: JSON.stringify(session) });
  return `exec(${JSON.stringify(source)}, ${given})`;
}

/** What has kept the agent out of a program that was attached to. */
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

/** Whether what the debugger prints says that the system has kept it out of a process. */
export function isForbidden(output: string): boolean {
  return /Operation not permitted|ptrace_scope|Could not attach to process|not allowed to attach/i.test(
    output,
  );
}

/** Whether it says that what looks into processes is not installed. */
export function lacksInjector(output: string): boolean {
  return /No such file or directory: '(gdb|lldb)'|\b(gdb|lldb): (command )?not found/.test(output);
}
