/** Starting a program for Trace Forward Pass. */
import { dirname } from "node:path";

import {
  commands,
  debug,
  type DebugConfiguration,
  Uri,
  workspace,
  type WorkspaceFolder,
} from "vscode";

import { hasTorch } from "../client/python";
import type { Context } from "../context";
import { Command, DebugType } from "../contributions";
import { describeTarget, type Target } from "../model/target";
import { withMark } from "./mark";
import { configurationsOfWorkspace } from "./workspaceConfigurations";

/** Starts a program to be traced. */
export async function trace(context: Context, target: Target): Promise<void> {
  const launch = launchOf(context, target);
  if (launch === undefined) {
    await context.messages.warn(
      `There is no debug configuration "${describeTarget(target)}" any longer.`,
    );
    await commands.executeCommand(Command.traceForwardPassOf);
    return;
  }
  const { configuration, folder } = launch;
  const scope = folder?.uri ?? (target.kind === "file" ? Uri.file(target.path) : undefined);
  if (!(await canTrace(context, configuration, scope))) {
    return;
  }
  const marked = withMark(configuration, { mode: "forwardPass" });
  const started = await debug.startDebugging(folder, { ...configuration, ...marked });
  if (!started) {
    context.log.warn(`${configuration.name} was not started`);
  }
}

/** Whether a Python with torch is there for it; if not, that is said. */
async function canTrace(
  { interpreters, messages }: Context,
  configuration: DebugConfiguration,
  scope: Uri | undefined,
): Promise<boolean> {
  if (configuration["python"] !== undefined || configuration.type !== DebugType.own) {
    return true; // It says itself which one; if that has no torch, it will be heard of.
  }
  const choice = await interpreters.forPrograms(scope);
  if (choice.kind !== "found") {
    await messages.badInterpreter(choice);
    return false;
  }
  const cwd: unknown = configuration["cwd"];
  const { command } = choice.interpreter;
  if (!(await hasTorch(command, typeof cwd === "string" ? { cwd } : {}))) {
    await messages.noTorch(command.join(" "));
    return false;
  }
  return true;
}

interface Launch {
  readonly configuration: DebugConfiguration;
  readonly folder: WorkspaceFolder | undefined;
}

function launchOf({ config }: Context, target: Target): Launch | undefined {
  const name = `Trace Forward Pass: ${describeTarget(target)}`;
  const base = { type: DebugType.own, request: "launch", name };
  switch (target.kind) {
    case "file": {
      const uri = Uri.file(target.path);
      const own = workspace.getWorkspaceFolder(uri);
      const cwd = own?.uri.fsPath ?? dirname(target.path);
      const console = config.get("trace.console", uri);
      return { configuration: { ...base, program: target.path, cwd, console }, folder: own };
    }
    case "module": {
      const folder = folderNamed(target.folder);
      const console = config.get("trace.console", folder?.uri);
      const cwd = folder === undefined ? {} : { cwd: folder.uri.fsPath };
      return { configuration: { ...base, module: target.module, console, ...cwd }, folder };
    }
    case "configuration": {
      const found = configurationsOfWorkspace().find(
        ({ configuration, folder }) =>
          configuration.name === target.name && (folder?.name ?? null) === target.folder,
      );
      return found && { ...found, configuration: { ...found.configuration, name } };
    }
  }
}

function folderNamed(name: string | null): WorkspaceFolder | undefined {
  const folders = workspace.workspaceFolders;
  return folders?.find((folder) => folder.name === name) ?? folders?.[0];
}
