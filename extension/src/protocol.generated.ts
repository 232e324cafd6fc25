/**
 * The messages between this extension and the language server beyond LSP's own.
 *
 * Generated from `python_backend/shapetrace/server/messages` by `npm run generate`: do not edit.
 * In one file, as it is not read from end to end: the messages are grouped in their definition.
 */

/** A request to the server. */
export interface Request<Parameters, Result> {
  readonly method: string;
  /** Never there: it tells the compiler what the types are. */
  readonly types?: (parameters: Parameters) => Result;
}

/** A notification to the server. */
export interface ClientNotification<Parameters> {
  readonly method: string;
  /** Never there: it tells the compiler what the type is. */
  readonly types?: (parameters: Parameters) => void;
}

/** A notification from the server. */
export interface ServerNotification<Parameters> {
  readonly method: string;
  /** Never there: it tells the compiler what the type is. */
  readonly types?: () => Parameters;
}

export const HINT_POSITIONS = ["lineEnd", "afterName", "off"] as const;

/** Where hints are shown in a line. */
export type HintPosition = (typeof HINT_POSITIONS)[number];

/** The settings below `shapetrace.hints`. */
export interface HintOptions {
  readonly position: HintPosition;
  /** In characters. VS Code itself cuts at the default; fewer than eight would say nothing. */
  readonly maximumLength: number;
  readonly parameters: boolean;
}

/** The settings below `shapetrace.codeLens`. */
export interface CodeLensOptions {
  readonly enabled: boolean;
}

/** The settings below `shapetrace.hover`. */
export interface HoverOptions {
  readonly enabled: boolean;
}

/** The settings that the server needs. */
export interface Options {
  readonly hints: HintOptions;
  readonly codeLens: CodeLensOptions;
  readonly hover: HoverOptions;
}

/** The `initializationOptions` of the language server. */
export interface Initialization {
  /** A folder where the server keeps what programs sent, in case it is restarted. */
  readonly storage?: string | null;
  readonly settings?: Options;
  /** The paths of the values to capture. */
  readonly captures: readonly string[];
  /** The variables to watch. */
  readonly watches: readonly string[];
}

export const SESSION_MODES = ["debug", "forwardPass"] as const;

/** Whether a whole debug run is recorded, or the program ends after one forward pass. */
export type SessionMode = (typeof SESSION_MODES)[number];

/** Asks the server to expect the processes of a debug session. */
export interface OpenSession {
  readonly session: string;
  readonly name: string;
  readonly mode: SessionMode;
  /** The token that the session had before the server was restarted. */
  readonly token?: string | null;
  /** The port that the session had before the server was restarted. */
  readonly port?: number | null;
}

/** Where the processes of a session are to connect, and with which token. */
export interface OpenedSession {
  readonly port: number;
  readonly token: string;
}

export const OPEN_SESSION: Request<OpenSession, OpenedSession> = {
  method: "shapetrace/openSession",
};

/** A debug session by its id. */
export interface SessionReference {
  readonly session: string;
}

export const CLOSE_SESSION: Request<SessionReference, null> = {
  method: "shapetrace/closeSession",
};

/** How many processes a command was sent to. */
export interface ProcessesTold {
  readonly processes: number;
}

/** Has the processes of a session record again what they had stopped recording. */
export const WAKE: Request<SessionReference, ProcessesTold> = {
  method: "shapetrace/wake",
};

/** An expression that is evaluated at a stop, by the number that the extension gave it. */
export interface EvaluationReference {
  readonly session: string;
  readonly number: number;
}

export const CANCEL_EVALUATION: Request<EvaluationReference, ProcessesTold> = {
  method: "shapetrace/cancelEvaluation",
};

/** The parameters of a message that has none. */
export type Empty = Record<string, never>;

/** Forgets everything that was recorded. */
export const CLEAR: Request<Empty, null> = {
  method: "shapetrace/clear",
};

export const EXPORT_FORMATS = ["json", "markdown", "tree", "listing"] as const;

/** How a trace is written to a file. */
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** Asks for a trace to be written to a file. */
export interface Export {
  readonly path: string;
  readonly format: ExportFormat;
  /** The session whose trace it is; null for the newest one that recorded anything. */
  readonly session?: string | null;
}

/** The written file. If nothing was recorded, there is no file. */
export interface Exported {
  readonly path: string;
  readonly ops: number;
  readonly modules: number;
}

export const EXPORT: Request<Export, Exported> = {
  method: "shapetrace/export",
};

/** Whether this window shows hints. */
export interface ShowHints {
  readonly visible: boolean;
}

export const SHOW_HINTS: ClientNotification<ShowHints> = {
  method: "shapetrace/showHints",
};

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

/** The state of a process of a session. */
export type SessionState = (typeof SESSION_STATES)[number];

/** The state of a process of a session; without a process, of the session itself. */
export interface Status {
  readonly session: string;
  readonly process: number | null;
  readonly state: SessionState;
  readonly message: string;
  /** The version of Python that the process runs in. */
  readonly python: string | null;
  /** The version of torch that the process has imported. */
  readonly torch: string | null;
  /** How many forward passes were recorded. */
  readonly passes: number;
  /** How many calls were recorded. */
  readonly calls: number;
  /** How many messages the process left out, because the server did not keep up. */
  readonly dropped: number;
  /** The rank of the process in a distributed run. */
  readonly rank: number | null;
}

/** Sent whenever the state of a process changes. */
export const STATUS: ServerNotification<Status> = {
  method: "shapetrace/status",
};

/** Asks for some of the nodes below a node. */
export interface TreeQuestion {
  /** The id of the node; null asks for the outermost nodes. */
  readonly parent: string | null;
  /** Only nodes with this text in them are wanted, and those above and below them. */
  readonly filter: string;
  readonly offset: number;
  readonly limit: number;
}

export const NODE_KINDS = [
  "process",
  "module",
  "op",
  "kernel",
  "fold",
  "captures",
  "capturePath",
  "captureName",
  "capture",
  "watches",
  "watch",
  "change",
] as const;

/**
 * The kind of a node of the trace tree.
 *
 * A `fold` is several ops in a row that a library made. Below `captures` are the paths that were
 * asked for, below a path the names of the values that it found, and below a name each value. Below
 * `watches` are the watched variables, and below a variable its changes.
 */
export type NodeKind = (typeof NODE_KINDS)[number];

/** How many numbers lie where between the lowest and the highest. */
export interface Histogram {
  readonly low: string;
  readonly high: string;
  /** One for each of the equal parts of the range; 100 for the part with the most numbers. */
  readonly heights: readonly number[];
}

/** A node of the trace tree. */
export interface TreeNode {
  readonly id: string;
  /** Identifies the node in every run of a program, so that it is recognized in the next one. */
  readonly key: string;
  readonly kind: NodeKind;
  readonly label: string;
  readonly description: string;
  readonly hasChildren: boolean;
  /** Whether the node is shown expanded at first. */
  readonly isExpanded: boolean;
  readonly isPinned: boolean;
  readonly isFailed: boolean;
  readonly histogram: Histogram | null;
}

/** Some of the nodes below a node. */
export interface TreePage {
  readonly nodes: readonly TreeNode[];
  readonly hasMore: boolean;
}

export const TREE: Request<TreeQuestion, TreePage> = {
  method: "shapetrace/tree",
};

/** A place in a document, with line and character counted from 0. */
export interface DocumentPosition {
  readonly uri: string;
  readonly line: number;
  readonly character: number;
}

/** Asks which node was made at a place. */
export interface TreePathQuestion extends DocumentPosition {
  /** Where several nodes were made there, the one closest to this node is meant. */
  readonly near: string | null;
  readonly filter: string;
}

/** A node on a path, and its position among the nodes below the one before. */
export interface TreeStep {
  readonly id: string;
  readonly position: number;
}

/** The nodes from the outermost one to the one that was asked for; null where there is none. */
export interface TreePath {
  readonly path: readonly TreeStep[] | null;
}

export const TREE_PATH: Request<TreePathQuestion, TreePath> = {
  method: "shapetrace/treePath",
};

/** A node of the trace tree by its id. */
export interface NodeReference {
  readonly node: string;
}

/** The tooltip of a node. */
export interface Story {
  readonly markdown: string;
}

export const STORY: Request<NodeReference, Story> = {
  method: "shapetrace/story",
};

/** A range of a document, from a line and character to another, both counted from 0. */
export interface Place {
  readonly uri: string;
  readonly start: readonly [number, number];
  readonly end: readonly [number, number];
}

/** The source of a node's call; null where it is unknown, or no longer in the document. */
export interface Placed {
  readonly place: Place | null;
}

export const PLACE: Request<NodeReference, Placed> = {
  method: "shapetrace/place",
};

/** Sent when the trace tree has changed since it was last asked for. */
export const TRACE_CHANGED: ServerNotification<Empty> = {
  method: "shapetrace/traceChanged",
};

/** A call that is pinned, or can be. */
export interface Pin {
  /** Its id in the trace tree. */
  readonly node: string;
  readonly label: string;
  readonly description: string;
  /** Whether the newest run has not made this call yet. */
  readonly isWaiting: boolean;
}

/** The calls of a line. */
export interface Calls {
  readonly calls: readonly Pin[];
  /** The index of the call that is shown, if it is one of these. */
  readonly current: number | null;
}

export const CALLS: Request<DocumentPosition, Calls> = {
  method: "shapetrace/calls",
};

/** Asks to show the shapes of one call only; null shows all calls again. */
export interface PinQuestion {
  /** A node of the trace tree by its id. */
  readonly node: string | null;
}

/** Which call is pinned now, if any. */
export interface Pinned {
  readonly pin: Pin | null;
  /** The label of the call that was pinned, where the newest run has no such call. */
  readonly lost: string | null;
}

export const PIN: Request<PinQuestion, Pinned> = {
  method: "shapetrace/pin",
};

/** Asks to pin the next call of a line, or the one before. */
export interface StepCall extends DocumentPosition {
  readonly direction: 1 | -1;
}

export const STEP_CALL: Request<StepCall, Pinned> = {
  method: "shapetrace/stepCall",
};

/** Some lines of a document, counted from 0, the last one included. */
export interface Lines {
  readonly uri: string;
  readonly first: number;
  readonly last: number;
}

/** A text at the end of a line, counted from 0. */
export interface InlineValue {
  readonly line: number;
  readonly text: string;
}

/** The values at line ends while the program is stopped. */
export interface InlineValues {
  readonly values: readonly InlineValue[];
}

export const INLINE_VALUES: Request<Lines, InlineValues> = {
  method: "shapetrace/inlineValues",
};

/** Sent whenever a call is pinned, or none any more. */
export const PIN_CHANGED: ServerNotification<Pinned> = {
  method: "shapetrace/pinChanged",
};

/** A stop, as the agent's answer to the debugger names it. */
export interface StopReference {
  readonly session: string;
  /** The process id. */
  readonly process: number;
  readonly number: number;
}

/** Selects the stop to show; null where no frame of a stopped program is selected. */
export interface Focus {
  readonly stop?: StopReference | null;
}

/** A line of a source file, counted from 1. */
export interface SourceLine {
  readonly file: string;
  readonly line: number;
}

/** Where the selected frame is; null where nothing is known of the stop. */
export interface Focused {
  readonly place: SourceLine | null;
}

export const FOCUS: Request<Focus, Focused> = {
  method: "shapetrace/focus",
};

/** The paths to capture from the next session on, or the variables to watch; no others. */
export interface WantedRequests {
  readonly requests: readonly string[];
}

export const WANT_CAPTURES: ClientNotification<WantedRequests> = {
  method: "shapetrace/wantCaptures",
};

/** Asks for the paths of what a node of the trace tree made, or of what is at a position. */
export interface CapturePathsQuestion {
  readonly node?: string | null;
  readonly position?: DocumentPosition | null;
}

/** One path of a value. */
export interface CapturePath {
  readonly path: string;
  readonly description: string;
}

/** All paths of a value, the likeliest first. */
export interface CapturePaths {
  /** The value's name in the source; empty where there is nothing to capture. */
  readonly name: string;
  readonly paths: readonly CapturePath[];
}

export const CAPTURE_PATHS: Request<CapturePathsQuestion, CapturePaths> = {
  method: "shapetrace/capturePaths",
};

/** A path or variable that is being typed. */
export interface RequestToCheck {
  readonly request: string;
}

/** The problem of a request, and where it is; null where it is right. */
export interface CheckedRequest {
  readonly problem: string | null;
}

export const CHECK_PATH: Request<RequestToCheck, CheckedRequest> = {
  method: "shapetrace/checkPath",
};

/** Why nothing came of a request. */
export interface RequestProblem {
  readonly session: string;
  /** Empty where the problem is not about a single one. */
  readonly request: string;
  readonly message: string;
}

/** Sent when a program has nothing that a path could mean. */
export const CAPTURE_PROBLEM: ServerNotification<RequestProblem> = {
  method: "shapetrace/captureProblem",
};

export const WANT_WATCHES: ClientNotification<WantedRequests> = {
  method: "shapetrace/wantWatches",
};

/** The variable at a place of a document. */
export interface Watchable {
  /** As the source writes it; empty where there is nothing that can be watched. */
  readonly name: string;
  /** The qualified name of the function around it; empty at the level of the module. */
  readonly function: string;
}

export const WATCH_AT: Request<DocumentPosition, Watchable> = {
  method: "shapetrace/watchAt",
};

export const CHECK_WATCH: Request<RequestToCheck, CheckedRequest> = {
  method: "shapetrace/checkWatch",
};

/** Sent when no program of a session has a variable that is watched. */
export const WATCH_PROBLEM: ServerNotification<RequestProblem> = {
  method: "shapetrace/watchProblem",
};

/** Which traces to compare: files, or null for what the newest session recorded. */
export interface Compare {
  readonly a: string | null;
  readonly b: string | null;
}

/** A line of a source file, counted from 1. */
export interface ComparedPlace {
  readonly path: string;
  readonly line: number;
}

/** One difference. */
export interface ComparedCall {
  readonly kind: string;
  /** The module and the call. */
  readonly title: string;
  /** One difference. */
  readonly detail: string;
  /** The line in the left text, from 0. */
  readonly left: number;
  /** The line in the right text, from 0. */
  readonly right: number;
  readonly a: ComparedPlace | null;
  readonly b: ComparedPlace | null;
}

/** The differences between two traces. */
export interface Compared {
  /** Trace A as text, one line for each call; calls that are alike are equal lines in both. */
  readonly left: string;
  /** Trace B as text. */
  readonly right: string;
  readonly differences: readonly ComparedCall[];
  /** The index of the first difference that matters. */
  readonly first: number | null;
  readonly summary: string;
}

export const COMPARE: Request<Compare, Compared> = {
  method: "shapetrace/compare",
};
