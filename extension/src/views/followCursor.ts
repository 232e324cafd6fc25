/** Has the trace tree show what was made where the cursor is. */
import { type Disposable, type Event, EventEmitter, type TextEditor, window } from "vscode";

import type { Focus } from "../debug/focus";
import { type Log, messageOf } from "../log";
import type { Memory } from "../memory";
import type { TraceTree } from "./traceTree";

/** The cursor may still be on its way. */
const REST_MILLISECONDS = 100;

export class FollowCursor implements Disposable {
  readonly #changed = new EventEmitter<void>();
  readonly #disposables: Disposable[];
  #timer: NodeJS.Timeout | undefined;

  readonly onDidChange: Event<void> = this.#changed.event;

  constructor(
    private readonly tree: TraceTree,
    focus: Focus,
    private readonly memory: Memory,
    private readonly log: Log,
  ) {
    this.#disposables = [
      this.#changed,
      window.onDidChangeTextEditorSelection(({ textEditor }) => {
        this.#follow(textEditor);
      }),
      window.onDidChangeActiveTextEditor((editor) => {
        this.#follow(editor);
      }),
      focus.onDidStand(() => {
        this.tree.leaveSelected();
        this.#follow(window.activeTextEditor);
      }),
      tree.onDidChangeState(() => {
        this.#follow(window.activeTextEditor);
      }),
    ];
  }

  get isFollowing(): boolean {
    return this.memory.followsCursor;
  }

  async setFollowing(isFollowing: boolean): Promise<void> {
    await this.memory.rememberFollowing(isFollowing);
    this.#changed.fire();
    this.#follow(window.activeTextEditor);
  }

  dispose(): void {
    clearTimeout(this.#timer);
    for (const disposable of this.#disposables) {
      disposable.dispose();
    }
  }

  #follow(editor: TextEditor | undefined): void {
    clearTimeout(this.#timer);
    if (editor?.document.languageId === "python" && this.tree.isVisible && this.isFollowing) {
      this.#timer = setTimeout(() => {
        void this.#reveal(editor);
      }, REST_MILLISECONDS);
    }
  }

  async #reveal({ document, selection }: TextEditor): Promise<void> {
    const { line, character } = selection.start;
    try {
      await this.tree.revealCallAt(document.uri.toString(), line, character);
    } catch (error) {
      this.log.debug(`trace tree: nothing to follow: ${messageOf(error)}`);
    }
  }
}
