/** Two traces that were compared: read-only texts in an editor that shows differences. */
import {
  commands,
  type Disposable,
  type Event,
  EventEmitter,
  Position,
  Range,
  type TextDocumentContentProvider,
  TextEditorRevealType,
  Uri,
  ViewColumn,
  window,
  workspace,
} from "vscode";

import type { Compared, ComparedPlace } from "./protocol.generated";
import { differenceAt, positionText, stepped } from "./model/comparison";

/** The scheme of the texts, which no file has. */
const SCHEME = "shapetrace-comparison";

const MESSAGE_MILLISECONDS = 6000;

interface Open {
  readonly compared: Compared;
  readonly left: Uri;
  readonly right: Uri;
  readonly title: string;
  /** Which difference was shown last. */
  position: number;
}

export class Comparisons implements Disposable, TextDocumentContentProvider {
  readonly #changed = new EventEmitter<void>();
  readonly #open = new Map<string, Open>();
  readonly #disposables: Disposable[];
  #number = 0;
  #newest: Open | undefined;

  /** Another comparison is the current one, or none is left. */
  readonly onDidChangeCurrent: Event<void> = this.#changed.event;

  constructor() {
    this.#disposables = [
      this.#changed,
      workspace.registerTextDocumentContentProvider(SCHEME, this),
      workspace.onDidCloseTextDocument(({ uri }) => {
        this.#forget(uri);
      }),
    ];
  }

  /** The comparison that the active editor shows, or else the newest. */
  get current(): Compared | undefined {
    return this.#current()?.compared;
  }

  /** Opens both texts beside each other, at the first difference. */
  async show(compared: Compared, names: readonly [string, string]): Promise<void> {
    this.#number += 1;
    const [left, right] = names.map((name, side) =>
      // As plain text, whatever the trace file's name ends with.
      Uri.from({ scheme: SCHEME, path: `/${this.#number}/${side === 0 ? "A" : "B"} ${name}.txt` }),
    ) as [Uri, Uri];
    const open: Open = { compared, left, right, title: `${names[0]} ↔ ${names[1]}`, position: 0 };
    this.#open.set(left.toString(), open);
    this.#open.set(right.toString(), open);
    this.#newest = open;
    this.#changed.fire();
    await this.#reveal(open, compared.first ?? 0);
  }

  /** Shows one of the differences. */
  async reveal(position: number): Promise<void> {
    const open = this.#current();
    if (open !== undefined) {
      await this.#reveal(open, position);
    }
  }

  /** Shows the difference after the one at the cursor, or before it. */
  async step(direction: 1 | -1): Promise<void> {
    const open = this.#current();
    const many = open?.compared.differences.length ?? 0;
    if (open !== undefined && many > 0) {
      await this.#reveal(open, stepped(this.#position(open), direction, many));
    }
  }

  /** Opens the sources of the difference at the cursor, side by side; false where there are none. */
  async openSources(): Promise<boolean> {
    const open = this.#current();
    const call = open?.compared.differences[this.#position(open)];
    const places = [call?.a, call?.b].filter((place) => place !== null && place !== undefined);
    for (const [index, place] of places.entries()) {
      await showPlace(place, index === 0 ? ViewColumn.One : ViewColumn.Two);
    }
    return places.length > 0;
  }

  provideTextDocumentContent(uri: Uri): string {
    const open = this.#open.get(uri.toString());
    if (open === undefined) {
      return "This comparison is closed. Run Shapetrace: Compare Traces again.\n";
    }
    return uri.toString() === open.left.toString() ? open.compared.left : open.compared.right;
  }

  dispose(): void {
    for (const disposable of this.#disposables) {
      disposable.dispose();
    }
  }

  /** The difference at the cursor: the one that was shown last, unless that was moved. */
  #position({ compared, left, right, position }: Open): number {
    const { differences } = compared;
    const line = (uri: Uri): number | undefined =>
      window.visibleTextEditors.find(({ document }) => document.uri.toString() === uri.toString())
        ?.selection.active.line;
    if (window.activeTextEditor?.document.uri.toString() === left.toString()) {
      return differenceAt(differences, "left", line(left) ?? 0, position);
    }
    return differenceAt(differences, "right", line(right) ?? 0, position);
  }

  #current(): Open | undefined {
    const active = window.activeTextEditor?.document.uri.toString();
    return (active === undefined ? undefined : this.#open.get(active)) ?? this.#newest;
  }

  async #reveal(open: Open, position: number): Promise<void> {
    const { compared, left, right, title } = open;
    open.position = position;
    const call = compared.differences[position];
    const line = new Position(call?.right ?? 0, 0);
    const selection = new Range(line, line);
    await commands.executeCommand("vscode.diff", left, right, title, {
      selection,
      preview: false,
    });
    for (const editor of window.visibleTextEditors) {
      if (editor.document.uri.toString() === right.toString()) {
        editor.revealRange(selection, TextEditorRevealType.InCenter);
      }
    }
    if (call !== undefined) {
      window.setStatusBarMessage(positionText(compared, position), MESSAGE_MILLISECONDS);
    }
  }

  #forget(uri: Uri): void {
    const open = this.#open.get(uri.toString());
    if (open === undefined) {
      return;
    }
    const others = workspace.textDocuments.map((document) => document.uri.toString());
    if (others.includes(open.left.toString()) || others.includes(open.right.toString())) {
      return;
    }
    this.#open.delete(open.left.toString());
    this.#open.delete(open.right.toString());
    if (this.#newest === open) {
      this.#newest = [...this.#open.values()].at(-1);
      this.#changed.fire();
    }
  }
}

async function showPlace({ path, line }: ComparedPlace, viewColumn: ViewColumn): Promise<void> {
  const at = new Position(Math.max(line - 1, 0), 0);
  await window.showTextDocument(Uri.file(path), {
    viewColumn,
    selection: new Range(at, at),
    preview: true,
  });
}
