import { readFile } from "node:fs/promises";
import { basename } from "node:path";

import { commands, type QuickPickItem, QuickPickItemKind, Uri, window, workspace } from "vscode";

import type { Context } from "../context";
import { evaluateIn } from "../debug/evaluating";
import type { StoppedFrame } from "../debug/focus";
import { messageOf } from "../log";
import { callsAt, isExpression, valueAt } from "../model/callExpressions";
import { shortExpression } from "../model/evaluation";
import { property } from "../model/interpreters";

/** Random numbers are put back, which need not be said here. */
const ONCE_MORE = "An extra call: changes of buffers, caches and gradients remain";

type Choice = { readonly expression: string } | "other" | "continue";

interface Item extends QuickPickItem {
  readonly choice?: Choice;
}

interface Place {
  readonly file: Uri;
  readonly line: number;
  readonly function: string;
}

/** Offers to record a call at a stop, or the next forward pass. */
export async function traceInPlace(context: Context, stopped: StoppedFrame): Promise<void> {
  const place = await placeOf(context, stopped);
  const expressions = place === undefined ? [] : await expressionsAt(context, place);
  const where = place && `${place.function}, ${basename(place.file.path)}:${place.line}`;
  const chosen = await window.showQuickPick(itemsFor(expressions, where), {
    title: "Trace Forward Pass",
    placeHolder: `The program is stopped${where === undefined ? "" : ` in ${where}`}`,
    matchOnDescription: true,
  });
  const choice = chosen?.choice;
  if (choice === "continue") {
    await context.sessions.wake();
    await commands.executeCommand("workbench.action.debug.continue");
  } else if (choice !== undefined) {
    const expression =
      choice === "other" ? await askFor(expressions[0] ?? "", where) : choice.expression;
    if (expression !== undefined) {
      await evaluateIn(context, stopped, expression);
    }
  }
}

function itemsFor(expressions: readonly string[], where: string | undefined): Item[] {
  const evaluate = expressions.map((expression) => ({
    label: `$(play) Evaluate ${shortExpression(expression)}`,
    detail: ONCE_MORE,
    choice: { expression },
  }));
  const inFrame = where === undefined ? {} : { description: `in ${where}` };
  return [
    ...evaluate,
    {
      label: "$(edit) Evaluate Another Expression...",
      ...inFrame,
      detail: ONCE_MORE,
      choice: "other",
    },
    { label: "", kind: QuickPickItemKind.Separator },
    {
      label: "$(debug-continue) Continue, and Record the Next Forward Pass",
      description: "does not evaluate anything",
      choice: "continue",
    },
  ];
}

function askFor(value: string, where: string | undefined): Thenable<string | undefined> {
  return window.showInputBox({
    title: "Evaluate and Record",
    prompt: where === undefined ? ONCE_MORE : `In ${where}. ${ONCE_MORE}.`,
    placeHolder: "model(x)",
    value,
    validateInput: (text) => (isExpression(text) ? undefined : "An expression, such as model(x)"),
  });
}

/** The file and line of the frame; undefined if its source is not a file. */
async function placeOf({ log }: Context, { frame }: StoppedFrame): Promise<Place | undefined> {
  try {
    const { threadId } = frame;
    const answer: unknown = await frame.session.customRequest("stackTrace", { threadId });
    const frames: unknown = property(answer, "stackFrames");
    const found: unknown = Array.isArray(frames)
      ? frames.find((each: unknown) => property(each, "id") === frame.frameId)
      : undefined;
    const file = property(property(found, "source"), "path");
    const line = property(found, "line");
    if (typeof file === "string" && typeof line === "number") {
      return { file: uriOf(file), line, function: String(property(found, "name")) };
    }
  } catch (error) {
    log.debug(`the line of the frame is unknown: ${messageOf(error)}`);
  }
  return undefined;
}

/** VS Code turns the paths in an adapter's answers into what it calls the files itself. */
function uriOf(path: string): Uri {
  const isUri = /^[\w+.-]{2,}:\/\//.test(path);
  const uri = isUri ? Uri.parse(path, true) : Uri.file(path);
  return uri.scheme === "vscode-remote" ? Uri.file(uri.path) : uri;
}

/** The expressions that could be evaluated there, the likeliest first. */
async function expressionsAt({ log }: Context, { file, line }: Place): Promise<string[]> {
  try {
    const document = await workspace.openTextDocument(file);
    // The lines are those of the file that the program has read.
    const source = document.isDirty ? await readFile(file.fsPath, "utf8") : document.getText();
    const calls = callsAt(source, line);
    const value = calls.length === 0 ? valueAt(source, line) : undefined;
    const selected = selectionIn(file);
    const all = [selected, ...calls, value];
    return [...new Set(all.filter((each) => each !== undefined))];
  } catch (error) {
    log.debug(`${file.fsPath} cannot be read: ${messageOf(error)}`);
    return [];
  }
}

/** The selection in the file, if it is an expression. */
function selectionIn(file: Uri): string | undefined {
  const editor = window.activeTextEditor;
  if (editor?.document.uri.toString() !== file.toString()) {
    return undefined;
  }
  const text = editor.document.getText(editor.selection).trim();
  return isExpression(text) ? text : undefined;
}
