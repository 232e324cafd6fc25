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
import { describe } from "../model/interpreters";
import { describeTarget, type Target } from "../model/target";
import { withMark } from "./mark";
import { configurationsOfWorkspace } from "./workspaceConfigurations";

/** Starts a program to be traced. */
export async function trace(context: Context, target: Target): Promise<void> {
  const launch = launchOf(context, target);
  if (launch === undefined) {
    await context.messages.warn(
      `The debug configuration "${describeTarget(target)}" no longer exists.`,
    );
    await commands.executeCommand(Command.traceForwardPassOf);
    return;
  }
  const { configuration, folder } = launch;
  const scope = folder?.uri ?? (target.kind === "file" ? Uri.file(target.path) : undefined);
  const complete = await withPython(context, configuration, scope);
  if (complete === undefined) {
    return;
  }
  const marked = withMark(complete, { mode: "forwardPass" });
  const started = await debug.startDebugging(folder, { ...complete, ...marked });
  if (!started) {
    context.log.warn(`${configuration.name} was not started`);
  }
}

/** The configuration with its Python; undefined where none with torch is there, which is said. */
async function withPython(
  { interpreters, messages }: Context,
  configuration: DebugConfiguration,
  scope: Uri | undefined,
): Promise<DebugConfiguration | undefined> {
  const isStated = "python" in configuration || "pythonPath" in configuration;
  if (isStated || configuration.type !== DebugType.own) {
    return configuration; // If the one that it says has no torch, that will be heard of.
  }
  const choice = await interpreters.forPrograms(scope);
  if (choice.kind !== "found") {
    void messages.badInterpreter(choice);
    return undefined;
  }
  const cwd: unknown = configuration["cwd"];
  const { command } = choice.interpreter;
  const isThere = await hasTorch(command, typeof cwd === "string" ? { cwd } : {});
  const isWanted = isThere || (await messages.runWithoutTorch(describe(choice.interpreter)));
  return isWanted ? { ...configuration, python: [...command] } : undefined;
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
