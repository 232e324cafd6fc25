import { window } from "vscode";

import type { Context } from "../context";

/** Shows only those calls in the trace tree that have a text in them. */
export async function filterTrace({ tree }: Context): Promise<void> {
  const text = await window.showInputBox({
    title: "Filter the Trace",
    value: tree.filter,
    prompt: "A module's path or class, an op, a shape or a file. Empty: all calls.",
    placeHolder: "attn, softmax, f32[2,16,64], model.py:12",
  });
  if (text !== undefined) {
    tree.setFilter(text);
  }
}

/** Shows all calls again. */
export function clearFilter({ tree }: Context): void {
  tree.setFilter("");
}
