/**
 * Every id that package.json contributes, declared once.
 *
 * A test compares all of them with package.json, in both directions. Imports no `vscode`.
 */
import { HINT_POSITIONS, type HintPosition } from "./protocol.generated";

/** The commands, by what they do. */
export const Command = {
  traceForwardPass: "shapetrace.traceForwardPass",
  traceForwardPassOf: "shapetrace.traceForwardPassOf",
  toggleHints: "shapetrace.toggleHints",
  clearHints: "shapetrace.clearHints",
  exportTrace: "shapetrace.exportTrace",
  selectInterpreter: "shapetrace.selectInterpreter",
  restartServer: "shapetrace.restartServer",
  showLog: "shapetrace.showLog",
  showActions: "shapetrace.showActions",
  openWalkthrough: "shapetrace.openWalkthrough",
  showTrace: "shapetrace.showTrace",
  pinCall: "shapetrace.pinCall",
  unpinCall: "shapetrace.unpinCall",
  previousCall: "shapetrace.previousCall",
  nextCall: "shapetrace.nextCall",
  goToCall: "shapetrace.goToCall",
  showMoreCalls: "shapetrace.showMoreCalls",
  filterTrace: "shapetrace.filterTrace",
  clearFilter: "shapetrace.clearFilter",
  followCursor: "shapetrace.followCursor",
  unfollowCursor: "shapetrace.unfollowCursor",
  captureValues: "shapetrace.captureValues",
  capturedValues: "shapetrace.capturedValues",
  stopCapturing: "shapetrace.stopCapturing",
  stopCapturingAll: "shapetrace.stopCapturingAll",
  compareTraces: "shapetrace.compareTraces",
  showDifferences: "shapetrace.showDifferences",
  nextDifference: "shapetrace.nextDifference",
  previousDifference: "shapetrace.previousDifference",
  openDifferingSources: "shapetrace.openDifferingSources",
  watchVariable: "shapetrace.watchVariable",
  stopWatching: "shapetrace.stopWatching",
  stopWatchingAll: "shapetrace.stopWatchingAll",
  /** Only for `${command:pickProcess}` in debug configurations. */
  pickProcess: "shapetrace.pickProcess",
} as const;

export type Command = (typeof Command)[keyof typeof Command];

/** The settings' types, by their ids without the leading `shapetrace.`. */
export interface Settings {
  readonly interpreter: string;
  readonly "trace.afterPass": AfterPass;
  readonly "trace.level": Level;
  readonly "trace.console": ProgramConsole;
  readonly "debug.traceDebugpySessions": boolean;
  readonly "hints.position": HintPosition;
  readonly "hints.maximumLength": number;
  readonly "hints.parameters": boolean;
  readonly "codeLens.enabled": boolean;
  readonly "hover.enabled": boolean;
  readonly "variables.enabled": boolean;
}

export type AfterPass = "stop" | "continue";
export type Level = "torch" | "aten";
export type ProgramConsole = "internalConsole" | "integratedTerminal" | "externalTerminal";

/** The defaults for settings that are absent or have an invalid value. */
export const SETTING_DEFAULTS: Settings = {
  interpreter: "",
  "trace.afterPass": "stop",
  "trace.level": "torch",
  "trace.console": "integratedTerminal",
  "debug.traceDebugpySessions": true,
  "hints.position": "lineEnd",
  "hints.maximumLength": 43,
  "hints.parameters": true,
  "codeLens.enabled": true,
  "hover.enabled": true,
  "variables.enabled": true,
};

/** The values that a setting may have, where these are few. */
export const SETTING_CHOICES: { readonly [K in keyof Settings]?: readonly Settings[K][] } = {
  "trace.afterPass": ["stop", "continue"],
  "trace.level": ["torch", "aten"],
  "trace.console": ["integratedTerminal", "internalConsole", "externalTerminal"],
  "hints.position": HINT_POSITIONS,
};

/** The section of the settings, and the prefix of every id. */
export const SECTION = "shapetrace";

/** The context keys for `when` clauses of package.json. */
export const ContextKey = {
  /** Hints of some run are there. */
  hasTrace: "shapetrace.hasTrace",
  /** A debug session whose program is watched is running. */
  isRecording: "shapetrace.isRecording",
  /** No other extension debugs Python here, so that F5 on a Python file should be ours. */
  isAlone: "shapetrace.isAlone",
  /** The extension is active: the user works with Python here. */
  isActive: "shapetrace.isActive",
  /** The shapes of one call only are shown. */
  hasPin: "shapetrace.hasPin",
  /** Only some nodes of the trace tree are shown. */
  isFiltered: "shapetrace.isFiltered",
  /** Values are captured from the next session on. */
  hasCaptures: "shapetrace.hasCaptures",
  /** Two traces are compared. */
  hasComparison: "shapetrace.hasComparison",
  /** Variables are watched. */
  hasWatches: "shapetrace.hasWatches",
  /** The trace tree shows what was made where the cursor is. */
  isFollowingCursor: "shapetrace.isFollowingCursor",
} as const;

export type ContextKey = (typeof ContextKey)[keyof typeof ContextKey];

/** The views, by what they show. */
export const View = { trace: "shapetrace.trace" } as const;

/** The debug types. */
export const DebugType = {
  own: "shapetrace",
  /**
   * Offered for Python files where we are alone, and resolved to `own`. VS Code takes only the first
   * contribution of a type from an extension, so the one with `languages` needs a name of its own.
   */
  alone: "shapetrace-alone",
} as const;

/** The debug types of Microsoft's Python Debugger, now and formerly. */
export const FOREIGN_DEBUG_TYPES: readonly string[] = ["debugpy", "python"];

/** The walkthrough, as `workbench.action.openWalkthrough` wants it. */
export const WALKTHROUGH = "start";
