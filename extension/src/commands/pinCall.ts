import { type QuickPickItem, window } from "vscode";

import type { Context } from "../context";
import { CALLS, type Pin } from "../protocol.generated";
import { elementOf, positionOf } from "./calls";

interface Choice extends QuickPickItem {
  readonly pin: Pin;
}

/** Shows the shapes of one call only: of a node of the trace tree, or of a line, as chosen. */
export async function pinCall(context: Context, argument?: unknown): Promise<void> {
  const node = elementOf(argument)?.item.id ?? (await choose(context, argument))?.node;
  if (node !== undefined && (await context.pins.pin(node)) === null) {
    void context.messages.info("This was not made in a call of a module. There is nothing to pin.");
  }
}

/** One of the calls of a line; the only one, if there is but one. */
async function choose({ server, messages }: Context, argument: unknown): Promise<Pin | undefined> {
  const position = positionOf(argument);
  const answer = position && (await server.requestIfRunning(CALLS, position));
  const calls = answer?.calls ?? [];
  const [first] = calls;
  if (first === undefined) {
    void messages.info("No call of a module was recorded here. Put the cursor into code that ran.");
    return undefined;
  }
  if (calls.length === 1) {
    return first;
  }
  const current = answer?.current ?? null;
  const choices = calls.map((pin, index): Choice => {
    const mark = index === current ? "$(pinned) " : "";
    return { pin, label: `${mark}${pin.label}`, description: pin.description };
  });
  const chosen = await window.showQuickPick(choices, {
    title: `Show the Shapes of One of ${calls.length} Calls`,
    placeHolder: "Path or shapes",
    matchOnDescription: true,
  });
  return chosen?.pin;
}
