import { type QuickPickItem, window } from "vscode";

import type { Context } from "../context";
import { WATCH_AT } from "../protocol.generated";
import { elementOf, positionOf } from "./calls";

interface Choice extends QuickPickItem {
  readonly label: string;
}

/** No longer watches a variable: that of a node, that at the cursor, or those that are chosen. */
export async function stopWatching(context: Context, argument?: unknown): Promise<void> {
  const { watches, messages } = context;
  const item = elementOf(argument)?.item;
  const name = item?.kind === "watch" ? item.label : await atCursor(context);
  if (name !== undefined && watches.wanted.includes(name)) {
    await watches.remove(name);
    return;
  }
  if (watches.wanted.length === 0) {
    void messages.info(
      "No variables are watched. Put the cursor on a variable and run Watch Variable.",
    );
    return;
  }
  const choices = watches.wanted.map((label): Choice => ({ label, picked: true }));
  const kept = await window.showQuickPick(choices, {
    canPickMany: true,
    title: "Watched Variables",
    placeHolder: "Untick a variable to stop watching it",
  });
  if (kept !== undefined) {
    // Others may have been added meanwhile.
    const dropped = choices.filter((each) => !kept.some(({ label }) => label === each.label));
    await watches.set(
      watches.wanted.filter((each) => !dropped.some(({ label }) => label === each)),
    );
  }
}

/** No longer watches any variable. */
export async function stopWatchingAll({ watches }: Context): Promise<void> {
  await watches.set([]);
}

async function atCursor({ server }: Context): Promise<string | undefined> {
  const position = positionOf(undefined);
  return position === undefined
    ? undefined
    : (await server.requestIfRunning(WATCH_AT, position))?.name;
}
