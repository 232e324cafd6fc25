/** A status bar item that points to the trace tree, until the user has opened it once. */
import { type Disposable, StatusBarAlignment, window } from "vscode";

import { Command } from "../contributions";
import type { Sessions } from "../debug/sessions";
import type { Memory } from "../memory";
import type { TraceTree } from "./traceTree";

/** VS Code keeps views that it does not know closed, below its own and maybe out of sight. */
export class TraceNotice implements Disposable {
  readonly #item = window.createStatusBarItem("shapetrace.trace", StatusBarAlignment.Left, -0.5);
  readonly #subscriptions: readonly Disposable[];

  constructor(
    private readonly sessions: Sessions,
    private readonly tree: TraceTree,
    private readonly memory: Memory,
  ) {
    this.#item.name = "Shapetrace: Show Trace";
    this.#item.text = "$(list-tree) Show Trace";
    this.#item.tooltip = "Modules and ops in the order in which they ran, in Run and Debug";
    this.#item.command = Command.showTrace;
    const update = () => {
      void this.#update();
    };
    this.#subscriptions = [sessions.onDidChange(update), tree.onDidChangeState(update)];
  }

  dispose(): void {
    for (const disposable of [...this.#subscriptions, this.#item]) {
      disposable.dispose();
    }
  }

  async #update(): Promise<void> {
    if (this.sessions.hasTrace && !this.tree.isVisible && !this.memory.hasSeenTrace) {
      this.#item.show();
      return;
    }
    this.#item.hide();
    if (this.sessions.hasTrace && this.tree.isVisible && !this.memory.hasSeenTrace) {
      await this.memory.rememberSeenTrace();
    }
  }
}
