/** The state that is kept between windows. */
import type { Memento } from "vscode";

import { readTarget, type Target } from "./model/target";

const TARGET = "traceTarget";
const FOLLOWS_CURSOR = "followsCursor";
const CAPTURE_PATHS = "capturePaths";
const WATCHED_NAMES = "watchedNames";
const HAS_SEEN_TRACE = "hasSeenTrace";
const HAS_SEEN_HINTS_NOTICE = "hasSeenInlayHintsNotice";

export class Memory {
  constructor(
    private readonly workspace: Memento,
    private readonly global: Memento,
  ) {}

  /** The last target that the user chose in this workspace. */
  get target(): Target | undefined {
    return readTarget(this.workspace.get(TARGET));
  }

  async rememberTarget(target: Target): Promise<void> {
    await this.workspace.update(TARGET, target);
  }

  /** Whether the trace tree follows the cursor. */
  get followsCursor(): boolean {
    return this.workspace.get(FOLLOWS_CURSOR) !== false;
  }

  async rememberFollowing(follows: boolean): Promise<void> {
    await this.workspace.update(FOLLOWS_CURSOR, follows);
  }

  /** The paths of values that are captured in this workspace. */
  get capturePaths(): readonly string[] {
    return this.#texts(CAPTURE_PATHS);
  }

  async rememberCapturePaths(paths: readonly string[]): Promise<void> {
    await this.workspace.update(CAPTURE_PATHS, paths);
  }

  /** The variables that are watched in this workspace. */
  get watchedNames(): readonly string[] {
    return this.#texts(WATCHED_NAMES);
  }

  async rememberWatchedNames(names: readonly string[]): Promise<void> {
    await this.workspace.update(WATCHED_NAMES, names);
  }

  /** Whether the trace tree was ever visible with a trace in it. */
  get hasSeenTrace(): boolean {
    return this.global.get(HAS_SEEN_TRACE) === true;
  }

  async rememberSeenTrace(): Promise<void> {
    await this.global.update(HAS_SEEN_TRACE, true);
  }

  get hasSeenHintsNotice(): boolean {
    return this.global.get(HAS_SEEN_HINTS_NOTICE) === true;
  }

  async rememberHintsNotice(): Promise<void> {
    await this.global.update(HAS_SEEN_HINTS_NOTICE, true);
  }

  #texts(key: string): readonly string[] {
    const texts: unknown = this.workspace.get(key);
    return Array.isArray(texts) ? texts.filter((text) => typeof text === "string") : [];
  }
}
