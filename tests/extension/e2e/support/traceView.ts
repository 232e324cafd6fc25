import type { Locator, Page } from "playwright-core";

import { chooseInContextMenu } from "./offering";
import { arrangePanes } from "./panes";
import { unfold } from "./unfolding";
import { eventually } from "./waiting";

/** After which a tooltip that has not come is tried again. */
const TOOLTIP_MILLISECONDS = 4_000;

const CALL_STACK_PIXELS = 200;

/** The trace tree in the Run and Debug side bar. */
export class TraceView {
  readonly #page: Page;
  readonly #pane: Locator;

  constructor(page: Page) {
    this.#page = page;
    this.#pane = page.locator(".pane", {
      has: page.locator(".pane-header[aria-label^='Trace']"),
    });
  }

  /**
   * Brings the side bar to the front, opens the tree, and closes what would leave it no room; the
   * call stack, too, where that is not needed any more.
   */
  async show({ keepsCallStack = true } = {}): Promise<void> {
    if (!(await this.#pane.isVisible())) {
      await this.#page.keyboard.press("Control+Shift+D");
      await this.#pane.waitFor();
    }
    await arrangePanes(this.#page, (title, isOpen) =>
      title.startsWith("Call Stack") && keepsCallStack ? isOpen : title.startsWith("Trace"),
    );
    await this.#takeRoom();
  }

  /** Leaves no more than a few rows to the call stack, by the mouse, as a person would. */
  async #takeRoom(): Promise<void> {
    const header = this.#page.locator(
      ".part.sidebar .pane-header.expanded[aria-label^='Call Stack']",
    );
    const pane = this.#page.locator(".part.sidebar .pane", { has: header });
    const box = (await pane.count()) === 0 ? null : await pane.boundingBox();
    if (box !== null && box.height > CALL_STACK_PIXELS) {
      const { mouse } = this.#page;
      await mouse.move(box.x + box.width / 2, box.y + box.height);
      await mouse.down();
      await mouse.move(box.x + box.width / 2, box.y + CALL_STACK_PIXELS, { steps: 2 });
      await mouse.up();
    }
  }

  /** The nodes on the screen: `  blocks.0: f32[2,8] → f32[2,8]`, deeper ones further right. */
  async rows(): Promise<string[]> {
    // Functions with names would not survive the way into the page.
    const rows = await this.#rows().evaluateAll((found) =>
      found.map((row) => ({
        top: Number.parseFloat(row.style.top),
        level: Number(row.getAttribute("aria-level") ?? "1"),
        label: row.querySelector(".label-name")?.textContent ?? "",
        more: row.querySelector(".label-description")?.textContent ?? "",
        isSelected: row.classList.contains("selected"),
        isPinned: row.querySelector(".codicon-pinned") !== null,
      })),
    );
    return rows
      .sort((one, other) => one.top - other.top)
      .map(({ level, label, more, isSelected, isPinned }) => {
        const marks = `${isSelected ? "> " : ""}${label}${isPinned ? " (pinned)" : ""}`;
        return `${"  ".repeat(level - 1)}${marks}${more === "" ? "" : `: ${more}`}`;
      });
  }

  /** What stands before a node: the name of an icon, or the beginning of a picture's address. */
  async icon(label: string): Promise<string> {
    const icon = this.#row(label).locator(".custom-view-tree-node-item-icon");
    return icon.evaluate((element) => {
      const picture = getComputedStyle(element).backgroundImage;
      const named = [...element.classList].find((it) => it.startsWith("codicon-"));
      return named ?? /url\("(data:[^,]*)/.exec(picture)?.[1] ?? picture;
    });
  }

  /**
   * Rests the mouse on a node, and returns the tooltip with the widths of the pictures in it. Empty
   * if there is none so soon.
   */
  async tooltip(label: string): Promise<string> {
    const shown = this.#page.locator(".monaco-hover:visible");
    await this.#page.mouse.move(0, 0);
    await this.#row(label).locator(".label-name").hover();
    try {
      await shown.first().waitFor({ timeout: TOOLTIP_MILLISECONDS });
    } catch {
      return "";
    }
    return shown.first().evaluate((element) => {
      const widths = [...element.querySelectorAll("img")].map((it) => `[${it.naturalWidth}]`);
      return `${(element as HTMLElement).innerText} ${widths.join(" ")}`;
    });
  }

  /** Waits until a node is there, and returns all that are. */
  async waitFor(row: string | RegExp): Promise<string[]> {
    return eventually(
      `the tree shows ${String(row)}`,
      () => this.rows(),
      (rows) => rows.some((it) => (typeof row === "string" ? it.trim() === row : row.test(it))),
    );
  }

  /** Closes the view, or opens it again. */
  async toggle(): Promise<void> {
    await this.#pane.locator(".pane-header").click({ position: { x: 60, y: 10 } });
  }

  /** Brings the last of the rows that were loaded onto the screen. */
  async scrollToEnd(): Promise<void> {
    await this.#scroll("End");
  }

  /** Brings the first row onto the screen. */
  async scrollToStart(): Promise<void> {
    await this.#scroll("Home");
  }

  async #scroll(key: "Home" | "End"): Promise<void> {
    await this.#pane.locator(".monaco-list").first().focus();
    await this.#page.keyboard.press(key);
  }

  /** Shows what is below a node, if that is not shown already. */
  async expand(label: string): Promise<void> {
    await unfold(this.#row(label), true);
  }

  /** Hides what is below a node. */
  async collapse(label: string): Promise<void> {
    await unfold(this.#row(label), false);
  }

  async click(label: string): Promise<void> {
    await this.#row(label).locator(".label-name").click();
  }

  /** Presses a button that appears at the end of a node. */
  async press(label: string, action: string): Promise<void> {
    const row = this.#row(label);
    await row.hover();
    // Behind its name may stand a key.
    await row.locator(`.action-label[aria-label^='${action}']`).click();
  }

  /** Opens the menu of a node, and chooses an entry. */
  async chooseInMenu(label: string, action: string): Promise<void> {
    await chooseInContextMenu(this.#page, this.#row(label), action);
  }

  /** Presses a button above the tree. */
  async pressAbove(action: string): Promise<void> {
    await this.#pane.locator(".pane-header").hover();
    await this.#pane.locator(`.pane-header .action-label[aria-label^='${action}']`).click();
  }

  /** What is said in place of a tree. */
  async welcome(): Promise<string> {
    const shown = this.#pane.locator(".welcome-view-content:visible, .message:visible");
    return (await shown.allInnerTexts()).join("\n").trim();
  }

  /** Presses a button of what is said in place of a tree. */
  async pressInWelcome(button: string): Promise<void> {
    await this.#pane.locator(".monaco-button", { hasText: button }).click();
  }

  #rows(): Locator {
    return this.#pane.locator(".monaco-list-row[role='treeitem']");
  }

  #row(label: string): Locator {
    const name = this.#page.locator(".label-name").getByText(label, { exact: true });
    return this.#rows().filter({ has: name }).first();
  }
}
