import type { Locator, Page } from "playwright-core";

import { chooseInContextMenu } from "./offering";
import { eventually, type Patience } from "./waiting";

/** One piece of a rendered line: the file's own text, or something that an extension has put in. */
interface Piece {
  readonly kind: "source" | "hint" | "inlineValue";
  readonly text: string;
}

interface RenderedLine {
  readonly number: number;
  readonly pieces: readonly Piece[];
}

/** A place in the text: the first character of a fragment of a line. */
export interface Place {
  readonly line: number;
  readonly at: string;
}

/** After which a hover that has not come is tried again. */
const HOVER_SECONDS = 2.5;

/** So long the mouse rests elsewhere before that. */
const DETOUR_SECONDS = 0.5;

/** The active text editor, as it is rendered. */
export class CodeView {
  readonly #page: Page;
  readonly #editor: Locator;

  constructor(page: Page) {
    this.#page = page;
    this.#editor = page
      .locator(".part.editor .editor-group-container.active .monaco-editor")
      .first();
  }

  /** The lines on the screen with their hints between « and », as in `y = x + 1«f32[2,3]»`. */
  async text(): Promise<string> {
    const lines = await this.#lines();
    return lines.map(({ pieces }) => pieces.map(annotated).join("").trimEnd()).join("\n");
  }

  /** The lines on the screen that carry hints, by number, as `text` has them. */
  async hintedLines(): Promise<Record<number, string>> {
    const lines = await this.#lines();
    return Object.fromEntries(
      lines
        .filter(({ pieces }) => pieces.some(({ kind }) => kind === "hint"))
        .map(({ number, pieces }) => [number, pieces.map(annotated).join("").trim()]),
    );
  }

  /** The hints on the screen, by line. */
  async hints(): Promise<Record<number, string>> {
    return this.#texts("hint");
  }

  /** What the debugger shows at line ends, by line. */
  async inlineValues(): Promise<Record<number, string>> {
    return this.#texts("inlineValue");
  }

  /** The lines on the screen without anything that was put in. */
  async sourceText(): Promise<string> {
    const lines = await this.#lines();
    return lines.map(sourceOf).join("\n");
  }

  /** What stands above lines, in order. */
  async codeLenses(): Promise<string[]> {
    const lenses = await this.#editor.locator(".codelens-decoration").allInnerTexts();
    return lenses.map(plain).filter((text) => text !== "");
  }

  /** Presses a button above a line, the first of that name. */
  async pressCodeLens(text: string): Promise<void> {
    await this.#editor.locator(".codelens-decoration a", { hasText: text }).first().click();
  }

  /** The line in which the cursor is. */
  async cursorLine(): Promise<number> {
    const shown = this.#page.locator(".statusbar-item[id='status.editor.selection']");
    return Number(/Ln (\d+)/.exec(await shown.innerText())?.[1]);
  }

  /** The file's name in the active tab. */
  async fileName(): Promise<string> {
    const tab = this.#page.locator(".editor-group-container.active .tab.active");
    return (await tab.first().getAttribute("data-resource-name")) ?? "";
  }

  /** The class names of what marks the line at its left, such as breakpoints. */
  async hasBreakpoint(line: number): Promise<boolean> {
    return this.#editor.evaluate((editor, wanted) => {
      const rows = [...editor.querySelectorAll<HTMLElement>(".margin-view-overlays > div")];
      const row = rows.find((it) => it.querySelector(".line-numbers")?.textContent === wanted);
      const glyphs = [...editor.querySelectorAll<HTMLElement>(".glyph-margin-widgets > div")];
      return glyphs.some(
        (it) => it.style.top === row?.style.top && it.className.includes("debug-breakpoint"),
      );
    }, String(line));
  }

  /** The line in which the debugged program stands, if it is in this file. */
  async stoppedLine(): Promise<number | undefined> {
    return this.#editor.evaluate(stoppedLineInPage);
  }

  /** Moves the cursor there; columns begin at 1. */
  async goTo(line: number, column = 1): Promise<void> {
    await this.#page.keyboard.press("Control+G");
    const input = this.#page.locator(".quick-input-widget input:visible");
    await input.fill(`:${line}:${column}`);
    await input.press("Enter");
    await this.#page.locator(".quick-input-widget").waitFor({ state: "hidden" });
    await eventually(
      `the cursor is in line ${line}`,
      () => this.#page.locator(".statusbar-item[id='status.editor.selection']").innerText(),
      (text) => text.includes(`Ln ${line},`),
    );
  }

  /** Puts the cursor behind the last character of a line. */
  async goToEndOf(line: number): Promise<void> {
    await this.goTo(line);
    await this.#page.keyboard.press("End");
  }

  async press(...keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      await this.#page.keyboard.press(key);
    }
  }

  async type(text: string): Promise<void> {
    await this.#page.keyboard.insertText(text);
  }

  /** Undoes every change since the file was saved. */
  async undoAll(): Promise<void> {
    const changed = this.#page.locator(".editor-group-container.active .tab.active.dirty");
    await eventually(
      "every change is undone",
      async () => {
        await this.press("Control+Z");
        return changed.count();
      },
      (count) => count === 0,
    );
  }

  async save(): Promise<void> {
    await this.press("Control+S");
    await this.#page
      .locator(".editor-group-container.active .tab.active:not(.dirty)")
      .first()
      .waitFor();
  }

  /** Puts a breakpoint there, and waits until it is drawn. */
  async toggleBreakpoint(line: number): Promise<void> {
    const before = await this.hasBreakpoint(line);
    await this.goTo(line);
    await this.press("F9");
    await eventually(
      `line ${line} ${before ? "has no" : "has a"} breakpoint`,
      () => this.hasBreakpoint(line),
      (has) => has !== before,
    );
  }

  /** Puts a breakpoint there that stops only when an expression is true. */
  async addConditionalBreakpoint(line: number, condition: string): Promise<void> {
    await this.#addBreakpoint(line, "Add Conditional Breakpoint...", condition);
  }

  /** Puts a breakpoint there that does not stop, but writes a text with expressions in braces. */
  async addLogpoint(line: number, message: string): Promise<void> {
    await this.#addBreakpoint(line, "Add Logpoint...", message);
  }

  async #addBreakpoint(line: number, action: string, text: string): Promise<void> {
    const row = this.#editor.locator(".margin-view-overlays .line-numbers");
    const number = row.getByText(String(line), { exact: true });
    await chooseInContextMenu(this.#page, number, action);
    const widget = this.#page.locator(".breakpoint-widget");
    await widget.locator(".monaco-editor").click();
    await this.#page.keyboard.insertText(text);
    await this.#page.keyboard.press("Enter");
    await widget.waitFor({ state: "hidden" });
    await eventually(
      `line ${line} has a breakpoint`,
      () => this.hasBreakpoint(line),
      (has) => has,
    );
  }

  /** Rests the mouse there, and returns what the hover says. Empty if there is none so soon. */
  async hover(place: Place, { seconds = HOVER_SECONDS }: Patience = {}): Promise<string> {
    const deadline = Date.now() + seconds * 1000;
    for (;;) {
      const point = await this.#jumpTo(place);
      const text = await this.#hoverText(HOVER_SECONDS);
      // What is put in above a line moves it away from under the mouse.
      const { x, y } = await this.#pointOf(place);
      if (text !== "" && x === point.x && y === point.y) {
        return text;
      }
      if (Date.now() > deadline) {
        return "";
      }
      // The debugger's hover does not come again before the mouse has rested elsewhere.
      await this.#jumpTo({ line: await this.#firstLineBut(place.line), at: "" });
      await this.#hoverText(DETOUR_SECONDS);
    }
  }

  /**
   * Goes straight to a place, from outside: an editor asks the debugger at each column on the way,
   * and the oldest one shows nothing at all where it has asked again before there was an answer.
   */
  async #jumpTo(place: Place): Promise<{ x: number; y: number }> {
    await this.#page.mouse.move(0, 0);
    const { x, y } = await this.#pointOf(place);
    await this.#page.mouse.move(x, y);
    return { x, y };
  }

  async #firstLineBut(line: number): Promise<number> {
    const lines = await this.#lines();
    return lines.find((it) => it.number !== line && sourceOf(it) !== "")?.number ?? line;
  }

  async #hoverText(seconds: number): Promise<string> {
    const shown = this.#page
      .locator(".monaco-hover:not(.hidden) .hover-contents:visible")
      .or(this.#page.locator(".debug-hover-widget:visible"));
    try {
      await shown.first().waitFor({ timeout: seconds * 1000 });
    } catch {
      return "";
    }
    return (await shown.allInnerTexts()).map(plain).join("\n");
  }

  async #pointOf({ line, at }: Place): Promise<{ x: number; y: number }> {
    const rendered = await eventually(
      `line ${line} with \`${at}\` is on the screen`,
      () => this.#lines(),
      (lines) => lines.some((it) => it.number === line && sourceOf(it).includes(at)),
    );
    const found = rendered.find(({ number }) => number === line);
    const column = found === undefined ? 0 : sourceOf(found).indexOf(at);
    return this.#editor.evaluate(pointInPage, { line, column });
  }

  async #texts(kind: Piece["kind"]): Promise<Record<number, string>> {
    const texts: Record<number, string> = {};
    for (const { number, pieces } of await this.#lines()) {
      const ofKind = pieces.filter((piece) => piece.kind === kind);
      const text = ofKind
        .map((piece) => piece.text)
        .join("")
        .trim();
      if (text !== "") {
        texts[number] = text;
      }
    }
    return texts;
  }

  async #lines(): Promise<readonly RenderedLine[]> {
    await this.#editor.locator(".view-line").first().waitFor();
    const lines = await this.#editor.evaluate(linesInPage);
    return lines.map(({ number, pieces }) => ({
      number,
      pieces: pieces.map(({ kind, text }) => ({ kind, text: plain(text) })),
    }));
  }
}

/** Spaces as the file has them, and none of those with which the editor keeps hints apart. */
function plain(text: string): string {
  return text.replaceAll("\u00a0", " ").replaceAll("\u200a", "").replaceAll("\u200b", "");
}

function annotated({ kind, text }: Piece): string {
  switch (kind) {
    case "source":
      return text;
    case "hint":
      return text.trim() === "" ? "" : `«${text.trim()}»`;
    case "inlineValue":
      return "";
  }
}

function sourceOf({ pieces }: RenderedLine): string {
  return pieces.map(({ kind, text }) => (kind === "source" ? text : "")).join("");
}

/** Runs in the window: the lines from top to bottom. */
function linesInPage(editor: Element): RenderedLine[] {
  const numbers = new Map<string, number>();
  for (const row of editor.querySelectorAll<HTMLElement>(".margin-view-overlays > div")) {
    const number = row.querySelector(".line-numbers")?.textContent;
    if (number) {
      numbers.set(row.style.top, Number(number));
    }
  }
  return [...editor.querySelectorAll<HTMLElement>(".view-lines > .view-line")]
    .map((line) => ({
      number: numbers.get(line.style.top) ?? 0,
      pieces: [...line.querySelectorAll(":scope > span > span")].map((span): Piece => {
        const kind = span.className.includes("debug-inline-value")
          ? "inlineValue"
          : span.className.includes("dyn-rule")
            ? "hint"
            : "source";
        return { kind, text: span.textContent };
      }),
    }))
    .filter(({ number }) => number > 0)
    .sort((a, b) => a.number - b.number);
}

/** Runs in the window: the number of the line that the debugger marks. */
function stoppedLineInPage(editor: Element): number | undefined {
  const mark = editor.querySelector(
    ".debug-top-stack-frame-line, .debug-focused-stack-frame-line",
  )?.parentElement;
  const rows = [...editor.querySelectorAll<HTMLElement>(".margin-view-overlays > div")];
  const row = rows.find((it) => it.style.top === mark?.style.top);
  const number = row?.querySelector(".line-numbers")?.textContent;
  return mark && number ? Number(number) : undefined;
}

/** Runs in the window: the middle of a character of the file's own text. */
function pointInPage(
  editor: Element,
  { line, column }: { line: number; column: number },
): { x: number; y: number } {
  const rows = [...editor.querySelectorAll<HTMLElement>(".margin-view-overlays > div")];
  const row = rows.find((it) => it.querySelector(".line-numbers")?.textContent === String(line));
  const lines = [...editor.querySelectorAll<HTMLElement>(".view-lines > .view-line")];
  const rendered = lines.find((it) => it.style.top === row?.style.top);
  let left = column;
  for (const span of rendered?.querySelectorAll(":scope > span > span") ?? []) {
    const text = span.firstChild;
    if (text === null || /debug-inline-value|dyn-rule/.test(span.className)) {
      continue;
    }
    const length = text.textContent?.length ?? 0;
    if (left < length) {
      const range = document.createRange();
      range.setStart(text, left);
      range.setEnd(text, left + 1);
      const box = range.getBoundingClientRect();
      return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
    }
    left -= length;
  }
  throw new Error(`line ${line} has no column ${column} on the screen`);
}
