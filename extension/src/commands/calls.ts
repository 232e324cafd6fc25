/** The arguments of commands on calls: a node of the trace tree, a place in the source, or nothing. */
import { window } from "vscode";

import { objectOf } from "../debug/launchEnvironment";
import type { DocumentPosition, TreeNode } from "../protocol.generated";
import type { Loaded } from "../model/pagedTree";
import type { TraceElement } from "../views/traceTree";

/** Returns whether a command was called from the trace tree. */
export function isElement(argument: unknown): argument is TraceElement {
  const { kind } = objectOf(argument);
  return kind === "node" || kind === "more";
}

/** The call of the trace tree that a command is for. */
export function elementOf(argument: unknown): Loaded<TreeNode> | undefined {
  return isElement(argument) && argument.kind === "node" ? argument : undefined;
}

/** The place that a code lens names, or that of the cursor. */
export function positionOf(argument: unknown): DocumentPosition | undefined {
  const { uri, line, character } = objectOf(argument);
  if (typeof uri === "string" && typeof line === "number") {
    return { uri, line, character: typeof character === "number" ? character : 0 };
  }
  const editor = window.activeTextEditor;
  if (editor?.document.languageId !== "python") {
    return undefined;
  }
  const { active } = editor.selection;
  return {
    uri: editor.document.uri.toString(),
    line: active.line,
    character: active.character,
  };
}
