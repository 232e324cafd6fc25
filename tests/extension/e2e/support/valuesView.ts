import type { Locator, Page } from "playwright-core";

import { arrangePanes } from "./panes";
import { unfold } from "./unfolding";
import { eventually } from "./waiting";

/** The editor opens the first scope of a frame by itself, a moment after it is shown. */
const SCOPE_MILLISECONDS = 1_000;

const TITLES = { variables: "Variables", watch: "Watch" } as const;

/** A tree of values in the Run and Debug side bar: the variables of a frame, or what is watched. */
export class ValuesView {
  readonly #page: Page;
  readonly #kind: keyof typeof TITLES;
  readonly #tree: Locator;

  constructor(page: Page, kind: keyof typeof TITLES) {
    this.#page = page;
    this.#kind = kind;
    this.#tree = page.locator(`.debug-${kind}`);
  }

  /** Brings the side bar to the front and gives this tree, of all there, the room. */
  async show(): Promise<void> {
    const headers = this.#page.locator(".part.sidebar .pane-header");
    if (!(await headers.filter({ hasText: "Call Stack" }).isVisible())) {
      await this.#page.keyboard.press("Control+Shift+D");
    }
    await headers.first().waitFor();
    await arrangePanes(this.#page, (title) => title.startsWith(TITLES[this.#kind]));
  }

  /** The entries on the screen: `  shape = (2, 3)`, deeper ones further right. */
  async rows(): Promise<string[]> {
    // Functions with names would not survive the way into the page.
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
        const plain = name.replace(/\s*[:=]\s*$/, "").trim();
        return `${"  ".repeat(level - 1)}${plain}${value === "" ? "" : ` = ${value.trim()}`}`;
      });
  }

  /** Waits until an entry is there, and returns all that are. */
  async waitFor(row: string | RegExp): Promise<string[]> {
    return eventually(
      `an entry says ${String(row)}`,
      () => this.rows(),
      (rows) => rows.some((it) => (typeof row === "string" ? it.trim() === row : row.test(it))),
    );
  }

  /** Shows what is below an entry, if that is not shown already. */
  async open(name: string): Promise<void> {
    const row = this.#row(name);
    const isScope = (await row.getAttribute("aria-level")) === "1";
    await unfold(row, true, { patience: isScope ? SCOPE_MILLISECONDS : 0 });
  }

  /** Follows the link in an entry, as one does with the mouse. */
  async follow(name: string): Promise<void> {
    await this.#row(name)
      .locator(".value a.link")
      .first()
      .click({ modifiers: ["Control"] });
  }

  /** Copies what an entry is worth, and returns it. */
  async copyValue(name: string): Promise<string> {
    await this.#page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await this.#row(name).locator(".name").click();
    await this.#page.keyboard.press("Control+C");
    // The debugger is asked for it first.
    return eventually(
      "something has been copied",
      () => this.#page.evaluate(() => navigator.clipboard.readText()),
      (text) => text !== "",
    );
  }

  /** Gives an entry another value, which is an expression. */
  async setValue(name: string, expression: string): Promise<void> {
    await this.#row(name).locator(".name").dblclick();
    const input = this.#tree.locator(".monaco-inputbox input");
    await input.fill(expression);
    await input.press("Enter");
    await input.waitFor({ state: "hidden" });
  }

  /** Adds an expression to those that are watched. */
  async add(expression: string): Promise<void> {
    await this.#tree.dblclick({ position: { x: 100, y: 60 } });
    const input = this.#tree.locator(".monaco-inputbox input");
    await input.fill(expression);
    await input.press("Enter");
  }

  #rows(): Locator {
    return this.#tree.locator(".monaco-list-row");
  }

  #row(name: string): Locator {
    return this.#rows()
      .filter({ hasText: new RegExp(`^${name}($|\\s*[:=])`) })
      .first();
  }
}
