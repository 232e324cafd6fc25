import type { Locator, Page } from "playwright-core";

import { eventually } from "./waiting";

/** How long the editor may take to offer something before it is asked anew. */
const AGAIN_MILLISECONDS = 1500;

export interface Offer {
  /** What opens the box to type into: `F1`, `Control+P`. */
  readonly key: string;
  readonly text: string;
  /** The chosen row, which may have come of what was typed only. */
  readonly row: Locator;
}

/**
 * Types into the box that a key opens until the row is offered, and takes it.
 *
 * The box closes when the editor moves the focus, as it does when a debug session ends; a list does
 * not learn of what is contributed while it is open; and a window that has just been opened may not
 * take keys yet. So the box is opened again.
 */
export async function takeOffer(page: Page, { key, text, row }: Offer): Promise<void> {
  const input = page.locator(".quick-input-widget:visible input").first();
  await eventually(
    `the editor offers what "${text}" finds`,
    async () => {
      await page.keyboard.press(key);
      try {
        await input.fill(text, { timeout: AGAIN_MILLISECONDS });
        await row.waitFor({ timeout: AGAIN_MILLISECONDS });
        return true;
      } catch {
        await page.keyboard.press("Escape");
        return false;
      }
    },
    (isOffered) => isOffered,
  );
  await page.keyboard.press("Enter");
}

/**
 * Opens the menu of what is on the screen, and chooses an entry.
 *
 * A menu that has just been opened lets a click pass: then it is still there. One is closed when the
 * editor moves the focus: then it is opened again.
 */
export async function chooseInContextMenu(
  page: Page,
  place: Locator,
  action: string,
): Promise<void> {
  const item = page.locator(".monaco-menu .action-item", { hasText: action });
  await eventually(
    `${action} is chosen`,
    async () => {
      try {
        if (!(await item.isVisible())) {
          await place.click({ button: "right", timeout: AGAIN_MILLISECONDS });
        }
        await item.click({ timeout: AGAIN_MILLISECONDS });
      } catch {
        return false;
      }
      return item.waitFor({ state: "hidden", timeout: AGAIN_MILLISECONDS }).then(
        () => true,
        () => false,
      );
    },
    (isChosen) => isChosen,
  );
}
