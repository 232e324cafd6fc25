/** Explanations of what a user cannot see. */
import { assertNever } from "./assertNever";

/** How a program was started from which nothing was heard. */
export interface Start {
  readonly python: string;
  readonly pythonOptions: readonly string[];
  readonly usesSudo: boolean;
  readonly isAttached: boolean;
}

/** Options of Python, alone or joined as in `-sI`, that make it pass over PYTHONPATH. */
const ISOLATING = /^-[a-zA-Z]*[EI]/;

/** An explanation, and whether the debug configuration itself is to be changed. */
export interface Explanation {
  readonly text: string;
  readonly isConfigured: boolean;
}

/** Why no shapes come, and what to do: the reason itself where it can be seen. */
export function explainSilence(
  name: string,
  { python, pythonOptions, usesSudo, isAttached }: Start,
): Explanation {
  if (isAttached) {
    const text =
      `No shapes from ${name}: Shapetrace runs in the program but cannot reach VS Code. ` +
      "Does the program run in a container or on another machine, with forwarded ports? Attach " +
      "from a window that is open there (Dev Containers, Remote - SSH).";
    return { text, isConfigured: true };
  }
  const isolating = pythonOptions.find((option) => ISOLATING.test(option));
  if (isolating !== undefined) {
    const text =
      `No shapes from ${name}: Python runs with ${isolating}, which ignores PYTHONPATH, ` +
      "and Shapetrace needs PYTHONPATH. Remove the option from the debug configuration.";
    return { text, isConfigured: true };
  }
  if (usesSudo) {
    const text =
      `No shapes from ${name}: sudo removes PYTHONPATH, which Shapetrace needs. ` +
      `Remove "sudo" from the debug configuration, or allow PYTHONPATH in sudo's env_keep.`;
    return { text, isConfigured: true };
  }
  const who = python === "" ? "" : ` (${python})`;
  const text =
    `No shapes from ${name}: its Python${who} runs, but Shapetrace in it does not answer. ` +
    "Perhaps another program starts it and removes PYTHONPATH " +
    "(python -I or -E, sudo, conda run, a container), or Python is too old. " +
    "Debug it with its Python directly, or select another interpreter.";
  return { text, isConfigured: false };
}

/** Why a program that was attached to shows no shapes, and what to do. */
export function explainObstacle(
  name: string,
  obstacle:
    | { readonly kind: "elsewhere" }
    | { readonly kind: "oldPython"; readonly version: string }
    | { readonly kind: "failed"; readonly reason: string },
): string {
  switch (obstacle.kind) {
    case "elsewhere":
      return (
        `No shapes from ${name}: the program has no access to the extension's files. It runs in a ` +
        "container or on another machine. Open the folder there (Dev Containers, Remote - SSH) " +
        "and attach from that window."
      );
    case "oldPython":
      return (
        `No shapes from ${name}: Shapetrace needs Python 3.11 or newer; ` +
        `the program runs on ${obstacle.version}.`
      );
    case "failed":
      return `No shapes from ${name}: Shapetrace could not be loaded into the program: ${obstacle.reason}`;
    default:
      return assertNever(obstacle);
  }
}

/** Why a program on another machine shows no shapes, known before attaching. */
export function explainOtherMachine(name: string, machine: string): string {
  return (
    `No shapes from ${name}: Shapetrace works only with programs on this machine, and ` +
    `${machine} is another one. Open the folder there (Remote - SSH, Dev Containers) and attach ` +
    "from that window. Debugging works as usual."
  );
}

/** Why a process could not be attached to by its id, and what to do. */
export function explainForbidden(
  name: string,
  how: "missing" | "forbidden",
  platform: NodeJS.Platform,
): string {
  const instead =
    "Or start the program with `python -m debugpy --listen 5678 …` and attach with " +
    `"connect": {"port": 5678}.`;
  if (how === "missing") {
    return `${name}: attaching to a process needs gdb, which is not installed here. ${instead}`;
  }
  const remedy =
    platform === "linux"
      ? "Linux does not let a process read another one without permission: run " +
        "`echo 0 | sudo tee /proc/sys/kernel/yama/ptrace_scope` (in a container: start it with " +
        "`--cap-add=SYS_PTRACE`)."
      : "The system does not let the debugger read the process.";
  return `${name}: the process could not be attached to. ${remedy} ${instead}`;
}
