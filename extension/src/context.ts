/** The one long-lived object: everything that lives from activation to deactivation. */
import { randomBytes } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";

import { type Disposable, type ExtensionContext, type LogOutputChannel } from "vscode";

import { Captures } from "./captures";
import { Interpreters } from "./client/interpreters";
import { Server } from "./client/server";
import { Comparisons } from "./comparisons";
import { Config } from "./config";
import { Focus } from "./debug/focus";
import { Preparation } from "./debug/preparation";
import { Reports } from "./debug/reports";
import { Sessions } from "./debug/sessions";
import { type Folders, foldersOf } from "./folders";
import { messageOf } from "./log";
import { Messages } from "./messages";
import { Memory } from "./memory";
import { Pins } from "./pins";
import { isRunning } from "./processes";
import { Status } from "./status";
import { FollowCursor } from "./views/followCursor";
import { TraceTree } from "./views/traceTree";
import { Watches } from "./watches";

export class Context implements Disposable {
  readonly config = new Config();
  readonly messages = new Messages();
  readonly folders: Folders;
  readonly interpreters: Interpreters;
  readonly server: Server;
  readonly sessions: Sessions;
  readonly focus: Focus;
  readonly preparation: Preparation;
  readonly reports: Reports;
  readonly memory: Memory;
  readonly pins: Pins;
  readonly captures: Captures;
  readonly comparisons = new Comparisons();
  readonly watches: Watches;
  readonly tree: TraceTree;
  readonly follower: FollowCursor;
  readonly #disposables: Disposable[];

  constructor(
    readonly extension: ExtensionContext,
    readonly log: LogOutputChannel,
  ) {
    // A process id may come again, and what another window left must not be taken for ours.
    const window = `${process.pid}-${randomBytes(4).toString("hex")}-${hostname()}`;
    const storage = extension.globalStorageUri.fsPath;
    this.folders = foldersOf(extension.extensionPath, storage, window);
    this.memory = new Memory(extension.workspaceState, extension.globalState);
    this.interpreters = new Interpreters(this.config, log);
    this.server = new Server(this.folders, this.config, this.interpreters, log);
    this.sessions = new Sessions(this.server, log);
    this.focus = new Focus(this.sessions, this.server, log);
    this.captures = new Captures(this.memory, this.server, this.messages);
    this.watches = new Watches(this.memory, this.server, this.messages);
    this.preparation = new Preparation(this.config, this.folders, this.sessions, this, log);
    this.reports = new Reports(this.sessions, this.messages, log);
    this.pins = new Pins(this.server, this.messages);
    this.tree = new TraceTree(this.server, this.pins, this, log);
    this.follower = new FollowCursor(this.tree, this.focus, this.memory, log);
    this.#disposables = [
      ...[this.follower, this.tree, this.pins, this.captures, this.comparisons, this.watches],
      new Status(this),
      ...[this.focus, this.reports, this.sessions, this.server, this.interpreters],
    ];
  }

  /** Removes what other windows left behind that did not get to it themselves. */
  async cleanUp(): Promise<void> {
    try {
      const { windows } = this.folders;
      const left = await readdir(windows).catch(() => []);
      // Several machines may share a home folder: of their processes nothing is known here.
      const own = left.filter((id) => id.endsWith(`-${hostname()}`));
      for (const window of own.filter((id) => !isRunning(Number.parseInt(id, 10)))) {
        await rm(join(windows, window), { recursive: true, force: true });
      }
    } catch (error) {
      this.log.warn(`the storage was not cleaned up: ${messageOf(error)}`);
    }
  }

  async shutDown(): Promise<void> {
    await this.server.shutDown();
    await rm(this.folders.storage, { recursive: true, force: true });
  }

  dispose(): void {
    for (const disposable of this.#disposables) {
      disposable.dispose();
    }
  }
}
