/**
 * What is added to a debug configuration so that the agent gets into the program. Pure: imports no
 * `vscode`, reads nothing.
 */
import { posix, win32 } from "node:path";

import type { AfterPass, Level } from "../contributions";
import type { SessionMode } from "../protocol.generated";

/** The part of a debug configuration that is used here. */
export type Configuration = Readonly<Record<string, unknown>>;

/** The agent's settings, as the program's environment has them. */
export interface AgentSession {
  readonly session: string;
  readonly port: number;
  readonly token: string;
  readonly mode: SessionMode;
  readonly afterPass: AfterPass;
  readonly level: Level;
  /** Whether values at a stop are shown by their shapes. */
  readonly showsVariables: boolean;
  /** The folder that is open, against which the editor resolves links that begin with a dot. */
  readonly folder: string;
  /** The paths of values that are to be captured. */
  readonly captures: readonly string[];
  /** The variables that are to be watched. */
  readonly watches: readonly string[];
}

export interface Surroundings {
  readonly platform: NodeJS.Platform;
  /** The environment of the debug adapter, which a program without a terminal inherits. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The variables of the configuration's envFile, where there is one. */
  readonly fileVariables: Readonly<Record<string, string>>;
  /** The folder that has to be on the program's path. */
  readonly backend: string;
  /** Starts the debugger's launcher inside a terminal; undefined where there is none to start. */
  readonly launcher: string | undefined;
}

/** The variable with the server's address. */
export const SESSION_VARIABLE = "SHAPETRACE_SESSION";

/** The key of a configuration under which its session is found again. Debuggers pass over it. */
export const MARK = "__shapetrace";

const PATH_VARIABLE = "PYTHONPATH";

/** The configuration with the agent in it. */
export function withAgent(
  configuration: Configuration,
  session: AgentSession,
  surroundings: Surroundings,
): Configuration {
  const environment: Record<string, unknown> = { ...objectOf(configuration["env"]) };
  const pathName = nameOf(environment, surroundings.platform) ?? PATH_VARIABLE;
  const stated = pathName in environment ? environment[pathName] : fromFile(surroundings);
  environment[SESSION_VARIABLE] = JSON.stringify(session);
  const additions: Record<string, unknown> = { env: environment };
  if (stated !== undefined) {
    environment[pathName] = prepend(surroundings, typeof stated === "string" ? stated : "");
  } else if (hasTerminal(configuration) && surroundings.launcher !== undefined) {
    // Only the terminal's shell knows its PYTHONPATH, and `env` would overwrite that.
    additions["debugLauncherPath"] = surroundings.launcher;
  } else {
    environment[PATH_VARIABLE] = prepend(surroundings, inherited(surroundings) ?? "");
  }
  return { ...withHiddenFiles(configuration, surroundings), ...additions };
}

/**
 * The configuration with our files hidden from the debugger: otherwise stepping into `x * 2`, and
 * every stop at an exception, would land in the recorder.
 */
export function withHiddenFiles(
  configuration: Configuration,
  { backend, platform }: Pick<Surroundings, "backend" | "platform">,
): Configuration {
  const given = configuration["rules"];
  const rules: readonly unknown[] = Array.isArray(given) ? given : [];
  const path = pathsOf(platform).join(backend, "**");
  const isThere = rules.some((rule) => objectOf(rule)["path"] === path);
  return isThere
    ? configuration
    : { ...configuration, rules: [{ path, include: false }, ...rules] };
}

/** Variables of a file with those of the configuration over them. */
export function mergeEnvironment(
  file: Readonly<Record<string, string>>,
  configuration: unknown,
  platform: NodeJS.Platform,
): Readonly<Record<string, unknown>> {
  const stated = objectOf(configuration);
  const kept = Object.entries(file).filter(
    ([name]) => !Object.keys(stated).some((other) => isSame(name, other, platform)),
  );
  return { ...Object.fromEntries(kept), ...stated };
}

/** Returns whether the program runs in a terminal, which is the default of debuggers. */
function hasTerminal(configuration: Configuration): boolean {
  return configuration["console"] !== "internalConsole";
}

/**
 * Puts the backend first. Entries of the user's stay as they are, and none is added: an empty one
 * would be the current directory.
 */
function prepend({ backend, platform }: Surroundings, path: string): string {
  const { delimiter } = pathsOf(platform);
  const isThere = path === backend || path.startsWith(backend + delimiter);
  return isThere ? path : path === "" ? backend : backend + delimiter + path;
}

function fromFile({ fileVariables, platform }: Surroundings): string | undefined {
  const name = nameOf(fileVariables, platform);
  return name === undefined ? undefined : fileVariables[name];
}

function inherited({ environment, platform }: Surroundings): string | undefined {
  const name = nameOf(environment, platform);
  return name === undefined ? undefined : environment[name];
}

/** How PYTHONPATH is written here, where it is there: Windows takes any case. */
function nameOf(variables: object, platform: NodeJS.Platform): string | undefined {
  return Object.keys(variables).find((name) => isSame(name, PATH_VARIABLE, platform));
}

function isSame(name: string, other: string, platform: NodeJS.Platform): boolean {
  return platform === "win32" ? name.toUpperCase() === other.toUpperCase() : name === other;
}

function pathsOf(platform: NodeJS.Platform) {
  return platform === "win32" ? win32 : posix;
}

/** An object of JSON; an empty one in place of anything else. */
export function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};
}
