/** Which call is pinned, and its entry in the status bar. */
import {
  type Disposable,
  type Event,
  EventEmitter,
  MarkdownString,
  StatusBarAlignment,
  window,
} from "vscode";

import type { Server } from "./client/server";
import { Command } from "./contributions";
import { type DocumentPosition, type Pin, PIN, STEP_CALL } from "./protocol";

export class Pins implements Disposable {
  #current: Pin | null = null;
  readonly #changed = new EventEmitter<void>();
  readonly #item = window.createStatusBarItem("shapetrace.pin", StatusBarAlignment.Left, -1);
  readonly #disposables: Disposable[];

  readonly onDidChange: Event<void> = this.#changed.event;

  constructor(private readonly server: Server) {
    this.#item.name = "Shapetrace: Pinned Call";
    this.#item.command = Command.unpinCall;
    this.#disposables = [
      this.#item,
      this.#changed,
      server.onDidChangePin((pin) => {
        this.#set(pin);
      }),
      server.onDidChangeState(({ kind }) => {
        if (kind !== "running") {
          this.#set(null); // Another server knows nothing of it.
        }
      }),
    ];
  }

  /** The call whose shapes alone are shown. */
  get current(): Pin | null {
    return this.#current;
  }

  /** Shows only the call that a node of the trace tree stands for, or all of them again. */
  async pin(node: string | null): Promise<Pin | null> {
    const pinned = await this.server.requestIfRunning(PIN, { node });
    return pinned?.pin ?? null;
  }

  /** Shows the call of a line that was made before or after the one that is shown. */
  async step(position: DocumentPosition, direction: 1 | -1): Promise<Pin | null> {
    const pinned = await this.server.requestIfRunning(STEP_CALL, { ...position, direction });
    return pinned?.pin ?? null;
  }

  dispose(): void {
    for (const disposable of this.#disposables) {
      disposable.dispose();
    }
  }

  #set(pin: Pin | null): void {
    if (pin === this.#current) {
      return;
    }
    this.#current = pin;
    if (pin === null) {
      this.#item.hide();
    } else {
      this.#item.text = `$(pinned) ${pin.label}`;
      this.#item.accessibilityInformation = { label: `Shapetrace: ${pin.label} is pinned` };
      this.#item.tooltip = new MarkdownString()
        .appendText(`Only the shapes of ${pin.label} are shown: ${pin.description}`)
        .appendMarkdown("\n\n*Click to show all calls.*");
      this.#item.show();
    }
    this.#changed.fire();
  }
}
