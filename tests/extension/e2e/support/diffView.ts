import type { Locator, Page } from "playwright-core";

/** An editor that shows two texts beside each other, with what differs marked. */
export class DiffView {
  readonly #editor: Locator;

  constructor(page: Page) {
    this.#editor = page.locator(".editor-instance .monaco-diff-editor.side-by-side:visible");
  }

  /** The lines on the screen of the text on the left. */
  async left(): Promise<string> {
    return this.#text(".editor.original");
  }

  /** The same on the right. */
  async right(): Promise<string> {
    return this.#text(".editor.modified");
  }

  /** How many lines on the left are marked as gone or changed. */
  async marked(): Promise<number> {
    return this.#editor.locator(".editor.original .line-delete").count();
  }

  async #text(side: string): Promise<string> {
    const lines = await this.#editor
      .locator(`${side} .view-lines > .view-line`)
      .evaluateAll((all) =>
        all
          .map((line) => ({
            top: parseFloat((line as HTMLElement).style.top),
            text: line.textContent,
          }))
          .sort((one, other) => one.top - other.top)
          .map(({ text }) => text),
      );
    return lines.join("\n").replaceAll("\u00a0", " ");
  }
}
