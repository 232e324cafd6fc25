/** What tests and the extension that resets their windows say to each other. */

/** The socket's name, in the folder that contains the one that is open. */
export const SOCKET = "window.sock";

export type Question =
  | { readonly kind: "reset"; readonly keepsTrace: boolean }
  | { readonly kind: "configuration"; readonly keys: readonly string[] };

export interface Answer {
  /** The user's settings of the keys that were asked for. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** The launch configurations of the folder. */
  readonly launch?: unknown;
}
