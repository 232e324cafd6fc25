import type { Locator, Page } from "playwright-core";

import { eventually } from "./waiting";

/** The Variables pane in the Run and Debug side bar. */
export class VariablesView {
  readonly #page: Page;
  readonly #pane: Locator;

  constructor(page: Page) {
    this.#page = page;
    this.#pane = page.locator(".pane", {
      has: page.locator(".pane-header[aria-label^='Variables']"),
    });
  }

  /** Opens the pane with its first scope, and closes what would leave it no room. */
  async show(): Promise<void> {
    for (const header of await this.#page.locator(".part.sidebar .pane-header").all()) {
      const label = (await header.getAttribute("aria-label")) ?? "";
      const isOpen = (await header.getAttribute("aria-expanded")) === "true";
      if (label.startsWith("Variables") ? !isOpen : isOpen) {
        await header.click({ position: { x: 60, y: 10 } });
      }
    }
    const scope = this.#rows().first();
    await scope.waitFor();
    if ((await scope.getAttribute("aria-expanded")) === "false") {
      await scope.locator(".monaco-tl-twistie").click();
    }
  }

  /** What is on the screen: `  x = f32[2,4]`, what is below another value further right. */
  async rows(): Promise<string[]> {
    const rows = await this.#rows().evaluateAll((found) =>
      found.map((row) => ({
        top: Number.parseFloat(row.style.top),
        level: Number(row.getAttribute("aria-level") ?? "1"),
        name: row.querySelector(".name")?.textContent ?? row.textContent,
        value: row.querySelector(".value")?.textContent ?? "",
      })),
    );
    return rows
      .sort((one, other) => one.top - other.top)
      .map(({ level, name, value }) => {
        const text = name.replace(/\s*=?\s*$/, "");
        return `${"  ".repeat(Math.max(level - 2, 0))}${text}${value === "" ? "" : ` = ${value}`}`;
      });
  }

  /** Waits until there is a row, and returns all that are. */
  async waitFor(row: string): Promise<string[]> {
    return eventually(
      `the pane shows ${row}`,
      () => this.rows(),
      (rows) => rows.some((it) => it.trim() === row),
    );
  }

  /** Opens a value, and returns what there is once one of the rows below it is this. */
  async open(name: string, below: string): Promise<string[]> {
    await this.#row(name).locator(".monaco-tl-twistie").click();
    return this.waitFor(below);
  }

  /** Follows the link in a value. */
  async follow(name: string): Promise<void> {
    // Most of it may lie outside of the pane.
    await this.#row(name)
      .locator(".value a")
      .click({ modifiers: ["Control"], position: { x: 4, y: 8 } });
  }

  #row(name: string): Locator {
    return this.#rows()
      .filter({ has: this.#page.locator(".name", { hasText: new RegExp(`^${name}\\b`) }) })
      .first();
  }

  #rows(): Locator {
    return this.#pane.locator(".monaco-list-row");
  }
}
