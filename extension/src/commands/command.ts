/** The type of commands: called with the context, and with the file or call if there is one. */
import type { Context } from "../context";

export type Handler = (context: Context, argument?: unknown) => unknown;
