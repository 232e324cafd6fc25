/**
 * The messages between this extension and the language server beyond LSP's own.
 *
 * Mirrors `python_backend/shapetrace/server/protocol.py`; both sides decode the samples in
 * `tests/contract/editor`. Imports no `vscode`.
 */
import type { HintPosition } from "./contributions";
import {
  boolean,
  type Form,
  integer,
  type JsonObject,
  listOf,
  Mismatch,
  nullable,
  oneOf,
  record,
  text,
} from "./model/json";

/** The settings that the server acts on. */
export interface ServerSettings {
  readonly hints: {
    readonly position: HintPosition;
    readonly maximumLength: number;
    readonly parameters: boolean;
  };
  readonly codeLens: { readonly enabled: boolean };
  readonly hover: { readonly enabled: boolean };
}

/** What the server is told when it starts. */
export interface InitializationOptions {
  /** A folder of this window where the server keeps what programs sent. */
  readonly storage: string;
  readonly settings: ServerSettings;
  /** The paths of values that are to be captured. */
  readonly captures: readonly string[];
  /** The variables that are to be watched. */
  readonly watches: readonly string[];
}

/** Whether a whole debug run is watched, or the program ends after one forward pass. */
export type SessionMode = "debug" | "forwardPass";

/** Asks the server to await programs; with a token and port, those that it awaited before. */
export interface OpenSession {
  readonly session: string;
  readonly name: string;
  readonly mode: SessionMode;
  readonly token?: string;
  readonly port?: number;
}

/** What is evaluated at a stop, by the number that it was given. */
export interface EvaluationReference {
  readonly session: string;
  readonly number: number;
}

/** Where programs of a session find the server. */
export interface Endpoint {
  readonly port: number;
  readonly token: string;
  readonly extra: JsonObject;
}

export const EXPORT_FORMATS = ["json", "markdown", "tree", "listing"] as const;

export type ExportFormat = (typeof EXPORT_FORMATS)[number];

export interface Export {
  readonly path: string;
  /** Whose trace; null for the newest. */
  readonly session: string | null;
  readonly format: ExportFormat;
}

export interface Exported {
  readonly path: string;
  readonly ops: number;
  readonly modules: number;
  readonly extra: JsonObject;
}

export interface ProcessesTold {
  /** How many programs were told to look at everything again. */
  readonly processes: number;
  readonly extra: JsonObject;
}

export const SESSION_STATES = [
  "connected",
  "waiting",
  "recording",
  "settled",
  "complete",
  "noForward",
  "unsupported",
  "failed",
  "gone",
] as const;

/** What a watched program is doing. */
export type SessionState = (typeof SESSION_STATES)[number];

/** The server's word on one program of a session, or with no process on the session itself. */
export interface Status {
  readonly session: string;
  readonly process: number | null;
  readonly state: SessionState;
  readonly message: string;
  readonly python: string | null;
  readonly torch: string | null;
  readonly passes: number;
  readonly calls: number;
  /** What the program could not hand over in time, and therefore left out. */
  readonly dropped: number;
  /** Which of the processes of a distributed run it is. */
  readonly rank: number | null;
  readonly extra: JsonObject;
}

export const NODE_KINDS = [
  ...(["process", "module", "op", "kernel", "fold"] as const),
  ...(["captures", "capturePath", "captureName", "capture"] as const),
  ...(["watches", "watch", "change"] as const),
] as const;

/**
 * What a node of the trace tree is. A fold is ops in a row that a library made; below all captured
 * values stand the paths that were asked for, what these have found, and each value of it; below all
 * watched variables each of them, and how it changed.
 */
export type NodeKind = (typeof NODE_KINDS)[number];

/** Asks for some of what is below a node, or for the outermost nodes. */
export interface TreeQuestion {
  readonly parent: string | null;
  /** Nodes must have it in them, or above or below them. */
  readonly filter: string;
  readonly offset: number;
  readonly limit: number;
}

export interface TreeNode {
  readonly id: string;
  /** What it is called in every run of a program. */
  readonly key: string;
  readonly kind: NodeKind;
  readonly label: string;
  readonly description: string;
  readonly hasChildren: boolean;
  /** It is there for what is in it. */
  readonly isExpanded: boolean;
  readonly isPinned: boolean;
  readonly isFailed: boolean;
  readonly histogram: Histogram | null;
  readonly extra: JsonObject;
}

/** How many numbers lie where between two others. */
export interface Histogram {
  readonly low: string;
  readonly high: string;
  /** Of equal parts of the range; 100 for the part with most. */
  readonly heights: readonly number[];
  readonly extra: JsonObject;
}

export interface TreePage {
  readonly nodes: readonly TreeNode[];
  readonly hasMore: boolean;
  readonly extra: JsonObject;
}

/** A place in a document, counted from 0. */
export interface DocumentPosition {
  readonly uri: string;
  readonly line: number;
  readonly character: number;
}

export interface TreePathQuestion extends DocumentPosition {
  /** Where several nodes were made there, the one is meant that has most in common with this. */
  readonly near: string | null;
  readonly filter: string;
}

/** A node on a path, and its number below the node before. */
export interface TreeStep {
  readonly id: string;
  readonly position: number;
  readonly extra: JsonObject;
}

export interface TreePath {
  readonly path: readonly TreeStep[] | null;
  readonly extra: JsonObject;
}

/** All that is told of a node. */
export interface Story {
  readonly markdown: string;
  readonly extra: JsonObject;
}

/** A range of a document, as lines and characters from 0. */
export interface Place {
  readonly uri: string;
  readonly start: readonly number[];
  readonly end: readonly number[];
  readonly extra: JsonObject;
}

export interface Placed {
  /** Null where it is not known, or no more in the document. */
  readonly place: Place | null;
  readonly extra: JsonObject;
}

/** A call that is pinned, or may be. */
export interface Pin {
  readonly node: string;
  readonly label: string;
  readonly description: string;
  /** The newest run has not come to it yet. */
  readonly isWaiting: boolean;
  readonly extra: JsonObject;
}

export interface Pinned {
  readonly pin: Pin | null;
  /** What was pinned, where that is not in the newest run. */
  readonly lost: string | null;
  readonly extra: JsonObject;
}

export interface Calls {
  readonly calls: readonly Pin[];
  /** Which of them is shown. */
  readonly current: number | null;
  readonly extra: JsonObject;
}

export interface StepCall extends DocumentPosition {
  readonly direction: 1 | -1;
}

/** The stack frame that is looked at; without a process there is none. */
export interface Focus {
  readonly session: string;
  readonly process: number | null;
  /** The module call that the frame runs in; null outside of any. */
  readonly call: number | null;
  /** The calls that the frame's function has made so far. */
  readonly reached: readonly number[] | null;
  readonly file: string | null;
  readonly function: string | null;
  readonly line: number | null;
  readonly variables: readonly FocusVariable[];
  readonly unbound: readonly string[] | null;
  /** The functions that wait for it, from the inside out. */
  readonly outer: readonly FocusOutside[];
}

/** How far a function has come that waits for the one that is looked at. */
export interface FocusOutside {
  readonly reached: readonly number[];
  readonly file: string;
  readonly function: string;
  readonly line: number;
  readonly variables: readonly FocusVariable[];
  /** Names that have never been stored to; null where nothing is known of the variables. */
  readonly unbound: readonly string[] | null;
}

/** What a variable of a function holds that stands still. */
export interface FocusVariable {
  readonly name: string;
  /** As the agent writes values; only the server reads them. */
  readonly value: unknown;
  /**
   * Where it may have been stored: line, column, end line and end column; the first line alone of a
   * function whose parameter it is.
   */
  readonly stores: readonly (readonly number[])[];
  /** That was certainly in the present iteration of a loop, or call. */
  readonly isFresh: boolean;
}

/** Lines of a document, counted from 0, the last one included. */
export interface Lines {
  readonly uri: string;
  readonly first: number;
  readonly last: number;
}

/** What is shown at the end of a line while the program stands still. */
export interface InlineValue {
  readonly line: number;
  readonly text: string;
  readonly extra: JsonObject;
}

export interface InlineValues {
  readonly values: readonly InlineValue[];
  readonly extra: JsonObject;
}

/** A request: what is sent, and how the answer is read. */
export interface Request<Parameters, Result> {
  readonly method: string;
  readonly result: Form<Result>;
  /** Only for the compiler. */
  readonly parameters?: (parameters: Parameters) => void;
}

const endpoint = record<Endpoint>({
  port: { key: "port", form: integer },
  token: { key: "token", form: text },
});

const exported = record<Exported>({
  path: { key: "path", form: text },
  ops: { key: "ops", form: integer },
  modules: { key: "modules", form: integer },
});

const processesTold = record<ProcessesTold>({ processes: { key: "processes", form: integer } });

const histogram = record<Histogram>({
  low: { key: "low", form: text },
  high: { key: "high", form: text },
  heights: { key: "heights", form: listOf(integer) },
});

const treeNode = record<TreeNode>({
  id: { key: "id", form: text },
  key: { key: "key", form: text },
  kind: { key: "kind", form: oneOf(...NODE_KINDS) },
  label: { key: "label", form: text },
  description: { key: "description", form: text },
  hasChildren: { key: "hasChildren", form: boolean },
  isExpanded: { key: "isExpanded", form: boolean },
  isPinned: { key: "isPinned", form: boolean },
  isFailed: { key: "isFailed", form: boolean },
  histogram: { key: "histogram", form: nullable(histogram) },
});

const treePage = record<TreePage>({
  nodes: { key: "nodes", form: listOf(treeNode) },
  hasMore: { key: "hasMore", form: boolean },
});

const treeStep = record<TreeStep>({
  id: { key: "id", form: text },
  position: { key: "position", form: integer },
});

const treePath = record<TreePath>({ path: { key: "path", form: nullable(listOf(treeStep)) } });

const story = record<Story>({ markdown: { key: "markdown", form: text } });

const place = record<Place>({
  uri: { key: "uri", form: text },
  start: { key: "start", form: listOf(integer) },
  end: { key: "end", form: listOf(integer) },
});

const placed = record<Placed>({ place: { key: "place", form: nullable(place) } });

const pin = record<Pin>({
  node: { key: "node", form: text },
  label: { key: "label", form: text },
  description: { key: "description", form: text },
  isWaiting: { key: "isWaiting", form: boolean },
});

/** How it is read what is pinned. */
export const pinned = record<Pinned>({
  pin: { key: "pin", form: nullable(pin) },
  lost: { key: "lost", form: nullable(text) },
});

const calls = record<Calls>({
  calls: { key: "calls", form: listOf(pin) },
  current: { key: "current", form: nullable(integer) },
});

const inlineValue = record<InlineValue>({
  line: { key: "line", form: integer },
  text: { key: "text", form: text },
});

const inlineValues = record<InlineValues>({
  values: { key: "values", form: listOf(inlineValue) },
});

const nothing: Form<null> = {
  expects: ["null"],
  read(document) {
    if (document !== null) {
      throw new Mismatch("should be null");
    }
    return document;
  },
};

export const OPEN_SESSION = request<OpenSession, Endpoint>("shapetrace/openSession", endpoint);
export const CLOSE_SESSION = request<{ readonly session: string }, null>(
  "shapetrace/closeSession",
  nothing,
);
export const CLEAR = request<Record<string, never>, null>("shapetrace/clear", nothing);
export const EXPORT = request<Export, Exported>("shapetrace/export", exported);
export const WAKE = request<{ readonly session: string }, ProcessesTold>(
  "shapetrace/wake",
  processesTold,
);
export const CANCEL_EVALUATION = request<EvaluationReference, ProcessesTold>(
  "shapetrace/cancelEvaluation",
  processesTold,
);
export const INLINE_VALUES = request<Lines, InlineValues>("shapetrace/inlineValues", inlineValues);

export const TREE = request<TreeQuestion, TreePage>("shapetrace/tree", treePage);
export const TREE_PATH = request<TreePathQuestion, TreePath>("shapetrace/treePath", treePath);
export const STORY = request<{ readonly node: string }, Story>("shapetrace/story", story);
export const PLACE = request<{ readonly node: string }, Placed>("shapetrace/place", placed);
export const CALLS = request<DocumentPosition, Calls>("shapetrace/calls", calls);
export const PIN = request<{ readonly node: string | null }, Pinned>("shapetrace/pin", pinned);
export const STEP_CALL = request<StepCall, Pinned>("shapetrace/stepCall", pinned);
export const FOCUS = request<Focus, null>("shapetrace/focus", nothing);

/** Comes from the server when the trace tree has changed since it was last asked for. */
export const TRACE_CHANGED = "shapetrace/traceChanged";

/** Comes from the server whenever something is pinned, or nothing any more. */
export const PIN_CHANGED = "shapetrace/pinChanged";

/** Tells the server whether this window shows hints. */
export const SHOW_HINTS = "shapetrace/showHints";

/** Comes from the server whenever a program's state changes. */
export const STATUS = "shapetrace/status";

/** How a status is read. */
export const status: Form<Status> = record<Status>({
  session: { key: "session", form: text },
  process: { key: "process", form: nullable(integer) },
  state: { key: "state", form: oneOf(...SESSION_STATES) },
  message: { key: "message", form: text },
  python: { key: "python", form: nullable(text) },
  torch: { key: "torch", form: nullable(text) },
  passes: { key: "passes", form: integer },
  calls: { key: "calls", form: integer },
  dropped: { key: "dropped", form: integer },
  rank: { key: "rank", form: nullable(integer) },
});

function request<Parameters, Result>(
  method: string,
  result: Form<Result>,
): Request<Parameters, Result> {
  return { method, result };
}
