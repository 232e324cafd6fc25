/** The providers of debug configurations: of our own type, and of Microsoft's. */
import {
  debug,
  type DebugConfiguration,
  type DebugConfigurationProvider,
  DebugConfigurationProviderTriggerKind,
  type Disposable,
  window,
  workspace,
  type WorkspaceFolder,
} from "vscode";

import type { Interpreters } from "../client/interpreters";
import { DebugType, FOREIGN_DEBUG_TYPES } from "../contributions";
import type { Config } from "../config";
import { type Log, messageOf } from "../log";
import type { Messages } from "../messages";
import { isChild, otherMachine } from "./attaching";
import {
  configurationOfFile,
  handedOver,
  INITIAL_CONFIGURATIONS,
  problemOf,
  withDefaults,
} from "./configurations";
import { isPythonDebuggerThere } from "./foreignLauncher";
import { markOf } from "./mark";
import type { Preparation } from "./preparation";

/** The parts of the extension that the providers use. */
export interface ProviderContext {
  readonly config: Config;
  readonly interpreters: Interpreters;
  readonly preparation: Preparation;
  readonly messages: Messages;
  readonly log: Log;
}

/** Registers them all. */
export function registerProviders(context: ProviderContext): Disposable[] {
  const own = new OwnProvider(context);
  const initial = DebugConfigurationProviderTriggerKind.Initial;
  const dynamic = DebugConfigurationProviderTriggerKind.Dynamic;
  return [
    debug.registerDebugConfigurationProvider(DebugType.own, own),
    debug.registerDebugConfigurationProvider(DebugType.own, new Offers(), initial),
    debug.registerDebugConfigurationProvider(DebugType.own, new Offers(), dynamic),
    debug.registerDebugConfigurationProvider(DebugType.alone, own),
    debug.registerDebugConfigurationProvider(DebugType.alone, new Offers(), initial),
    ...FOREIGN_DEBUG_TYPES.map((type) =>
      debug.registerDebugConfigurationProvider(type, new HandOver()),
    ),
    // Of all providers those for every type come last: Microsoft's has read the envFile by then.
    debug.registerDebugConfigurationProvider("*", new AgentProvider(context)),
  ];
}

/** Completes configurations of our own type. */
class OwnProvider implements DebugConfigurationProvider {
  constructor(private readonly context: ProviderContext) {}

  async resolveDebugConfiguration(
    folder: WorkspaceFolder | undefined,
    given: DebugConfiguration,
  ): Promise<DebugConfiguration | undefined> {
    const configuration = this.#ofCurrentFile(given);
    if (configuration === undefined) {
      await this.context.messages.warn(
        "Open a Python file to debug, or choose one in launch.json.",
      );
      return undefined;
    }
    const problem = problemOf(configuration);
    if (problem !== undefined) {
      await this.context.messages.error(problem);
      return undefined;
    }
    const cwd = folder ?? workspace.workspaceFolders?.[0];
    return asOwn(withDefaults(configuration, cwd?.uri.fsPath), configuration);
  }

  async resolveDebugConfigurationWithSubstitutedVariables(
    folder: WorkspaceFolder | undefined,
    configuration: DebugConfiguration,
  ): Promise<DebugConfiguration | undefined> {
    const { python, pythonPath }: Record<string, unknown> = configuration;
    if (configuration.request !== "launch" || python !== undefined || pythonPath !== undefined) {
      return configuration;
    }
    const choice = await this.context.interpreters.forPrograms(folder?.uri);
    if (choice.kind === "none" || choice.kind === "broken") {
      await this.context.messages.badInterpreter(choice);
      return undefined;
    }
    return { ...configuration, python: [...choice.interpreter.command] };
  }

  /** Without a launch.json the configuration is empty: then it is the file in the editor. */
  #ofCurrentFile(given: DebugConfiguration): DebugConfiguration | undefined {
    const isEmpty = (given as Partial<DebugConfiguration>).request === undefined;
    if (!isEmpty) {
      return { ...given, type: DebugType.own };
    }
    const document = window.activeTextEditor?.document;
    if (document?.languageId !== "python" || document.isUntitled) {
      return undefined;
    }
    const configuration = configurationOfFile(document.fileName);
    return { ...given, ...asOwn(configuration, { name: String(configuration["name"]) }) };
  }
}

/** Offers configurations for a new launch.json and in the picker of configurations. */
class Offers implements DebugConfigurationProvider {
  provideDebugConfigurations(): DebugConfiguration[] {
    return INITIAL_CONFIGURATIONS.map((configuration) =>
      asOwn(configuration, { name: String(configuration["name"]) }),
    );
  }
}

/** Runs Microsoft's configurations as ours where Microsoft's extension is not there to do it. */
class HandOver implements DebugConfigurationProvider {
  resolveDebugConfiguration(
    _: WorkspaceFolder | undefined,
    configuration: DebugConfiguration,
  ): DebugConfiguration {
    return isPythonDebuggerThere()
      ? configuration
      : asOwn(handedOver(configuration), configuration);
  }
}

/** Puts the agent into what is about to be launched. */
class AgentProvider implements DebugConfigurationProvider {
  constructor(private readonly context: ProviderContext) {}

  async resolveDebugConfigurationWithSubstitutedVariables(
    folder: WorkspaceFolder | undefined,
    configuration: DebugConfiguration,
  ): Promise<DebugConfiguration | undefined> {
    const { config, log, messages, preparation } = this.context;
    const isForeign = FOREIGN_DEBUG_TYPES.includes(configuration.type);
    if (configuration.type !== DebugType.own && !isForeign) {
      return configuration;
    }
    const isWanted = !isForeign || config.get("debug.traceDebugpySessions", folder?.uri);
    const isTrace = markOf(configuration)?.mode === "forwardPass";
    if (!workspace.isTrusted || (!isWanted && !isTrace)) {
      return configuration;
    }
    const machine = isChild(configuration) ? undefined : otherMachine(configuration);
    if (configuration.request === "attach" && machine !== undefined) {
      void messages.otherMachine(configuration.name, machine);
    }
    try {
      return await preparation.prepare(configuration, folder);
    } catch (error) {
      log.error(`${configuration.name}: runs without shapes: ${messageOf(error)}`);
      void messages.noServer(messageOf(error));
      // Debugging goes on as without us; a trace without shapes would be of no use.
      return isTrace ? undefined : preparation.withoutAgent(configuration);
    }
  }
}

function asOwn(
  configuration: Readonly<Record<string, unknown>>,
  { name }: { readonly name: string },
): DebugConfiguration {
  const request = configuration["request"] === "attach" ? "attach" : "launch";
  return { ...configuration, type: DebugType.own, name, request };
}
