/**
 * The messages between this extension and the language server about two traces.
 *
 * Mirrors `python_backend/shapetrace/server/compare_messages.py`; both sides decode the samples in
 * `tests/contract/editor`. Imports no `vscode`.
 */
import { integer, type JsonObject, listOf, nullable, record, text } from "./model/json";
import type { Request } from "./protocol";

/** Which traces to compare: trace files, or null for what was recorded in the newest session. */
export interface Compare {
  readonly a: string | null;
  readonly b: string | null;
}

/** A line of the source that ran, from 1. */
export interface ComparedPlace {
  readonly path: string;
  readonly line: number;
  readonly extra: JsonObject;
}

/** One difference. */
export interface ComparedCall {
  readonly kind: string;
  /** The module and the call. */
  readonly title: string;
  /** What differs. */
  readonly detail: string;
  /** The line in either text, from 0. */
  readonly left: number;
  readonly right: number;
  readonly a: ComparedPlace | null;
  readonly b: ComparedPlace | null;
  readonly extra: JsonObject;
}

/** What differs between two runs. */
export interface Compared {
  /** A as text, with a line for each call; equal to that of B where they are alike. */
  readonly left: string;
  readonly right: string;
  readonly differences: readonly ComparedCall[];
  /** Which of them is the first that matters. */
  readonly first: number | null;
  readonly summary: string;
  readonly extra: JsonObject;
}

const comparedPlace = record<ComparedPlace>({
  path: { key: "path", form: text },
  line: { key: "line", form: integer },
});

const comparedCall = record<ComparedCall>({
  kind: { key: "kind", form: text },
  title: { key: "title", form: text },
  detail: { key: "detail", form: text },
  left: { key: "left", form: integer },
  right: { key: "right", form: integer },
  a: { key: "a", form: nullable(comparedPlace) },
  b: { key: "b", form: nullable(comparedPlace) },
});

const compared = record<Compared>({
  left: { key: "left", form: text },
  right: { key: "right", form: text },
  differences: { key: "differences", form: listOf(comparedCall) },
  first: { key: "first", form: nullable(integer) },
  summary: { key: "summary", form: text },
});

export const COMPARE: Request<Compare, Compared> = {
  method: "shapetrace/compare",
  result: compared,
};
