import { window } from "vscode";

import type { Context } from "../context";
import { differenceRows } from "../model/comparison";

const NONE = "No traces are compared. Run Shapetrace: Compare Traces.";

/** Lists the differences of the traces that are compared; the chosen one is shown. */
export async function showDifferences({ comparisons, messages }: Context): Promise<void> {
  const { current } = comparisons;
  if (current === undefined) {
    void messages.info(NONE);
    return;
  }
  const rows = differenceRows(current).map((row) => ({ ...row }));
  if (rows.length === 0) {
    void messages.info(current.summary);
    return;
  }
  const chosen = await window.showQuickPick(rows, {
    title: "Differences, in the Order of the Calls",
    placeHolder: "Module, call, kind or value",
    matchOnDescription: true,
    matchOnDetail: true,
  });
  if (chosen !== undefined) {
    await comparisons.reveal(chosen.position);
  }
}

export async function nextDifference({ comparisons }: Context): Promise<void> {
  await comparisons.step(1);
}

export async function previousDifference({ comparisons }: Context): Promise<void> {
  await comparisons.step(-1);
}

/** Opens the lines that made the call of the difference at the cursor, of both runs. */
export async function openDifferingSources({ comparisons, messages }: Context): Promise<void> {
  if (!(await comparisons.openSources())) {
    void messages.info(
      comparisons.current === undefined ? NONE : "The cursor is not on a source line.",
    );
  }
}
