import type { Context } from "../context";

/** Shows the shapes of all calls again. */
export async function unpinCall({ pins }: Context): Promise<void> {
  await pins.pin(null);
}
