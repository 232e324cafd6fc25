/** The requests of the editor at a stop, for as long as one of our programs is debugged. */
import { Disposable, type DocumentSelector, languages } from "vscode";

import type { Server } from "../client/server";
import type { Focus } from "../debug/focus";
import type { Sessions } from "../debug/sessions";
import type { Log } from "../log";
import { EvaluatableExpressions } from "./evaluatableExpressions";
import { InlineValues } from "./inlineValues";

const PYTHON: DocumentSelector = { language: "python" };

/** The parts of the extension that it uses. */
export interface StoppedEditorContext {
  readonly server: Server;
  readonly focus: Focus;
  readonly sessions: Sessions;
  readonly log: Log;
}

/** Programs that are debugged without us look as they do without us. */
export class StoppedEditor implements Disposable {
  readonly #subscription: Disposable;
  #providers: Disposable | undefined;

  constructor(private readonly context: StoppedEditorContext) {
    this.#subscription = context.sessions.onDidChange(() => {
      this.#update();
    });
  }

  dispose(): void {
    this.#subscription.dispose();
    this.#providers?.dispose();
  }

  #update(): void {
    const { server, focus, sessions, log } = this.context;
    if (sessions.openSessions.length === 0) {
      this.#providers?.dispose();
      this.#providers = undefined;
    } else {
      this.#providers ??= Disposable.from(
        languages.registerEvaluatableExpressionProvider(PYTHON, new EvaluatableExpressions(log)),
        languages.registerInlineValuesProvider(PYTHON, new InlineValues(server, focus, log)),
      );
    }
  }
}
