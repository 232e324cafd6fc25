/** What a command does with the context, and with the file that a menu calls it for. */
import type { Context } from "../context";

export type Handler = (context: Context, file?: unknown) => unknown;
