import { window } from "vscode";

import type { Context } from "../context";

/** Shows or hides all hints of this window, without forgetting them. */
export function toggleHints({ server }: Context): void {
  const isVisible = !server.areHintsVisible;
  server.showHints(isVisible);
  window.setStatusBarMessage(`Shapetrace: hints ${isVisible ? "shown" : "hidden"}`, 3000);
}
