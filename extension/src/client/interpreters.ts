/** Choosing the Python that runs programs, and the one that runs the language server. */
import { existsSync } from "node:fs";
import { join } from "node:path";

import {
  type Disposable,
  type Event,
  EventEmitter,
  extensions,
  Uri,
  workspace,
  type WorkspaceFolder,
} from "vscode";

import type { Config } from "../config";
import { type Log, messageOf } from "../log";
import {
  type Asked,
  type Candidate,
  type Choice,
  choose,
  chooseForServer,
  commandOfEnvironment,
  pathOfEnvironment,
  property,
} from "../model/interpreters";
import { expandVariables } from "../model/paths";
import { askVersion } from "./python";

/** Neither of them is needed; where they are, the user has chosen a Python there. */
const ENVIRONMENTS_EXTENSION = "ms-python.vscode-python-envs";
const PYTHON_EXTENSION = "ms-python.python";

/** Another extension that does not answer for so long is not waited for. */
const PATIENCE_MILLISECONDS = 8_000;

const WINDOWS = process.platform === "win32";

/** Finds interpreters; a version once asked is remembered until something changes. */
export class Interpreters implements Disposable {
  readonly #asked = new Map<string, Promise<Asked>>();
  readonly #changed = new EventEmitter<void>();
  readonly #disposables: Disposable[] = [this.#changed];

  readonly onDidChange: Event<void> = this.#changed.event;

  constructor(
    private readonly config: Config,
    private readonly log: Log,
  ) {
    const forget = () => {
      this.#asked.clear();
      this.#changed.fire();
    };
    this.#disposables.push(
      config.onDidChange(["interpreter"], forget),
      extensions.onDidChange(forget),
    );
  }

  /** The Python that runs the programs of a file or folder. */
  async forPrograms(scope: Uri | undefined): Promise<Choice> {
    const asked: Asked[] = [];
    for await (const candidate of this.#candidates(scope)) {
      asked.push(await this.ask(candidate));
      const choice = choose(asked);
      if (choice.kind !== "none") {
        return choice;
      }
    }
    return choose(asked);
  }

  /** The Python that runs the language server. */
  async forServer(): Promise<Choice> {
    const asked: Asked[] = [];
    for await (const candidate of this.#candidates(workspace.workspaceFolders?.[0]?.uri)) {
      asked.push(await this.ask(candidate));
      const choice = chooseForServer(asked);
      if (choice.kind === "found") {
        return choice;
      }
    }
    return chooseForServer(asked);
  }

  /** The version of a Python, or why it has none. */
  async ask(candidate: Candidate): Promise<Asked> {
    const key = candidate.command.join("\0");
    const asked = this.#asked.get(key) ?? askVersion(candidate);
    this.#asked.set(key, asked);
    const answer = await asked;
    if ("failure" in answer) {
      this.#asked.delete(key); // It may be installed the next time.
      this.log.debug(`${candidate.command.join(" ")}: ${answer.failure}`);
      return { candidate, failure: answer.failure };
    }
    return { candidate, version: answer.version };
  }

  /** Every Python there is to offer, without asking whether it runs. */
  async all(scope: Uri | undefined): Promise<readonly Candidate[]> {
    const candidates: Candidate[] = [];
    for await (const candidate of this.#candidates(scope)) {
      candidates.push(candidate);
    }
    return candidates;
  }

  dispose(): void {
    for (const disposable of this.#disposables) {
      disposable.dispose();
    }
  }

  async *#candidates(scope: Uri | undefined): AsyncGenerator<Candidate> {
    const folder = folderOf(scope);
    const setting = this.config.get("interpreter", scope ?? folder?.uri).trim();
    if (setting !== "") {
      const path = expandVariables(setting, folder?.uri.fsPath, process.env);
      yield { command: [path], source: "setting" };
    }
    const environment = await this.#fromEnvironmentsExtension(scope ?? folder?.uri);
    if (environment !== undefined) {
      yield { command: environment, source: "environments extension" };
    }
    const active = await this.#fromPythonExtension(scope ?? folder?.uri);
    if (active !== undefined) {
      yield { command: [active], source: "Python extension" };
    }
    // An interpreter in a folder is only run if the folder is trusted.
    const path = workspace.isTrusted ? folder?.uri.fsPath : undefined;
    for (const found of path === undefined ? [] : environmentsIn(path)) {
      yield { command: [found], source: "folder" };
    }
    yield { command: ["python3"], source: "PATH" };
    yield { command: ["python"], source: "PATH" };
    if (WINDOWS) {
      yield { command: ["py", "-3"], source: "PATH" };
    }
  }

  async #fromEnvironmentsExtension(scope: Uri | undefined) {
    const environment = await this.#ask(ENVIRONMENTS_EXTENSION, (api) =>
      call(api, "getEnvironment", scope),
    );
    return commandOfEnvironment(environment);
  }

  async #fromPythonExtension(scope: Uri | undefined): Promise<string | undefined> {
    const environment = await this.#ask(PYTHON_EXTENSION, async (api) => {
      const environments = property(api, "environments");
      const path = await call(environments, "getActiveEnvironmentPath", scope);
      return call(environments, "resolveEnvironment", path);
    });
    return pathOfEnvironment(environment);
  }

  /** The answer of another extension; undefined if it is absent, fails or does not answer. */
  async #ask(id: string, question: (api: unknown) => Promise<unknown>): Promise<unknown> {
    const extension = extensions.getExtension<unknown>(id);
    if (extension === undefined) {
      return undefined;
    }
    try {
      return await within(
        PATIENCE_MILLISECONDS,
        Promise.resolve(extension.activate()).then(question),
      );
    } catch (error) {
      this.log.warn(`${id} did not tell which Python is chosen: ${messageOf(error)}`);
      return undefined;
    }
  }
}

/** The folder that a file is in; the first one where it is in none. */
export function folderOf(scope: Uri | undefined): WorkspaceFolder | undefined {
  const folder = scope === undefined ? undefined : workspace.getWorkspaceFolder(scope);
  return folder ?? workspace.workspaceFolders?.[0];
}

function environmentsIn(folder: string): string[] {
  const program = WINDOWS ? join("Scripts", "python.exe") : join("bin", "python");
  return [".venv", "venv"].map((name) => join(folder, name, program)).filter(existsSync);
}

async function call(api: unknown, method: string, argument: unknown): Promise<unknown> {
  const implementation = property(api, method);
  if (typeof implementation !== "function") {
    throw new Error(`it has no ${method}`);
  }
  const result: unknown = await Reflect.apply(implementation, api, [argument]);
  return result;
}

async function within<T>(milliseconds: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`no answer in ${milliseconds / 1000} seconds`));
    }, milliseconds);
  });
  try {
    return await Promise.race([promise, tooLate]);
  } finally {
    clearTimeout(timer);
  }
}
