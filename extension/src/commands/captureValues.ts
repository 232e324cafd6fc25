import { type QuickPickItem, QuickPickItemKind, window } from "vscode";

import { CAPTURE_PATHS, type CapturePaths, CHECK_PATH } from "../protocol.generated";
import type { Context } from "../context";
import { elementOf, positionOf } from "./calls";

interface Choice extends QuickPickItem {
  /** Undefined for one that is typed. */
  readonly path?: string;
}

/** Has a value captured from the next debug session on: of a node of the trace tree, or at the cursor. */
export async function captureValues(context: Context, argument?: unknown): Promise<void> {
  const { captures, messages, server } = context;
  const node = elementOf(argument)?.item.id;
  const position = positionOf(argument);
  const question = node === undefined ? position && { position } : { node };
  if (question === undefined) {
    void messages.info("Put the cursor on a variable or module in Python code.");
    return;
  }
  const path = await choose(context, await server.request(CAPTURE_PATHS, question));
  if (path === undefined) {
    return;
  }
  const isNew = await captures.add(path);
  const isRunning = context.sessions.openSessions.length > 0;
  const when = isRunning ? "when the program is started again" : "from the next run on";
  void messages.willBeCaptured(
    isNew ? `${path} will be captured ${when}.` : `${path} is captured already.`,
    isRunning,
  );
}

async function choose(context: Context, found: CapturePaths): Promise<string | undefined> {
  const [first] = found.paths;
  if (first === undefined) {
    return type(context, "", "Nothing at the cursor has a path. Type one:");
  }
  const isSingle = found.paths.length === 1;
  const offered = found.paths.map(({ path, description }): Choice => {
    const icon = path.includes("*") ? "$(symbol-array)" : "$(symbol-variable)";
    return { path, label: `${icon} ${path}`, description };
  });
  const chosen = await window.showQuickPick<Choice>(
    [
      ...offered,
      { label: "", kind: QuickPickItemKind.Separator },
      { label: "$(edit) Another Path...", description: "typed, with * and **" },
    ],
    {
      title: `Capture the Values of ${found.name}`,
      placeHolder: isSingle ? "Path" : "In which modules",
      matchOnDescription: true,
    },
  );
  return chosen === undefined
    ? undefined
    : (chosen.path ?? (await type(context, first.path, "A path of values:")));
}

async function type(
  { server }: Context,
  value: string,
  prompt: string,
): Promise<string | undefined> {
  const typed = await window.showInputBox({
    title: "Capture Values",
    prompt:
      `${prompt} modules, a function, a variable, a part of it. ` +
      "A module alone means its return value. * matches one name, ** any number of names.",
    placeHolder: "layers.*.attn.forward.scores",
    value,
    validateInput: async (text) => {
      const { problem } = await server.request(CHECK_PATH, { request: text.trim() });
      return problem ?? undefined;
    },
  });
  return typed?.trim();
}
