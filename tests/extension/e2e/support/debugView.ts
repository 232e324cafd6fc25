import type { Page } from "playwright-core";

import { eventually, eventuallyEqual, type Patience } from "./waiting";

/** The debugger, as its toolbar, call stack and console show it. */
export class DebugView {
  readonly #page: Page;

  constructor(page: Page) {
    this.#page = page;
  }

  /** F5: the chosen launch configuration, or on from where the program stands. */
  async start(): Promise<void> {
    await this.#page.keyboard.press("F5");
  }

  /** Starts the launch configuration of that name. */
  async startNamed(name: string): Promise<void> {
    await this.#page.keyboard.press("Control+P");
    const input = this.#page.locator(".quick-input-widget input:visible");
    await input.fill(`debug ${name}`);
    await this.#page
      .locator(".quick-input-list .monaco-list-row.focused", { hasText: name })
      .first()
      .waitFor();
    await input.press("Enter");
  }

  async continue(): Promise<void> {
    await this.#page.keyboard.press("F5");
  }

  async stepOver(): Promise<void> {
    await this.#page.keyboard.press("F10");
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
    await eventuallyEqual(
      async () => {
        const stack = await this.callStack();
        const marked = this.#page.locator(
          ".debug-top-stack-frame-line, .debug-focused-stack-frame-line",
        );
        return (await marked.count()) > 0 ? (stack[0] ?? "nowhere") : "running";
      },
      frame,
      patience,
    );
  }

  /** What an exception stop says in the editor. Empty if there is none. */
  async exception(): Promise<string> {
    return (await this.#page.locator(".exception-widget").allInnerTexts()).join("\n");
  }

  /** What the debug console shows. */
  async console(): Promise<string> {
    const rows = await this.#page.locator(".repl .monaco-list-row").allInnerTexts();
    return rows.join("\n");
  }
}
