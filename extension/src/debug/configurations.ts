/** Debug configurations of our own type. Pure: imports no `vscode`. */
import { DebugType } from "../contributions";
import { fileName } from "../model/paths";
import { type Configuration } from "./launchEnvironment";

/** The content of a new launch.json. */
export const INITIAL_CONFIGURATIONS: readonly Configuration[] = [
  {
    name: "Shapetrace: Current File",
    type: DebugType.own,
    request: "launch",
    program: "${file}",
    console: "integratedTerminal",
  },
];

/** The configuration for F5 on a Python file without a launch.json. */
export function configurationOfFile(program: string): Configuration {
  return {
    name: `Shapetrace: ${fileName(program)}`,
    type: DebugType.own,
    request: "launch",
    program,
  };
}

/**
 * Another extension's configuration as one of ours. Where it has a command of that extension say
 * the Python, nothing can run the command: then our own choice is used.
 */
export function handedOver(configuration: Configuration): Configuration {
  const kept = Object.entries(configuration).filter(
    ([key, value]) =>
      !PYTHON_KEYS.includes(key) || !JSON.stringify(value ?? "").includes("${command:"),
  );
  return { ...Object.fromEntries(kept), type: DebugType.own };
}

const PYTHON_KEYS = ["python", "pythonPath"];

/** The defaults of a launch of our own type. */
export function withDefaults(
  configuration: Configuration,
  folder: string | undefined,
): Configuration {
  if (configuration["request"] !== "launch") {
    return { showReturnValue: true, ...configuration };
  }
  const complete: Configuration = {
    console: "integratedTerminal",
    showReturnValue: true,
    ...(folder === undefined ? {} : { cwd: folder, envFile: `${folder}/.env` }),
    ...withoutEmpty(configuration),
  };
  // A program in a terminal prints nothing to the Debug Console.
  return complete["console"] === "internalConsole"
    ? complete
    : { internalConsoleOptions: "neverOpen", ...complete };
}

/** Why a launch cannot work, and what to do; undefined where nothing is wrong. */
export function problemOf(configuration: Configuration): string | undefined {
  const { request } = configuration;
  if (request === "attach") {
    return problemOfAttach(configuration);
  }
  if (request !== "launch") {
    return `The debug configuration's "request" must be "launch" or "attach".`;
  }
  const targets = ["program", "module", "code"].filter((key) => key in configuration);
  switch (targets.length) {
    case 0:
      return `The debug configuration names nothing to run: add "program" or "module".`;
    case 1:
      return undefined;
    default:
      return `The debug configuration has ${targets.map(quoted).join(" and ")}: keep one of them.`;
  }
}

function problemOfAttach(configuration: Configuration): string | undefined {
  const ways = ATTACH_KEYS.filter((key) => {
    const value = configuration[key];
    return value !== undefined && value !== "";
  });
  if (ways.length === 0) {
    return (
      `The debug configuration names nothing to attach to: add "connect" with the port of a program ` +
      `that was started with "python -m debugpy --listen", or "processId".`
    );
  }
  const isClear = ways.length === 1 || ways.includes("subProcessId");
  return isClear
    ? undefined
    : `The debug configuration has ${ways.map(quoted).join(" and ")}: keep one of them.`;
}

/** How a program can be attached to; the last two as debuggers have them of old, and of children. */
const ATTACH_KEYS = ["connect", "listen", "processId", "port", "subProcessId"];

/** Snippets leave keys with empty texts behind; for a debugger these are not the same as absent. */
function withoutEmpty(configuration: Configuration): Configuration {
  return Object.fromEntries(
    Object.entries(configuration).filter(
      ([key, value]) => value !== "" || !CAN_BE_ABSENT.includes(key),
    ),
  );
}

const CAN_BE_ABSENT = ["program", "module", "code", "cwd", "envFile", "python", "console"];

function quoted(text: string): string {
  return `"${text}"`;
}
