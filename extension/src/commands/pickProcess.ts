import { window } from "vscode";

import type { Context } from "../context";
import { programOf, pythonProcesses } from "../model/processList";
import { allProcesses } from "../processes";

/** Asks for a running Python program; its id as a text, for `"processId": "${command:pickProcess}"`. */
export async function pickProcess({ messages }: Context): Promise<string | undefined> {
  const found = pythonProcesses(await allProcesses());
  if (found.length === 0) {
    await messages.warn("No Python program is running to attach to.");
    return undefined;
  }
  const items = found.map((process) => ({
    label: programOf(process),
    description: String(process.id),
    detail: process.command,
  }));
  const chosen = await window.showQuickPick(items, {
    title: "Attach to a Python Program",
    placeHolder: "The program to attach to",
    matchOnDescription: true,
    matchOnDetail: true,
  });
  return chosen?.description;
}
