import type { Context } from "../context";

/** Opens the log. */
export function showLog({ log }: Context): void {
  log.show(true);
}
