/** The language server's life: started when it is first needed, and again when it dies. */
import { mkdirSync } from "node:fs";

import {
  type Disposable,
  type Event,
  EventEmitter,
  type LogOutputChannel,
  workspace,
} from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";

import { type Config, SERVER_SETTINGS } from "../config";
import type { Folders } from "../folders";
import { messageOf } from "../log";
import { Crashes } from "../model/crashes";
import { explainChoice } from "../model/interpreters";
import {
  CAPTURE_PROBLEM,
  type ClientNotification,
  type Options,
  PIN_CHANGED,
  type Pinned,
  type Request,
  type RequestProblem,
  type ServerNotification,
  SHOW_HINTS,
  STATUS,
  type Status,
  TRACE_CHANGED,
  WANT_CAPTURES,
  WANT_WATCHES,
  WATCH_PROBLEM,
} from "../protocol.generated";
import type { Interpreters } from "./interpreters";
import type { ServerProcess } from "./languageClient";
import { serverCommand } from "./serverCommand";

export type ServerState =
  | { readonly kind: "stopped" }
  | { readonly kind: "starting" }
  | { readonly kind: "running" }
  | { readonly kind: "failed"; readonly reason: string };

/** There is no server, and the message says why and what to do. */
export class ServerError extends Error {}

/** One of LSP's own messages. */
const SETTINGS_CHANGED: ClientNotification<{ settings: { shapetrace: Options } }> = {
  method: "workspace/didChangeConfiguration",
};

/** How long a server may take to end by itself. */
const FAREWELL_MILLISECONDS = 2_000;

interface Running {
  readonly client: LanguageClient;
  readonly process: ServerProcess;
}

export class Server implements Disposable {
  #state: ServerState = { kind: "stopped" };
  #running: Promise<Running> | undefined;
  #isVisible = true;
  #captures: readonly string[] = [];
  #watches: readonly string[] = [];
  readonly #crashes = new Crashes();
  readonly #stateChanged = new EventEmitter<ServerState>();
  readonly #restarted = new EventEmitter<void>();
  readonly #statusReceived = new EventEmitter<Status>();
  readonly #traceChanged = new EventEmitter<void>();
  readonly #pinChanged = new EventEmitter<Pinned>();
  readonly #captureProblemReceived = new EventEmitter<RequestProblem>();
  readonly #watchProblemReceived = new EventEmitter<RequestProblem>();
  readonly #disposables: Disposable[];

  readonly onDidChangeState: Event<ServerState> = this.#stateChanged.event;
  /** A new server runs in place of one that was lost: it knows nothing of open sessions. */
  readonly onDidRestart: Event<void> = this.#restarted.event;
  readonly onDidReceiveStatus: Event<Status> = this.#statusReceived.event;
  /** The trace tree is no longer as it was when it was last asked for. */
  readonly onDidChangeTrace: Event<void> = this.#traceChanged.event;
  readonly onDidChangePin: Event<Pinned> = this.#pinChanged.event;
  /** A program has nothing of a name that is watched. */
  readonly onDidReceiveWatchProblem: Event<RequestProblem> = this.#watchProblemReceived.event;
  /** A program has nothing that a path of captured values could mean. */
  readonly onDidReceiveCaptureProblem: Event<RequestProblem> = this.#captureProblemReceived.event;

  constructor(
    private readonly folders: Folders,
    private readonly config: Config,
    private readonly interpreters: Interpreters,
    private readonly log: LogOutputChannel,
  ) {
    this.#disposables = [
      config.onDidChange(SERVER_SETTINGS, () => {
        this.#sendSettings();
      }),
      interpreters.onDidChange(() => {
        if (this.#state.kind === "failed") {
          this.#set({ kind: "stopped" }); // The reason may be gone: the next use tries again.
        }
      }),
    ];
  }

  get state(): ServerState {
    return this.#state;
  }

  get areHintsVisible(): boolean {
    return this.#isVisible;
  }

  /** Sends a request, and starts the server for it if need be. */
  async request<Parameters, Result>(
    { method }: Request<Parameters, Result>,
    parameters: NoInfer<Parameters>,
  ): Promise<Result> {
    const { client } = await this.#ensure();
    return client.sendRequest<Result>(method, parameters);
  }

  /** Like `request`, but returns undefined if no server runs. */
  async requestIfRunning<Parameters, Result>(
    request: Request<Parameters, Result>,
    parameters: NoInfer<Parameters>,
  ): Promise<Result | undefined> {
    return this.#running === undefined ? undefined : this.request(request, parameters);
  }

  /** Starts the server though nothing is asked of it yet; where that fails, the next use tries again. */
  async startInBackground(): Promise<void> {
    try {
      await this.#ensure();
    } catch (error) {
      this.log.warn(`server: not started yet: ${messageOf(error)}`);
    }
  }

  showHints(visible: boolean): void {
    this.#isVisible = visible;
    this.#notify(SHOW_HINTS, { visible });
  }

  /** Tells which values are to be captured from the next session on. */
  wantCaptures(paths: readonly string[]): void {
    this.#captures = paths;
    this.#notify(WANT_CAPTURES, { requests: paths });
  }

  /** Tells which variables are watched from now on. */
  wantWatches(names: readonly string[]): void {
    this.#watches = names;
    this.#notify(WANT_WATCHES, { requests: names });
  }

  async restart(): Promise<void> {
    this.#crashes.forget();
    await this.#stop();
    await this.#ensure();
    this.#restarted.fire();
  }

  async shutDown(): Promise<void> {
    await this.#stop();
  }

  dispose(): void {
    for (const disposable of [
      ...this.#disposables,
      this.#stateChanged,
      this.#restarted,
      this.#statusReceived,
      this.#traceChanged,
      this.#pinChanged,
      this.#captureProblemReceived,
      this.#watchProblemReceived,
    ]) {
      disposable.dispose();
    }
  }

  #ensure(): Promise<Running> {
    this.#running ??= this.#start().catch((error: unknown) => {
      this.#running = undefined;
      this.#set({ kind: "failed", reason: messageOf(error) });
      throw error;
    });
    return this.#running;
  }

  async #start(): Promise<Running> {
    if (!workspace.isTrusted) {
      throw new ServerError("This folder is not trusted. Shapetrace does not run there.");
    }
    this.#set({ kind: "starting" });
    const choice = await this.interpreters.forServer();
    if (choice.kind !== "found") {
      throw new ServerError(explainChoice(choice));
    }
    mkdirSync(this.folders.storage, { recursive: true });
    const command = serverCommand(choice.interpreter.command, this.folders, process.env);
    // Not before now: the client is most of the extension's code, and activation need not wait.
    const { buildClient, startProcess } = await import("./languageClient");
    const settings = this.config.forServer();
    const server = await startProcess(command, this.log);
    const captures = this.#captures;
    const watches = this.#watches;
    const options = { storage: this.folders.storage, settings, captures, watches };
    const client = buildClient(server, options, this.log, () => {
      this.#lost(server);
    });
    listen(client, STATUS, this.#statusReceived);
    listen(client, PIN_CHANGED, this.#pinChanged);
    listen(client, CAPTURE_PROBLEM, this.#captureProblemReceived);
    listen(client, WATCH_PROBLEM, this.#watchProblemReceived);
    client.onNotification(TRACE_CHANGED.method, () => {
      this.#traceChanged.fire();
    });
    try {
      await client.start();
    } catch (error) {
      server.child.kill();
      const words = server.lastWords.at(-1) ?? messageOf(error);
      throw new ServerError(`The language server did not start (${words}). See the log.`);
    }
    this.#set({ kind: "running" });
    if (captures !== this.#captures) {
      await send(client, WANT_CAPTURES, { requests: this.#captures });
    }
    if (watches !== this.#watches) {
      await send(client, WANT_WATCHES, { requests: this.#watches });
    }
    if (!this.#isVisible) {
      await send(client, SHOW_HINTS, { visible: false });
    }
    return { client, process: server };
  }

  async #stop(): Promise<void> {
    const running = await this.#running?.catch(() => undefined);
    this.#running = undefined;
    if (running !== undefined) {
      const { child } = running.process;
      await running.client.stop(FAREWELL_MILLISECONDS).catch((error: unknown) => {
        this.log.warn(`server: did not stop by itself: ${messageOf(error)}`);
      });
      if (child.exitCode === null && child.signalCode === null) {
        setTimeout(() => child.kill("SIGKILL"), FAREWELL_MILLISECONDS).unref();
      }
    }
    // Something may have been asked of it in the meantime, and another one been started.
    if (!this.#isWanted()) {
      this.#set({ kind: "stopped" });
    }
  }

  #isWanted(): boolean {
    return this.#running !== undefined;
  }

  /** The process ended unexpectedly. */
  #lost(server: ServerProcess): void {
    if (this.#state.kind !== "running") {
      return; // It is being stopped, or its start failed, which is reported there.
    }
    server.child.kill();
    this.#running = undefined;
    const words = server.lastWords.at(-1);
    this.log.error(`server: ended unexpectedly${words === undefined ? "" : `: ${words}`}`);
    if (!this.#crashes.note(Date.now())) {
      const reason = "The language server keeps stopping. See the log.";
      this.#set({ kind: "failed", reason });
      return;
    }
    this.#ensure().then(
      () => {
        this.#restarted.fire();
      },
      (error: unknown) => {
        this.log.error(`server: not restarted: ${messageOf(error)}`);
      },
    );
  }

  #sendSettings(): void {
    this.#notify(SETTINGS_CHANGED, { settings: { shapetrace: this.config.forServer() } });
  }

  /** Notifies a running server; one that is not running gets it when it starts. */
  #notify<Parameters>(
    message: ClientNotification<Parameters>,
    parameters: NoInfer<Parameters>,
  ): void {
    this.#running
      ?.then(({ client }) => send(client, message, parameters))
      .catch((error: unknown) => {
        this.log.warn(`server: ${message.method} was not sent: ${messageOf(error)}`);
      });
  }

  #set(state: ServerState): void {
    this.#state = state;
    this.#stateChanged.fire(state);
  }
}

function send<Parameters>(
  client: LanguageClient,
  { method }: ClientNotification<Parameters>,
  parameters: NoInfer<Parameters>,
): Promise<void> {
  return client.sendNotification(method, parameters);
}

function listen<Parameters>(
  client: LanguageClient,
  { method }: ServerNotification<Parameters>,
  received: EventEmitter<Parameters>,
): void {
  client.onNotification(method, (parameters: Parameters) => {
    received.fire(parameters);
  });
}
