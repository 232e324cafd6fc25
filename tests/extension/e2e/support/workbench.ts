import type { BrowserContext, Locator, Page } from "playwright-core";

import { CodeView } from "./codeView";
import { DiffView } from "./diffView";
import { DebugView } from "./debugView";
import { takeOffer } from "./offering";
import { TraceView } from "./traceView";
import { ValuesView } from "./valuesView";
import { eventually, PATIENCE_SECONDS } from "./waiting";

/** One window of the editor, as a person sees and uses it. */
export class Workbench {
  readonly page: Page;
  readonly code: CodeView;
  readonly debug: DebugView;
  readonly diff: DiffView;
  readonly trace: TraceView;
  readonly variables: ValuesView;
  readonly watch: ValuesView;
  /** What the window's own code has written to the browser's console. */
  readonly consoleLines: string[] = [];
  readonly #quickInput: Locator;

  private constructor(page: Page) {
    this.page = page;
    this.code = new CodeView(page);
    this.debug = new DebugView(page, this.code);
    this.diff = new DiffView(page);
    this.trace = new TraceView(page);
    this.variables = new ValuesView(page, "variables");
    this.watch = new ValuesView(page, "watch");
    this.#quickInput = page.locator(".quick-input-widget:visible");
    page.on("console", (message) => this.consoleLines.push(message.text()));
    page.on("dialog", (dialog) => void dialog.accept());
  }

  /** Opens a window at an address of the server, and waits until it can be used. */
  static async open(context: BrowserContext, address: string): Promise<Workbench> {
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_SECONDS * 1000);
    const workbench = new Workbench(page);
    await page.goto(address);
    await page.locator(".monaco-workbench .part.statusbar .statusbar-item").first().waitFor();
    return workbench;
  }

  /** Closes the window as a person would, so that the server ends what ran for it. */
  async close(): Promise<void> {
    const closed = this.page.waitForEvent("close");
    await this.page.close({ runBeforeUnload: true });
    await closed;
  }

  /** Runs a command by its title in the palette, such as `Shapetrace: Clear Hints`. */
  async run(title: string): Promise<void> {
    const row = this.#quickInput.locator(".monaco-list-row.focused", {
      has: this.page.getByText(title, { exact: true }),
    });
    await takeOffer(this.page, { key: "F1", text: `>${title}`, row: row.first() });
  }

  /** Opens a file by its absolute path, and waits until its text is there. */
  async openFile(path: string): Promise<void> {
    const name = path.slice(path.lastIndexOf("/") + 1);
    const row = this.#quickInput.locator(".monaco-list-row.focused .label-name", { hasText: name });
    await takeOffer(this.page, { key: "Control+P", text: path, row: row.first() });
    await eventually(
      `${name} is in the active editor`,
      () => this.code.fileName().catch(() => ""),
      (shown) => shown === name,
    );
    await this.code.sourceText();
    if (name.endsWith(".py")) {
      // Without debuggers, F5 only opens a view.
      await eventually(
        "the extension is active",
        () => this.status(),
        (status) => status !== "",
      );
    }
  }

  /** Chooses an entry of the list that the editor asks with. */
  async choose(label: string): Promise<void> {
    const row = this.#quickInput.locator(".monaco-list-row", { hasText: label }).first();
    await row.waitFor();
    await row.click();
  }

  /** Types an answer into the box that the editor asks with. */
  async answer(text: string): Promise<void> {
    const input = this.#quickInput.locator("input");
    await input.waitFor();
    await input.fill(text);
    await input.press("Enter");
    await this.#quickInput.waitFor({ state: "hidden" });
  }

  /** Types an answer that is not taken, for the reason that the editor then gives. */
  async answerBadly(text: string, reason: RegExp): Promise<void> {
    await this.#quickInput.locator("input").fill(text);
    await eventually(
      `the editor says ${String(reason)}`,
      () => this.#quickInput.locator(".quick-input-message").innerText(),
      (said) => reason.test(said),
    );
  }

  /** Takes what is ticked in the list. */
  async accept(): Promise<void> {
    await this.page.keyboard.press("Enter");
    await this.#quickInput.waitFor({ state: "hidden" });
  }

  /** What the editor offers in the list that it asks with. */
  async choices(): Promise<string[]> {
    return (await this.#choiceTexts("")).map((text) => text.replace(/\s+/g, " "));
  }

  /** The same without what is said of each. */
  async choiceLabels(): Promise<string[]> {
    return this.#choiceTexts(" .label-name");
  }

  /** A list draws its rows one by one, in any order: what is read may not be all of it yet. */
  async #choiceTexts(part: string): Promise<string[]> {
    const texts = this.#quickInput.locator(`.monaco-list-row${part}`);
    const found = await texts.evaluateAll((elements) =>
      elements.map((element) => ({
        text: (element as HTMLElement).innerText,
        index: Number(element.closest("[data-index]")?.getAttribute("data-index")),
      })),
    );
    return found.sort((one, other) => one.index - other.index).map(({ text }) => text.trim());
  }

  /** Answers the editor's own dialog for files, once it has filled itself in. */
  async saveAs(title: string, path: string): Promise<void> {
    const dialog = this.#quickInput.filter({ hasText: title });
    const input = dialog.locator("input");
    const ready = dialog.locator(".monaco-list-row").first();
    await ready.waitFor();
    await eventually(
      "the dialog proposes a file",
      () => input.inputValue(),
      (value) => /[^/]$/.test(value),
    );
    await input.fill(path);
    await eventually(
      "the dialog has taken the file",
      () => input.inputValue(),
      (value) => value === path,
    );
    await dialog.getByText("OK", { exact: true }).click();
    await dialog.waitFor({ state: "hidden" });
  }

  /** Names the file in the dialog that asks which one to open. */
  async openAs(title: string, path: string): Promise<void> {
    const dialog = this.#quickInput.filter({ hasText: title });
    const input = dialog.locator("input").first();
    await dialog.locator(".monaco-list-row").first().waitFor();
    await input.fill(path);
    await eventually(
      "the dialog has taken the file",
      () => input.inputValue(),
      (value) => value === path,
    );
    await dialog.getByText("Compare", { exact: true }).click();
    await dialog.waitFor({ state: "hidden" });
  }

  /** The names on the tabs of all editors. */
  async tabs(): Promise<string[]> {
    const tabs = this.page.locator(".tabs-container .tab");
    return tabs.evaluateAll((all) =>
      all.map((tab) => tab.getAttribute("data-resource-name") ?? ""),
    );
  }

  /** The entries of the status bar, as read aloud. */
  async statusBar(): Promise<string[]> {
    const items = this.page.locator(".part.statusbar .statusbar-item");
    return (await items.allInnerTexts()).map((text) => text.trim()).filter((text) => text !== "");
  }

  /** Presses an entry of the status bar. */
  async pressInStatusBar(text: string): Promise<void> {
    await this.page.locator(".part.statusbar .statusbar-item", { hasText: text }).click();
  }

  /** Our entry in the status bar as it is read aloud, or an empty text. */
  async status(): Promise<string> {
    const item = this.page.locator(".statusbar-item[id='shapetrace.shapetrace.shapetrace.status']");
    return (await item.count()) === 0 ? "" : ((await item.getAttribute("aria-label")) ?? "");
  }

  /** The messages on the screen, each with its buttons: `Text [Button] [Button]`. */
  async notifications(): Promise<string[]> {
    return this.page.locator(".notifications-toasts .notification-list-item").evaluateAll((items) =>
      items.map((item) => {
        const message = item.querySelector(".notification-list-item-message")?.textContent ?? "";
        const buttons = [...item.querySelectorAll(".monaco-button")].map((it) => it.textContent);
        return [message, ...buttons.map((text) => `[${text}]`)].join(" ");
      }),
    );
  }

  /** Waits for a message with that text, and returns it with its buttons. */
  async notification(text: string | RegExp): Promise<string> {
    const isMeant = (message: string): boolean =>
      typeof text === "string" ? message.includes(text) : text.test(message);
    const shown = await eventually(
      `a message says ${String(text)}`,
      () => this.notifications(),
      (messages) => messages.some(isMeant),
    );
    return shown.find(isMeant) ?? "";
  }

  /** Presses a button of a message. */
  async pressInNotification(button: string): Promise<void> {
    await this.page
      .locator(".notifications-toasts .monaco-button", { hasText: button })
      .first()
      .click();
  }

  async closeNotifications(): Promise<void> {
    await this.run("Notifications: Clear All Notifications");
    await eventually(
      "no message is on the screen",
      () => this.notifications(),
      (messages) => messages.length === 0,
    );
  }

  /** Trusts the folder, in the page that manages that. */
  async trustFolder(): Promise<void> {
    const page = this.page.locator(".workspace-trust-editor");
    await page.getByRole("button", { name: "Trust", exact: true }).first().click();
    await page.getByText("You trust this folder").first().waitFor();
  }

  /** The text of the window in front of everything, or an empty text. */
  async dialog(): Promise<string> {
    return (await this.page.locator(".monaco-dialog-box").allInnerTexts()).join("\n");
  }

  async pressInDialog(button: string): Promise<void> {
    await this.page.locator(".monaco-dialog-box .monaco-button", { hasText: button }).click();
  }

  /** Brings the terminal to the front. */
  async showTerminal(): Promise<void> {
    await this.page.locator(".part.panel .action-label[aria-label^='Terminal']").click();
    await this.page.locator(".terminal-wrapper.active").waitFor();
  }

  /** What the visible terminal shows. */
  async terminal(): Promise<string> {
    const rows = await this.page
      .locator(".terminal-wrapper.active .xterm-rows > div")
      .allInnerTexts();
    return rows.map((row) => row.replaceAll("\u00a0", " ").trimEnd()).join("\n");
  }

  /** Gives the editor all of the window: no side bar, no panel. */
  async hideEverythingElse(): Promise<void> {
    for (const [part, key] of [
      ["sidebar", "Control+B"],
      ["panel", "Control+J"],
    ] as const) {
      const place = this.page.locator(`.part.${part}:visible`);
      if ((await place.count()) > 0) {
        await this.page.keyboard.press(key);
        await place.waitFor({ state: "hidden" });
      }
    }
  }

  async screenshot(file: string): Promise<void> {
    await this.page.screenshot({ path: file });
  }
}
