/** Building the language client around a server process that runs. */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";

import { CloseAction, ErrorAction, LanguageClient } from "vscode-languageclient/node";

import type { Log } from "../log";
import type { Initialization } from "../protocol.generated";
import type { ServerCommand } from "./serverCommand";
import type { LogOutputChannel } from "vscode";

/** How many of the server's last words are kept to explain its end. */
const LAST_WORDS = 12;

/** A server process, and the last output on its standard error. */
export interface ServerProcess {
  readonly child: ChildProcess;
  readonly lastWords: readonly string[];
}

/** Starts the server; fails where the program cannot be started at all. */
export async function startProcess(command: ServerCommand, log: Log): Promise<ServerProcess> {
  const child = spawn(command.program, command.parameters, {
    cwd: command.cwd,
    env: command.env,
    windowsHide: true,
  });
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", reject);
  });
  log.info(`server: process ${child.pid ?? "?"} runs ${command.program}`);
  const lastWords: string[] = [];
  createInterface({ input: child.stderr }).on("line", (line) => {
    log.info(`server: ${line}`);
    lastWords.splice(0, lastWords.length, ...lastWords.slice(1 - LAST_WORDS), line);
  });
  return { child, lastWords };
}

/** A client of that process, not yet started. `closed` is called when the process is gone. */
export function buildClient(
  server: ServerProcess,
  options: Initialization,
  log: LogOutputChannel,
  closed: () => void,
): LanguageClient {
  return new LanguageClient(
    "shapetrace",
    "Shapetrace",
    () => Promise.resolve({ process: server.child, detached: true }),
    {
      documentSelector: [{ scheme: "file", language: "python" }],
      initializationOptions: options,
      outputChannel: log,
      // Its standard error is read above.
      stdioOptions: { stdout: () => undefined, stderr: () => undefined },
      initializationFailedHandler: () => false,
      // The lifecycle alone decides what to do about a server that is gone.
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => {
          closed();
          const message = "The connection to the server is closed.";
          return { action: CloseAction.DoNotRestart, handled: true, message };
        },
      },
    },
  );
}
