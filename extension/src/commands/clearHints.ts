import type { Context } from "../context";
import { CLEAR } from "../protocol.generated";

/** Forgets what was recorded: hints, hovers and lenses vanish. */
export async function clearHints({ server, sessions }: Context): Promise<void> {
  await server.requestIfRunning(CLEAR, {});
  sessions.forget();
}
