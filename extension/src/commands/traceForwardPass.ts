import { basename } from "node:path";

import { type TextDocument, Uri, window, workspace } from "vscode";

import type { Context } from "../context";
import type { WatchedSession } from "../debug/sessions";
import { trace } from "../debug/trace";
import { configurationsOfWorkspace } from "../debug/workspaceConfigurations";
import { hasEntryPoint } from "../model/entryPoint";
import { describeTarget, plan, type Target } from "../model/target";
import { traceForwardPassOf } from "./traceForwardPassOf";
import { traceInPlace } from "./traceInPlace";

/**
 * Runs the file in the editor, or what was chosen before, up to the end of one forward pass. While
 * a program is debugged it is that one's forward pass: at a stop, one that is evaluated there.
 */
export async function traceForwardPass(context: Context, file?: unknown): Promise<void> {
  if (!workspace.isTrusted) {
    await context.messages.untrusted();
    return;
  }
  if ((await context.sessions.lasting()).length > 0) {
    const { stopped } = context.focus;
    if (stopped !== undefined && isRecorded(stopped.session)) {
      await traceInPlace(context, stopped);
    } else {
      await lookAgain(context);
    }
    return;
  }
  const active = await activeFile(file);
  const remembered = context.memory.target;
  const decision = plan(active, remembered, remembersFile(remembered, active?.path));
  switch (decision.kind) {
    case "ask":
      await traceForwardPassOf(context);
      break;
    case "run":
      if (decision.isRemembered) {
        window.setStatusBarMessage(`Shapetrace: tracing ${describeTarget(decision.target)}`, 5000);
      }
      await trace(context, decision.target);
      break;
  }
}

/** Returns whether a program of a session is being recorded. */
function isRecorded({ programs }: WatchedSession): boolean {
  return [...programs.values()].some(({ state }) => state === "recording" || state === "settled");
}

async function lookAgain({ messages, sessions }: Context): Promise<void> {
  const processes = await sessions.wake();
  await messages.info(
    processes === 0
      ? "A debug session is running, but no program in it is being recorded. Stop it and trace again."
      : "Shapetrace records everything again from the next forward pass on.",
  );
}

async function activeFile(
  file: unknown,
): Promise<{ path: string; hasEntryPoint: boolean } | undefined> {
  const document = await documentOf(file);
  if (document?.languageId !== "python" || document.uri.scheme !== "file") {
    return undefined;
  }
  return { path: document.fileName, hasEntryPoint: hasEntryPoint(document.getText()) };
}

async function documentOf(file: unknown): Promise<TextDocument | undefined> {
  return file instanceof Uri ? workspace.openTextDocument(file) : window.activeTextEditor?.document;
}

/** Returns whether the remembered target runs this very file, perhaps with arguments. */
function remembersFile(target: Target | undefined, path: string | undefined): boolean {
  if (target === undefined || path === undefined) {
    return false;
  }
  switch (target.kind) {
    case "file":
      return target.path === path;
    case "module":
      return target.module.split(".").at(-1) === basename(path, ".py");
    case "configuration": {
      const found = configurationsOfWorkspace().find(
        ({ configuration }) => configuration.name === target.name,
      );
      const program: unknown = found?.configuration["program"];
      return typeof program === "string" && basename(program) === basename(path);
    }
  }
}
