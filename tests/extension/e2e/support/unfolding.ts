import type { Locator } from "playwright-core";

import { eventually } from "./waiting";

/** After which a row that has not opened is pressed again. */
const AGAIN_MILLISECONDS = 2_000;

/**
 * Opens a row of a tree, or closes it. A row that is drawn anew in that moment lets the click pass,
 * and one that the editor is about to open by itself would be closed by it: `patience` is for that.
 */
export async function unfold(
  row: Locator,
  isWanted: boolean,
  { patience = 0 }: { readonly patience?: number } = {},
): Promise<void> {
  let next = Date.now() + patience;
  await eventually(
    isWanted ? "the row is open" : "the row is closed",
    async () => {
      const isOpen = (await row.getAttribute("aria-expanded")) === "true";
      if (isOpen !== isWanted && Date.now() >= next) {
        await row.locator(".monaco-tl-twistie").click();
        next = Date.now() + AGAIN_MILLISECONDS;
      }
      return isOpen;
    },
    (isOpen) => isOpen === isWanted,
  );
}
