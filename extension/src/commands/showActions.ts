import { commands, type QuickPickItem, window } from "vscode";

import type { Context } from "../context";
import { Command } from "../contributions";
import { currentSummary } from "../status";

interface Action extends QuickPickItem {
  readonly command: Command;
}

/** Offers what can be done just now: what a click on the status bar opens. */
export async function showActions(context: Context): Promise<void> {
  const { pins, server, sessions } = context;
  const { text, details } = currentSummary(context);
  const isOpen = sessions.openSessions.length > 0;
  const actions: readonly (Action | false)[] = [
    sessions.hasTrace && {
      command: Command.showTrace,
      label: "$(list-tree) Show Trace",
      detail: "Modules and ops in the order in which they ran, in Run and Debug",
    },
    {
      command: Command.traceForwardPass,
      label: isOpen ? "$(refresh) Record Everything Again" : "$(symbol-ruler) Trace Forward Pass",
      ...(isOpen ? { detail: "From the next forward pass on" } : {}),
    },
    !isOpen && {
      command: Command.traceForwardPassOf,
      label: "$(list-flat) Trace Forward Pass of...",
    },
    {
      command: Command.toggleHints,
      label: server.areHintsVisible ? "$(eye-closed) Hide Hints" : "$(eye) Show Hints",
    },
    pins.current !== null && {
      command: Command.unpinCall,
      label: "$(pinned) Show All Calls Again",
      detail: `Now only ${pins.current.label} is shown`,
    },
    sessions.hasTrace && { command: Command.clearHints, label: "$(clear-all) Clear Hints" },
    sessions.hasTrace && { command: Command.exportTrace, label: "$(save) Export Trace..." },
    {
      command: Command.selectInterpreter,
      label: "$(symbol-namespace) Select Python Interpreter...",
    },
    { command: Command.restartServer, label: "$(debug-restart) Restart Language Server" },
    { command: Command.showLog, label: "$(output) Show Log" },
    { command: Command.openWalkthrough, label: "$(mortar-board) Open Walkthrough" },
  ];
  const chosen = await window.showQuickPick(
    actions.filter((action) => action !== false),
    { title: `Shapetrace: ${text}`, placeHolder: details.join(" · ") },
  );
  if (chosen !== undefined) {
    await commands.executeCommand(chosen.command);
  }
}
