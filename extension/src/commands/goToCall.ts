import { Position, Range, Uri, window } from "vscode";

import type { Context } from "../context";
import { PLACE } from "../protocol.generated";
import { isOfValues } from "../views/traceTree";
import { elementOf } from "./calls";

/** Shows the line that made a call of the trace tree, and selects the call. */
export async function goToCall({ server, tree }: Context, argument?: unknown): Promise<void> {
  const element = elementOf(argument ?? (await tree.clicked()));
  if (element === undefined) {
    return;
  }
  const answer = await server.requestIfRunning(PLACE, { node: element.item.id });
  const place = answer?.place ?? null;
  if (place === null) {
    // It was changed since, or what made it was evaluated at a stop.
    const text = `Shapetrace: the line that made ${element.item.label} is not there`;
    window.setStatusBarMessage(text, 3000);
    return;
  }
  if (isOfValues(element.item)) {
    tree.stayAt(place.uri, place.start[0]);
  }
  const range = new Range(positionAt(place.start), positionAt(place.end));
  const options = { selection: range, preserveFocus: true, preview: true };
  await window.showTextDocument(Uri.parse(place.uri), options);
}

function positionAt([line, character]: readonly [number, number]): Position {
  return new Position(line, character);
}
