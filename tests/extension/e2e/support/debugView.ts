import type { Page } from "playwright-core";

import type { CodeView } from "./codeView";
import { takeOffer } from "./offering";
import { eventually, eventuallyEqual, type Patience } from "./waiting";

const RUNNING = "running";

/** The debugger, as its toolbar, call stack and console show it. */
export class DebugView {
  readonly #page: Page;
  readonly #code: CodeView;

  constructor(page: Page, code: CodeView) {
    this.#page = page;
    this.#code = code;
  }

  /** F5: the chosen launch configuration, or on from where the program stands. */
  async start(): Promise<void> {
    await this.#page.keyboard.press("F5");
  }

  /** Starts the launch configuration of that name. */
  async startNamed(name: string): Promise<void> {
    // Files of that name are offered until the editor has taken in what is typed.
    const label = this.#page
      .locator(".quick-input-list .monaco-list-row.focused .label-name")
      .filter({ hasText: new RegExp(`^${name}$`) });
    await takeOffer(this.#page, { key: "Control+P", text: `debug ${name}`, row: label.first() });
  }

  /** By its button, which is there only once the editor knows that the program stands still. */
  async continue(): Promise<void> {
    await this.#page.locator(".debug-toolbar .codicon-debug-continue").click();
  }

  async stepOver(): Promise<void> {
    await this.#page.locator(".debug-toolbar .codicon-debug-step-over:not(.disabled)").click();
  }

  async stepInto(): Promise<void> {
    await this.#page.keyboard.press("F11");
  }

  async stepOut(): Promise<void> {
    await this.#page.keyboard.press("Shift+F11");
  }

  async stop(): Promise<void> {
    await this.#page.locator(".debug-toolbar .codicon-debug-stop").click();
  }

  /** Leaves a program that was attached to, which goes on. */
  async disconnect(): Promise<void> {
    await this.#page.locator(".debug-toolbar .codicon-debug-disconnect").click();
  }

  async isRunning(): Promise<boolean> {
    return this.#page.locator(".debug-toolbar").isVisible();
  }

  async waitUntilRunning(patience?: Patience): Promise<void> {
    await eventually(
      "a debug session runs",
      () => this.isRunning(),
      (runs) => runs,
      patience,
    );
  }

  async waitUntilEnded(patience?: Patience): Promise<void> {
    await eventually(
      "no debug session runs",
      () => this.isRunning(),
      (runs) => !runs,
      patience,
    );
  }

  /** The frames of the stopped thread, innermost first, as `forward, line 12, model.py`. */
  async callStack(): Promise<string[]> {
    const labels = await this.#page
      .locator(".debug-call-stack .monaco-list-row")
      .evaluateAll((rows) => rows.map((row) => row.getAttribute("aria-label") ?? ""));
    return labels
      .filter((label) => label.startsWith("Stack Frame "))
      .map((label) => label.replace("Stack Frame ", ""));
  }

  /** Waits until the program stands in that line, as `forward, line 12, model.py`. */
  async waitUntilStoppedIn(frame: string, patience?: Patience): Promise<void> {
    await eventuallyEqual(() => this.#place(), frame, patience);
  }

  /** Where the program stands once that is elsewhere, as `forward, line 12, model.py`. */
  async waitUntilStoppedElsewhere(before: string, patience?: Patience): Promise<string> {
    return eventually(
      `the program has left ${before} and stopped`,
      () => this.#place(),
      (place) => place !== before && place !== RUNNING,
      patience,
    );
  }

  /** Where the program stands, once the call stack and the editor say the same. */
  async #place(): Promise<string> {
    const line = await this.#code.stoppedLine();
    if (line === undefined) {
      return RUNNING;
    }
    if (!(await this.#page.locator(".debug-call-stack").isVisible())) {
      await this.#page.keyboard.press("Control+Shift+D");
    }
    const [innermost = RUNNING] = await this.callStack();
    const isSame = innermost.endsWith(`, line ${line}, ${await this.#code.fileName()}`);
    return isSame ? innermost : RUNNING;
  }

  /** Looks at another frame of the stopped thread, as `forward, line 12, model.py`. */
  async chooseFrame(frame: string): Promise<void> {
    await this.#page
      .locator(`.debug-call-stack .monaco-list-row[aria-label^="Stack Frame ${frame}"]`)
      .click();
  }

  /** Looks at another one of several programs, by the name of its launch configuration. */
  async chooseSession(name: string): Promise<void> {
    await this.#page
      .locator(".debug-call-stack .monaco-list-row", { hasText: name })
      .first()
      .click({ position: { x: 50, y: 8 } }); // further right there are buttons
  }

  /** What an exception stop says in the editor. Empty if there is none. */
  async exception(): Promise<string> {
    return (await this.#page.locator(".exception-widget").allInnerTexts()).join("\n");
  }

  /** Has the debug console evaluate an expression or run a statement. */
  async evaluate(text: string): Promise<void> {
    await this.#page.locator(".repl-input-wrapper .monaco-editor").click();
    await this.#page.keyboard.insertText(text);
    await this.#page.keyboard.press("Enter");
  }

  /** What the debug console shows. */
  async console(): Promise<string> {
    const rows = await this.#page.locator(".repl .monaco-list-row").allInnerTexts();
    return rows.map((row) => row.trim()).join("\n");
  }
}
