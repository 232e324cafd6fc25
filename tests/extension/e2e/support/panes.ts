import type { Page } from "playwright-core";

/** Opens and closes the parts of the side bar, by their titles. */
export async function arrangePanes(
  page: Page,
  isWanted: (title: string, isOpen: boolean) => boolean,
): Promise<void> {
  for (const header of await page.locator(".part.sidebar .pane-header").all()) {
    const title = (await header.getAttribute("aria-label")) ?? "";
    const isOpen = (await header.getAttribute("aria-expanded")) === "true";
    if (isWanted(title, isOpen) !== isOpen) {
      await header.click({ position: { x: 60, y: 10 } });
    }
  }
}

/** Opens and closes them as they are in a new window, if those of Run and Debug are on the screen. */
export async function arrangePanesAsFirst(page: Page): Promise<void> {
  if (await page.locator(".part.sidebar .pane-header[aria-label^='Call Stack']").isVisible()) {
    await arrangePanes(page, (title) => !title.startsWith("Trace"));
  }
}
