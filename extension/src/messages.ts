/** Notifications with the buttons that they offer. */
import { commands, window } from "vscode";

import { Command } from "./contributions";
import { type Explanation, explainOtherMachine } from "./model/explanations";
import { type Choice, explainChoice } from "./model/interpreters";

/** A button of a message. */
interface Action {
  readonly title: string;
  readonly command: Command | "workbench.action.debug.configure";
}

const SELECT: Action = { title: "Select Interpreter", command: Command.selectInterpreter };
const SHOW_LOG: Action = { title: "Show Log", command: Command.showLog };
const CONFIGURE: Action = {
  title: "Open launch.json",
  command: "workbench.action.debug.configure",
};
const RESTART: Action = { title: "Restart Server", command: Command.restartServer };
const RUN_OTHER: Action = { title: "Run Another Program...", command: Command.traceForwardPassOf };
const TRACE: Action = { title: "Trace Forward Pass", command: Command.traceForwardPass };
const DIFFERENCES: Action = { title: "Differences...", command: Command.showDifferences };
const SOURCES: Action = { title: "Open Sources", command: Command.openDifferingSources };
const CAPTURED: Action = { title: "Captured Values...", command: Command.capturedValues };

const SHOW_TRACE: Action = { title: "Show Trace", command: Command.showTrace };
const STOP_WATCHING: Action = { title: "Watched Variables...", command: Command.stopWatching };

type Show = (text: string, ...actions: Action[]) => Thenable<Action | undefined>;

/** Messages are shown and not waited for, unless the caller wants to know when they are gone. */
export class Messages {
  readonly #said = new Set<string>();

  info(text: string): Promise<void> {
    return offer(window.showInformationMessage, text);
  }

  warn(text: string): Promise<void> {
    return offer(window.showWarningMessage, text);
  }

  error(text: string): Promise<void> {
    return offer(window.showErrorMessage, text, SHOW_LOG);
  }

  /** An error of the program's own; `show` shows the line that it came from. */
  async raised(text: string, show: (() => Thenable<unknown>) | undefined): Promise<void> {
    const button = "Show Line";
    const chosen = await window.showErrorMessage(text, ...(show === undefined ? [] : [button]));
    if (chosen === button) {
      await show?.();
    }
  }

  badInterpreter(choice: Exclude<Choice, { kind: "found" }>): Promise<void> {
    return offer(window.showErrorMessage, explainChoice(choice), SELECT);
  }

  noServer(reason: string): Promise<void> {
    const text = `No shapes will be shown: ${reason}`;
    return offer(window.showErrorMessage, text, SELECT, RESTART, SHOW_LOG);
  }

  noTorch(python: string): Promise<void> {
    return offer(window.showErrorMessage, noTorchInWords(python), SELECT);
  }

  /** Asks before a program is started without torch; returns whether to start it. */
  async runWithoutTorch(python: string): Promise<boolean> {
    const run = { title: "Run Anyway" };
    const chosen = await window.showErrorMessage(noTorchInWords(python), SELECT, run);
    if (chosen === SELECT) {
      await commands.executeCommand(SELECT.command);
    }
    return chosen === run;
  }

  noForward(text: string): Promise<void> {
    return offer(window.showWarningMessage, text, RUN_OTHER);
  }

  unsupported(text: string): Promise<void> {
    return offer(window.showWarningMessage, text, SELECT);
  }

  silence({ text, isConfigured }: Explanation): Promise<void> {
    const remedy = isConfigured ? CONFIGURE : SELECT;
    return offer(window.showWarningMessage, text, remedy, SHOW_LOG);
  }

  /** Says what will be captured; a running program has to be started again for it. */
  willBeCaptured(text: string, isRunning: boolean): Promise<void> {
    const actions = isRunning ? [CAPTURED] : [TRACE, CAPTURED];
    return offer(window.showInformationMessage, text, ...actions);
  }

  /** Says what two traces differ in. */
  compared(text: string, isDifferent: boolean): Promise<void> {
    return offer(
      window.showInformationMessage,
      text,
      ...(isDifferent ? [DIFFERENCES, SOURCES] : []),
    );
  }

  notCaptured(text: string): Promise<void> {
    return offer(window.showWarningMessage, text, CAPTURED);
  }

  /** Says that a variable is watched; where it is to be seen depends on whether a program runs. */
  isWatched(text: string, isRunning: boolean): Promise<void> {
    return offer(window.showInformationMessage, text, ...(isRunning ? [SHOW_TRACE] : []));
  }

  notWatched(text: string): Promise<void> {
    return offer(window.showWarningMessage, text, STOP_WATCHING);
  }

  otherMachine(name: string, machine: string): Promise<void> {
    return this.#once(machine, explainOtherMachine(name, machine));
  }

  obstacle(text: string): Promise<void> {
    return this.#once(text, text, SHOW_LOG);
  }

  /** Says something only the first time in this window. */
  #once(key: string, text: string, ...actions: Action[]): Promise<void> {
    if (this.#said.has(key)) {
      return Promise.resolve();
    }
    this.#said.add(key);
    return offer(window.showWarningMessage, text, ...actions);
  }

  async untrusted(): Promise<void> {
    const manage = "Manage Workspace Trust";
    const chosen = await window.showWarningMessage(
      "Shapetrace runs your program, and this folder is not trusted. " +
        "Trust it if you know where its code comes from.",
      manage,
    );
    if (chosen === manage) {
      await commands.executeCommand("workbench.trust.manage");
    }
  }
}

async function offer(show: Show, text: string, ...actions: Action[]): Promise<void> {
  const chosen = await show(text, ...actions);
  if (chosen !== undefined) {
    await commands.executeCommand(chosen.command);
  }
}

function noTorchInWords(python: string): string {
  return (
    `PyTorch is not installed in ${python}. ` +
    "Select the interpreter that has it, or install it there."
  );
}
