/** Says once that VS Code is set not to show any inlay hints, when there are some to show. */
import { ConfigurationTarget, type Disposable, window, workspace } from "vscode";

import type { Sessions } from "../debug/sessions";
import type { Memory } from "../memory";

export class InlayHintsNotice implements Disposable {
  readonly #subscription: Disposable;

  constructor(
    sessions: Sessions,
    private readonly memory: Memory,
  ) {
    this.#subscription = sessions.onDidReport(({ status }) => {
      if (status.calls > 0) {
        void this.#check();
      }
    });
  }

  dispose(): void {
    this.#subscription.dispose();
  }

  async #check(): Promise<void> {
    const settings = workspace.getConfiguration("editor", { languageId: "python" });
    const mode = settings.get<string>("inlayHints.enabled");
    if ((mode !== "off" && mode !== "offUnlessPressed") || this.memory.hasSeenHintsNotice) {
      return;
    }
    await this.memory.rememberHintsNotice();
    const enable = "Show Hints in Python";
    const text =
      "Shapes are recorded, but inlay hints are off in your settings " +
      `(editor.inlayHints.enabled: ${mode}). Hovers show the shapes.`;
    if ((await window.showInformationMessage(text, enable)) === enable) {
      await settings.update("inlayHints.enabled", "on", ConfigurationTarget.Global, true);
    }
  }
}
