/** Keeps the context keys that package.json's `when` clauses ask. */
import { commands, Disposable, extensions } from "vscode";

import type { Context } from "../context";
import { ContextKey, FOREIGN_DEBUG_TYPES } from "../contributions";
import { property } from "../model/interpreters";

export function maintainContextKeys(context: Context): Disposable {
  const { captures, comparisons, follower, pins, sessions, tree, watches } = context;
  const values = new Map<ContextKey, boolean>();
  const set = (key: ContextKey, value: boolean) => {
    if (values.get(key) !== value) {
      values.set(key, value);
      void commands.executeCommand("setContext", key, value);
    }
  };
  const updateSessions = () => {
    set(ContextKey.hasTrace, sessions.hasTrace);
    set(ContextKey.isRecording, sessions.openSessions.length > 0);
  };
  const updateExtensions = () => {
    set(ContextKey.isAlone, !isPythonDebuggedByOthers());
  };
  const updateViews = () => {
    set(ContextKey.hasPin, pins.current !== null);
    set(ContextKey.isFiltered, tree.filter !== "");
    set(ContextKey.isFollowingCursor, follower.isFollowing);
    set(ContextKey.hasCaptures, captures.wanted.length > 0);
    set(ContextKey.hasComparison, comparisons.current !== undefined);
    set(ContextKey.hasWatches, watches.wanted.length > 0);
  };
  set(ContextKey.isActive, true);
  updateSessions();
  updateExtensions();
  updateViews();
  return Disposable.from(
    sessions.onDidChange(updateSessions),
    extensions.onDidChange(updateExtensions),
    pins.onDidChange(updateViews),
    captures.onDidChange(updateViews),
    comparisons.onDidChangeCurrent(updateViews),
    watches.onDidChange(updateViews),
    tree.onDidChangeState(updateViews),
    follower.onDidChange(updateViews),
  );
}

/** Returns whether another extension contributes one of the debug types for Python. */
function isPythonDebuggedByOthers(): boolean {
  return extensions.all.some((extension) => {
    const debuggers = property(property(extension.packageJSON, "contributes"), "debuggers");
    return (
      Array.isArray(debuggers) &&
      debuggers.some((each) => FOREIGN_DEBUG_TYPES.includes(String(property(each, "type"))))
    );
  });
}
