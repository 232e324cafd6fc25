import type { Context } from "../context";
import { elementOf } from "./calls";

/** Has the values of a node of the trace tree captured no longer. */
export async function stopCapturing({ captures }: Context, argument?: unknown): Promise<void> {
  const item = elementOf(argument)?.item;
  if (item?.kind === "capturePath") {
    await captures.remove(item.label);
  }
}

/** Has no values captured any longer. */
export async function stopCapturingAll({ captures }: Context): Promise<void> {
  await captures.set([]);
}
