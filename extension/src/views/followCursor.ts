/** Has the trace tree show what was made where the cursor is, or where the program has stopped. */
import { posix, win32 } from "node:path";

import {
  type Disposable,
  type Event,
  EventEmitter,
  Position,
  type TextEditor,
  window,
} from "vscode";

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
    private readonly focus: Focus,
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
      focus.onDidFocus(({ file, line }) => {
        this.tree.leaveSelected();
        const editor = window.activeTextEditor;
        // A file that is still to be opened is followed when the cursor comes there.
        if (editor !== undefined && isOf(editor, file)) {
          this.#follow(editor, new Position(line - 1, 0));
        }
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

  #follow(editor: TextEditor | undefined, place?: Position): void {
    if (editor?.document.languageId === "python" && this.tree.isVisible && this.isFollowing) {
      clearTimeout(this.#timer);
      const timer = setTimeout(() => {
        const isWanted = () => timer === this.#timer && this.isFollowing;
        void this.#reveal(editor, place ?? editor.selection.start, isWanted);
      }, REST_MILLISECONDS);
      this.#timer = timer;
    }
  }

  async #reveal(
    { document }: TextEditor,
    { line, character }: Position,
    isWanted: () => boolean,
  ): Promise<void> {
    try {
      // The cursor is at the line of a stop before it is known which call that is in.
      await this.focus.settled();
      if (!isWanted()) {
        return; // Another place is shown by now.
      }
      await this.tree.revealCallAt(document.uri.toString(), line, character);
    } catch (error) {
      this.log.debug(`trace tree: nothing to follow: ${messageOf(error)}`);
    }
  }
}

/** Whether a file is the one in an editor, as far as its name tells. */
function isOf({ document }: TextEditor, file: string): boolean {
  return posix.basename(document.uri.path) === win32.basename(file);
}
