/** Starting the bundled debug adapter for our own type. */
import { join } from "node:path";

import {
  type DebugAdapterDescriptor,
  type DebugAdapterDescriptorFactory,
  DebugAdapterExecutable,
  DebugAdapterServer,
  type DebugSession,
  type Uri,
} from "vscode";

import type { Interpreters } from "../client/interpreters";
import type { Folders } from "../folders";
import { explainChoice } from "../model/interpreters";
import { objectOf } from "./launchEnvironment";

export class AdapterFactory implements DebugAdapterDescriptorFactory {
  constructor(
    private readonly folders: Folders,
    private readonly interpreters: Interpreters,
    private readonly logs: Uri,
  ) {}

  async createDebugAdapterDescriptor(session: DebugSession): Promise<DebugAdapterDescriptor> {
    const { configuration } = session;
    const server = serverOf(configuration);
    if (server !== undefined) {
      return server;
    }
    const python = await this.#python(session);
    const logging = configuration["logToFile"] === true ? ["--log-dir", this.logs.fsPath] : [];
    const options = [...python.slice(1), join(this.folders.debugpy, "adapter"), ...logging];
    return new DebugAdapterExecutable(python[0], options, { env: environment() });
  }

  /** Any Python that runs can run the adapter, the program's own too. */
  async #python(session: DebugSession): Promise<readonly [string, ...string[]]> {
    const choice = await this.interpreters.forPrograms(session.workspaceFolder?.uri);
    if (choice.kind === "found" || choice.kind === "tooOld") {
      return choice.interpreter.command;
    }
    const { python }: Record<string, unknown> = session.configuration;
    const program: unknown = Array.isArray(python) ? python[0] : python;
    if (typeof program === "string" && program !== "") {
      return [program];
    }
    throw new Error(explainChoice(choice));
  }
}

/** gdb reads all libraries of a process otherwise, which takes it half a minute for those of torch. */
function environment(): Record<string, string> {
  const given = process.env[LIBRARIES_READ];
  return { [LIBRARIES_READ]: given ?? "libdl, libltdl, libc, libfreebl3" };
}

const LIBRARIES_READ = "PYDEVD_GDB_SCAN_SHARED_LIBRARIES";

/** The adapter that runs already: that of a parent process, or of a program that listens. */
function serverOf(configuration: DebugSession["configuration"]): DebugAdapterServer | undefined {
  if (configuration.request !== "attach") {
    return undefined;
  }
  const { host, port } = objectOf(configuration["connect"] ?? configuration);
  const number = Number(port);
  return Number.isInteger(number) && number > 0
    ? new DebugAdapterServer(number, typeof host === "string" ? host : "127.0.0.1")
    : undefined;
}
