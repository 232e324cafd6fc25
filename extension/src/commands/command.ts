/** What a command does with the context, and with the file or call that it is called for. */
import type { Context } from "../context";

export type Handler = (context: Context, argument?: unknown) => unknown;
