/**
 * The messages between this extension and the language server about watched variables.
 *
 * Mirrors `python_backend/shapetrace/server/watch_messages.py`; both sides decode the samples in
 * `tests/contract/editor`. Imports no `vscode`.
 */
import { type Form, type JsonObject, nullable, record, text } from "./model/json";
import type { DocumentPosition, Request } from "./protocol";

/** What is at a place of a document. */
export interface Watchable {
  /** As it is written there; empty where there is nothing that can be watched. */
  readonly name: string;
  /** The function that the place is in; empty at the level of the module. */
  readonly function: string;
  readonly extra: JsonObject;
}

export interface CheckedWatch {
  /** What is wrong with a name; null where it can be watched. */
  readonly problem: string | null;
  readonly extra: JsonObject;
}

/** Why there is nothing of a name. */
export interface WatchProblem {
  readonly session: string;
  /** Empty where it is not about a single one. */
  readonly name: string;
  readonly message: string;
  readonly extra: JsonObject;
}

const watchable = record<Watchable>({
  name: { key: "name", form: text },
  function: { key: "function", form: text },
});

const checkedWatch = record<CheckedWatch>({ problem: { key: "problem", form: nullable(text) } });

/** How a problem is read. */
export const watchProblem: Form<WatchProblem> = record<WatchProblem>({
  session: { key: "session", form: text },
  name: { key: "name", form: text },
  message: { key: "message", form: text },
});

export const WATCH_AT: Request<DocumentPosition, Watchable> = {
  method: "shapetrace/watchAt",
  result: watchable,
};

export const CHECK_WATCH: Request<{ readonly name: string }, CheckedWatch> = {
  method: "shapetrace/checkWatch",
  result: checkedWatch,
};

/** Tells the server what is watched from now on. */
export const WANT_WATCHES = "shapetrace/wantWatches";

/** Comes from the server when a program has nothing of a name that is watched. */
export const WATCH_PROBLEM = "shapetrace/watchProblem";
