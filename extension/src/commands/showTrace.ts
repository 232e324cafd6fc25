import { commands } from "vscode";

import { View } from "../contributions";

/** Opens the trace tree, which VS Code shows closed below its own views at first. */
export async function showTrace(): Promise<void> {
  await commands.executeCommand(`${View.trace}.focus`);
}
