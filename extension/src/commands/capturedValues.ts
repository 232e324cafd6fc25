import { type QuickPickItem, window } from "vscode";

import type { Context } from "../context";

interface Choice extends QuickPickItem {
  readonly path: string;
}

/** Shows what is captured; what is not ticked any more is captured no longer. */
export async function capturedValues({ captures, messages }: Context): Promise<void> {
  const paths = captures.wanted;
  if (paths.length === 0) {
    void messages.info(
      "No values are captured. Put the cursor on a variable or module and run Capture Values.",
    );
    return;
  }
  const choices = paths.map((path): Choice => ({ path, label: path, picked: true }));
  const kept = await window.showQuickPick(choices, {
    canPickMany: true,
    title: "Captured Values",
    placeHolder: "Ticked paths are captured from the next run on",
  });
  if (kept !== undefined) {
    // Others may have been added meanwhile.
    const dropped = new Set(paths.filter((path) => !kept.some((each) => each.path === path)));
    await captures.set(captures.wanted.filter((path) => !dropped.has(path)));
  }
}
