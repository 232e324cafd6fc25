import { ProgressLocation, window } from "vscode";

import type { Context } from "../context";

/** Restarts the language server; running programs connect to it again. */
export async function restartServer({ messages, server }: Context): Promise<void> {
  await window.withProgress(
    { location: ProgressLocation.Window, title: "Restarting Shapetrace's server" },
    () => server.restart(),
  );
  void messages.info("Shapetrace's language server has been restarted.");
}
