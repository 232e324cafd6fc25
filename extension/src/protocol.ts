/**
 * The messages between this extension and the language server beyond LSP's own.
 *
 * Mirrors `python_backend/shapetrace/server/protocol.py`; both sides decode the samples in
 * `tests/contract/editor`. Imports no `vscode`.
 */
import type { HintPosition } from "./contributions";
import {
  type Form,
  integer,
  type JsonObject,
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

export interface Woken {
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

const woken = record<Woken>({ processes: { key: "processes", form: integer } });

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
export const WAKE = request<{ readonly session: string }, Woken>("shapetrace/wake", woken);

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
