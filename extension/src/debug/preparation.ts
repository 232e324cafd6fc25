/** Getting the agent into a debug configuration that is about to be launched. */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

import { type DebugConfiguration, type WorkspaceFolder } from "vscode";

import type { Config } from "../config";
import { DebugType } from "../contributions";
import type { Folders } from "../folders";
import { type Log, messageOf } from "../log";
import { parseEnvFile, type Variables } from "../model/envFile";
import { isChild, otherMachine } from "./attaching";
import { foreignLauncher, standInFor } from "./foreignLauncher";
import {
  type Configuration,
  mergeEnvironment,
  type Surroundings,
  withAgent,
  withHiddenFiles,
} from "./launchEnvironment";
import { markOf, withMark } from "./mark";
import type { Sessions } from "./sessions";

/** The user's requests: captured values and watched variables. */
export interface Asked {
  readonly captures: { readonly wanted: readonly string[] };
  readonly watches: { readonly wanted: readonly string[] };
}

export class Preparation {
  constructor(
    private readonly config: Config,
    private readonly folders: Folders,
    private readonly sessions: Sessions,
    private readonly asked: Asked,
    private readonly log: Log,
  ) {}

  /**
   * The configuration with the agent in it. A child process has the session of its parent, one that
   * is attached to gets the agent later, and `noDebug` runs without the debugger that would load it.
   */
  async prepare(
    given: DebugConfiguration,
    folder: WorkspaceFolder | undefined,
  ): Promise<DebugConfiguration> {
    const fileVariables = await this.#readEnvFile(given["envFile"]);
    const configuration =
      given.type === DebugType.own ? withVariables(given, fileVariables) : { ...given };
    const hidden = withHiddenFiles(configuration, {
      backend: this.folders.backend,
      platform: process.platform,
    });
    if (given["noDebug"] === true) {
      return asDebugConfiguration(configuration, given);
    }
    if (isChild(given) || (given.request === "attach" && otherMachine(given) !== undefined)) {
      return asDebugConfiguration(hidden, given);
    }
    const mode = markOf(given)?.mode ?? "debug";
    const scope = folder?.uri;
    const afterPass = this.config.get("trace.afterPass", scope);
    const endsItself = mode === "forwardPass" && afterPass === "stop";
    // Nothing may fail once the session is open: it would wait for a program that never comes.
    const launcher = given.request === "attach" ? undefined : await this.#launcher(given);
    const session = await this.sessions.open(given.name, mode, endsItself);
    const agent = {
      session: session.id,
      port: session.endpoint.port,
      token: session.endpoint.token,
      mode,
      afterPass,
      level: this.config.get("trace.level", scope),
      showsVariables: this.config.get("variables.enabled", scope),
      folder: folder?.uri.fsPath ?? "",
      captures: this.asked.captures.wanted,
      watches: this.asked.watches.wanted,
    };
    session.agent = agent;
    this.log.info(`${given.name}: session ${session.id} awaits its program`);
    const mark = { mode, session: session.id };
    if (given.request === "attach") {
      return asDebugConfiguration(withMark(hidden, mark), given);
    }
    const surroundings: Surroundings = {
      platform: process.platform,
      environment: process.env,
      fileVariables,
      backend: this.folders.backend,
      launcher,
    };
    const prepared = withMark(withAgent(configuration, agent, surroundings), mark);
    return asDebugConfiguration(prepared, given);
  }

  /** Only the files of ours are hidden: the program is not watched. */
  withoutAgent(given: DebugConfiguration): DebugConfiguration {
    const { backend } = this.folders;
    return asDebugConfiguration(
      withHiddenFiles(given, { backend, platform: process.platform }),
      given,
    );
  }

  /** The launcher to start in a terminal: ours, in place of the debugger's. */
  async #launcher(configuration: DebugConfiguration): Promise<string | undefined> {
    const chosen: unknown = configuration["debugLauncherPath"];
    if (typeof chosen === "string" && chosen !== "") {
      return existsSync(join(chosen, "__main__.py")) ? standInFor(chosen, this.folders) : undefined;
    }
    if (configuration.type === DebugType.own) {
      return this.folders.launcher;
    }
    const foreign = await foreignLauncher(this.log);
    return foreign === undefined ? undefined : standInFor(foreign, this.folders);
  }

  async #readEnvFile(path: unknown): Promise<Variables> {
    if (typeof path !== "string" || path === "") {
      return {};
    }
    try {
      return parseEnvFile(await readFile(path, "utf8"), process.env);
    } catch (error) {
      // The usual `.env` need not exist.
      this.log.debug(`${path} is not read: ${messageOf(error)}`);
      return {};
    }
  }
}

function withVariables(configuration: DebugConfiguration, variables: Variables): Configuration {
  return {
    ...configuration,
    env: mergeEnvironment(variables, configuration["env"], process.platform),
  };
}

function asDebugConfiguration(
  configuration: Configuration,
  { type, name, request }: DebugConfiguration,
): DebugConfiguration {
  return { ...configuration, type, name, request };
}
