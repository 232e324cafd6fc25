/** The status bar: off, waiting, recording or error. A click shows what can be done. */
import {
  type Disposable,
  MarkdownString,
  StatusBarAlignment,
  type StatusBarItem,
  ThemeColor,
  window,
} from "vscode";

import type { Server } from "./client/server";
import { Command } from "./contributions";
import type { Sessions } from "./debug/sessions";
import { type Mood, type Summary, summarize } from "./model/sessionSummary";
import type { Watches } from "./watches";

const ICONS: Readonly<Record<Mood, string>> = {
  off: "$(symbol-ruler)",
  waiting: "$(watch)",
  recording: "$(record)",
  error: "$(warning)",
};

interface Known {
  readonly server: Server;
  readonly sessions: Sessions;
  readonly watches: Watches;
}

export class Status implements Disposable {
  readonly #item: StatusBarItem;
  readonly #disposables: Disposable[];

  constructor(private readonly known: Known) {
    const { server, sessions, watches } = known;
    this.#item = window.createStatusBarItem("shapetrace.status", StatusBarAlignment.Left, 0);
    this.#item.name = "Shapetrace";
    this.#item.command = Command.showActions;
    const update = () => {
      this.#update();
    };
    this.#disposables = [
      this.#item,
      server.onDidChangeState(update),
      sessions.onDidChange(update),
      watches.onDidChange(update),
      window.onDidChangeActiveTextEditor(update),
    ];
    update();
  }

  dispose(): void {
    for (const disposable of this.#disposables) {
      disposable.dispose();
    }
  }

  #update(): void {
    const summary = currentSummary(this.known);
    const { hasTrace } = this.known.sessions;
    this.#item.text = `${ICONS[summary.mood]} Shapes: ${summary.text}`;
    this.#item.accessibilityInformation = { label: `Shapetrace: ${summary.text}` };
    this.#item.tooltip = tooltipOf(summary, hasTrace);
    this.#item.backgroundColor =
      summary.mood === "error" ? new ThemeColor("statusBarItem.warningBackground") : undefined;
    const isPython = window.activeTextEditor?.document.languageId === "python";
    if (isPython || summary.mood !== "off" || hasTrace) {
      this.#item.show();
    } else {
      this.#item.hide();
    }
  }
}

/** The current summary. */
export function currentSummary({ server, sessions, watches }: Known): Summary {
  const { state } = server;
  return summarize(sessions.facts, {
    serverFailure: state.kind === "failed" ? state.reason : undefined,
    watched: watches.wanted,
  });
}

function tooltipOf({ mood, details }: Summary, hasTrace: boolean): MarkdownString {
  const tooltip = new MarkdownString();
  tooltip.isTrusted = { enabledCommands: [Command.showTrace] };
  const lines = details.length > 0 ? details : [HINTS[mood]];
  for (const line of lines) {
    tooltip.appendText(line).appendMarkdown("\n\n");
  }
  if (hasTrace) {
    tooltip.appendMarkdown(`[Show Trace](command:${Command.showTrace})\n\n`);
  }
  return tooltip.appendMarkdown("*Click to see the commands.*");
}

const HINTS: Readonly<Record<Mood, string>> = {
  off: "Trace a forward pass or press F5 to see shapes.",
  waiting: "The program has not called torch yet.",
  recording: "The program is being recorded.",
  error: "There is a problem.",
};
