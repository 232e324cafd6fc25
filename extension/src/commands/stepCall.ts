import { window } from "vscode";

import type { Context } from "../context";
import { positionOf } from "./calls";

/** Shows the call of this line that was made before the one that is shown. */
export async function previousCall(context: Context, argument?: unknown): Promise<void> {
  await step(context, argument, -1);
}

/** Shows the call of this line that was made after the one that is shown. */
export async function nextCall(context: Context, argument?: unknown): Promise<void> {
  await step(context, argument, 1);
}

async function step({ pins }: Context, argument: unknown, direction: 1 | -1): Promise<void> {
  const position = positionOf(argument);
  const before = pins.current;
  const pin = position && (await pins.step(position, direction));
  if (pin === undefined || pin === null) {
    tell("no call of a module was recorded here");
  } else if (pin.node === before?.node) {
    tell(`${pin.label} is the ${direction > 0 ? "last" : "first"} call here`);
  }
}

function tell(text: string): void {
  window.setStatusBarMessage(`Shapetrace: ${text}`, 3000);
}
