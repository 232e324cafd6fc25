/**
 * The messages between this extension and the language server about captured values.
 *
 * Mirrors `python_backend/shapetrace/server/capture_messages.py`; both sides decode the samples in
 * `tests/contract/editor`. Imports no `vscode`.
 */
import { type Form, type JsonObject, listOf, nullable, record, text } from "./model/json";
import type { DocumentPosition, Request } from "./protocol";

/** Asks by which paths something is captured: a node of the trace tree, or what is at a place. */
export type CapturePathsQuestion = { readonly node: string } | DocumentPosition;

/** One way to capture it. */
export interface CapturePath {
  readonly path: string;
  readonly description: string;
  readonly extra: JsonObject;
}

export interface CapturePaths {
  /** What it is called in the source; empty where there is nothing to capture. */
  readonly name: string;
  /** The likeliest first. */
  readonly paths: readonly CapturePath[];
  readonly extra: JsonObject;
}

export interface CheckedPath {
  /** What is wrong with a path, with the place; null where it is one. */
  readonly problem: string | null;
  readonly extra: JsonObject;
}

/** Why a path brings nothing. */
export interface CaptureProblem {
  readonly session: string;
  /** Empty where it is not known of which path that is true. */
  readonly path: string;
  readonly message: string;
  readonly extra: JsonObject;
}

const capturePath = record<CapturePath>({
  path: { key: "path", form: text },
  description: { key: "description", form: text },
});

const capturePaths = record<CapturePaths>({
  name: { key: "name", form: text },
  paths: { key: "paths", form: listOf(capturePath) },
});

const checkedPath = record<CheckedPath>({ problem: { key: "problem", form: nullable(text) } });

/** How a problem is read. */
export const captureProblem: Form<CaptureProblem> = record<CaptureProblem>({
  session: { key: "session", form: text },
  path: { key: "path", form: text },
  message: { key: "message", form: text },
});

export const CAPTURE_PATHS: Request<CapturePathsQuestion, CapturePaths> = {
  method: "shapetrace/capturePaths",
  result: capturePaths,
};

export const CHECK_PATH: Request<{ readonly path: string }, CheckedPath> = {
  method: "shapetrace/checkPath",
  result: checkedPath,
};

/** Tells the server what is to be captured from the next session on. */
export const WANT_CAPTURES = "shapetrace/wantCaptures";

/** Comes from the server when a program has nothing that a path could mean. */
export const CAPTURE_PROBLEM = "shapetrace/captureProblem";
