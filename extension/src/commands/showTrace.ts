import { commands } from "vscode";

import { View } from "../contributions";

/** Opens the trace tree. VS Code keeps it closed below its own views until somebody does. */
export async function showTrace(): Promise<void> {
  await commands.executeCommand(`${View.trace}.focus`);
}
