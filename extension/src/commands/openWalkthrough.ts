import { commands } from "vscode";

import type { Context } from "../context";
import { WALKTHROUGH } from "../contributions";

/** Opens the walkthrough. */
export async function openWalkthrough({ extension }: Context): Promise<void> {
  const id = `${extension.extension.id}#${WALKTHROUGH}`;
  await commands.executeCommand("workbench.action.openWalkthrough", id, false);
}
