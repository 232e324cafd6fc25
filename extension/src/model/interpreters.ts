/** Which Python runs programs, what is wrong with one, and what to do about it. */

/** The answer of one Python. */
export interface Interpreter {
  /** The program, and options that it always needs. */
  readonly command: readonly [string, ...string[]];
  readonly version: Version;
  readonly source: InterpreterSource;
}

export type Version = readonly [major: number, minor: number, micro: number];

/** Where a Python was found, in the order of asking. */
export type InterpreterSource =
  "setting" | "environments extension" | "Python extension" | "folder" | "PATH";

/** A Python that might be chosen, not yet asked whether it runs. */
export interface Candidate {
  readonly command: readonly [string, ...string[]];
  readonly source: InterpreterSource;
}

/** The result of choosing a Python. */
export type Choice =
  | { readonly kind: "found"; readonly interpreter: Interpreter }
  | { readonly kind: "tooOld"; readonly interpreter: Interpreter }
  | { readonly kind: "broken"; readonly candidate: Candidate; readonly reason: string }
  | { readonly kind: "none" };

/** A candidate that was asked: an interpreter, or why it is none. */
export type Asked =
  | { readonly candidate: Candidate; readonly version: Version }
  | { readonly candidate: Candidate; readonly failure: string };

/** The oldest Python whose programs can be watched. */
export const OLDEST_PYTHON: readonly [number, number] = [3, 11];

const OLDEST = OLDEST_PYTHON.join(".");

/** Prints the version, and nothing that a sitecustomize might add. */
export const VERSION_PROBE: readonly string[] = [
  "-I",
  "-S",
  "-c",
  "import sys; print('shapetrace-python %d.%d.%d' % sys.version_info[:3])",
];

/** Tells by its exit code whether torch can be imported, without importing it. */
export const TORCH_PROBE: readonly string[] = [
  "-c",
  "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None and 3)",
];

/** The exit code of TORCH_PROBE where there is no torch; any other failure says nothing. */
export const NO_TORCH = 3;

/** The version in the output of VERSION_PROBE. */
export function parseVersion(output: string): Version | undefined {
  const found = /^shapetrace-python (\d+)\.(\d+)\.(\d+)\s*$/m.exec(output);
  return found === null ? undefined : [Number(found[1]), Number(found[2]), Number(found[3])];
}

export function isSupported([major, minor]: Version): boolean {
  return major === OLDEST_PYTHON[0] && minor >= OLDEST_PYTHON[1];
}

/**
 * The Python for programs: the first that runs. What a setting or another extension says is not
 * passed over, even if it is too old or does not run: that is what the user chose.
 */
export function choose(asked: readonly Asked[]): Choice {
  for (const each of asked) {
    if ("version" in each) {
      const interpreter = interpreterOf(each);
      return { kind: isSupported(each.version) ? "found" : "tooOld", interpreter };
    }
    if (each.candidate.source !== "PATH" && each.candidate.source !== "folder") {
      return { kind: "broken", candidate: each.candidate, reason: each.failure };
    }
  }
  return { kind: "none" };
}

/** The Python for the language server: the first one that is new enough. */
export function chooseForServer(asked: readonly Asked[]): Choice {
  const serving = asked.find((each) => "version" in each && isSupported(each.version));
  return serving !== undefined && "version" in serving
    ? { kind: "found", interpreter: interpreterOf(serving) }
    : choose(asked);
}

/** The message for a choice that is not a usable Python. */
export function explainChoice(choice: Exclude<Choice, { kind: "found" }>): string {
  switch (choice.kind) {
    case "tooOld":
      return (
        `${describe(choice.interpreter)} is Python ${choice.interpreter.version.join(".")}; ` +
        `Shapetrace needs ${OLDEST} or newer. Select another interpreter.`
      );
    case "broken":
      return (
        `${describe(choice.candidate)} does not run (${choice.reason}). ` +
        "Select another interpreter."
      );
    case "none":
      return (
        `No Python was found. Install Python ${OLDEST} or newer, or select an interpreter ` +
        "if you have one."
      );
  }
}

/** The interpreter as the user knows it, with where the choice came from. */
export function describe({ command, source }: Candidate): string {
  const text = command.join(" ");
  switch (source) {
    case "setting":
      return `${text} (from the setting shapetrace.interpreter)`;
    case "environments extension":
      return `${text} (from the Python Environments extension)`;
    case "Python extension":
      return `${text} (from the Python extension)`;
    case "folder":
      return text;
    case "PATH":
      return `${text} (from the PATH)`;
  }
}

/** The command of an environment as the Python Environments extension reports it. */
export function commandOfEnvironment(environment: unknown): [string, ...string[]] | undefined {
  const run = property(property(environment, "execInfo"), "run");
  const executable = property(run, "executable");
  const given = property(run, "args");
  const options: readonly unknown[] = Array.isArray(given) ? given : [];
  return typeof executable === "string" && executable !== ""
    ? [executable, ...options.filter((option) => typeof option === "string")]
    : undefined;
}

/** The path of a resolved environment as Microsoft's Python extension reports it. */
export function pathOfEnvironment(environment: unknown): string | undefined {
  const path = property(property(property(environment, "executable"), "uri"), "fsPath");
  return typeof path === "string" && path !== "" ? path : undefined;
}

function interpreterOf(asked: Extract<Asked, { readonly version: Version }>): Interpreter {
  return { ...asked.candidate, version: asked.version };
}

/** A property of something that came from another extension. */
export function property(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null
    ? (value as Record<string, unknown>)[name]
    : undefined;
}
