/** Starting the language server before it is needed, where it is likely to be needed. */
import { type Disposable, type TextDocument, workspace } from "vscode";

import { importsTorch } from "../model/imports";
import type { Server } from "./server";

/** VS Code has enough to do while it starts. */
const DELAY_MILLISECONDS = 1_500;

/** Starts the server in the background once a file that imports torch is open, and rests then. */
export class HeadStart implements Disposable {
  readonly #subscriptions: Disposable[];
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly server: Server) {
    this.#subscriptions = [
      workspace.onDidOpenTextDocument((document) => {
        this.#consider([document]);
      }),
      workspace.onDidGrantWorkspaceTrust(() => {
        this.#consider(workspace.textDocuments);
      }),
    ];
    this.#consider(workspace.textDocuments);
  }

  dispose(): void {
    clearTimeout(this.#timer);
    for (const subscription of this.#subscriptions.splice(0)) {
      subscription.dispose();
    }
  }

  #consider(documents: readonly TextDocument[]): void {
    if (workspace.isTrusted && documents.some(hasShapes)) {
      this.#timer ??= setTimeout(() => {
        this.dispose();
        void this.server.startInBackground();
      }, DELAY_MILLISECONDS);
    }
  }
}

function hasShapes(document: TextDocument): boolean {
  return document.languageId === "python" && importsTorch(document.getText());
}
