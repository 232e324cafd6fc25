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
import type { Messages } from "./messages";
import { type DocumentPosition, type Pin, PIN, STEP_CALL } from "./protocol.generated";

/** A new run most often comes to the pinned call at once, and nothing is to flicker. */
const PATIENCE_MILLISECONDS = 1_000;

export class Pins implements Disposable {
  #current: Pin | null = null;
  #timer: NodeJS.Timeout | undefined;
  readonly #changed = new EventEmitter<void>();
  readonly #item = window.createStatusBarItem("shapetrace.pin", StatusBarAlignment.Left, -1);
  readonly #disposables: Disposable[];

  readonly onDidChange: Event<void> = this.#changed.event;

  constructor(
    private readonly server: Server,
    messages: Messages,
  ) {
    this.#item.name = "Shapetrace: Pinned Call";
    this.#item.command = Command.unpinCall;
    this.#disposables = [
      this.#item,
      this.#changed,
      server.onDidChangePin(({ pin, lost }) => {
        this.#set(pin);
        if (lost !== null) {
          void messages.info(`${lost} was pinned but is not in the new run. All calls are shown.`);
        }
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

  /** Shows only the call of a node of the trace tree, or all calls again. */
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
    clearTimeout(this.#timer);
    for (const disposable of this.#disposables) {
      disposable.dispose();
    }
  }

  #set(pin: Pin | null): void {
    if (pin === this.#current) {
      return;
    }
    this.#current = pin;
    clearTimeout(this.#timer);
    if (pin === null) {
      this.#item.hide();
    } else if (pin.isWaiting) {
      this.#timer = setTimeout(() => {
        const told = "the new run has not made this call yet, and all calls are shown";
        this.#show("$(watch)", `${pin.label} is pinned: ${told}`, "unpin it");
      }, PATIENCE_MILLISECONDS);
    } else {
      const told = `Only the shapes of ${pin.label} are shown: ${pin.description}`;
      this.#show("$(pinned)", told, "show all calls");
    }
    this.#changed.fire();
  }

  #show(icon: string, told: string, remedy: string): void {
    const label = this.#current?.label ?? "";
    this.#item.text = `${icon} ${label}`;
    this.#item.accessibilityInformation = { label: `Shapetrace: ${label} is pinned` };
    this.#item.tooltip = new MarkdownString()
      .appendText(told)
      .appendMarkdown(`\n\n*Click to ${remedy}.*`);
    this.#item.show();
  }
}
