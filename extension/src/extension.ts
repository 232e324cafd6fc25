/** Activation and deactivation: wiring only. */
import { debug, type ExtensionContext, window } from "vscode";

import { registerCommands } from "./commands";
import { HeadStart } from "./client/headStart";
import { Context } from "./context";
import { DebugType } from "./contributions";
import { AdapterFactory } from "./debug/adapter";
import { ArrivalTracker } from "./debug/arrival";
import { registerProviders } from "./debug/providers";
import { SilenceTracker } from "./debug/silence";
import { createLog, messageOf } from "./log";
import { maintainContextKeys } from "./views/contextKeys";
import { InlayHintsNotice } from "./views/inlayHintsNotice";
import { StoppedEditor } from "./views/stoppedEditor";
import { TraceNotice } from "./views/traceNotice";

let current: Context | undefined;

export function activate(extension: ExtensionContext): void {
  const log = createLog();
  extension.subscriptions.push(log);
  try {
    current = wire(extension, new Context(extension, log));
  } catch (error) {
    // VS Code itself would only write this to its log.
    void window.showErrorMessage(`Shapetrace could not be activated: ${messageOf(error)}`);
    throw error;
  }
}

export async function deactivate(): Promise<void> {
  await current?.shutDown();
  current = undefined;
}

function wire(extension: ExtensionContext, context: Context): Context {
  const { folders, interpreters, log, memory, reports, server, sessions, tree } = context;
  const adapters = new AdapterFactory(folders, interpreters, extension.logUri);
  const tracker = new SilenceTracker(
    sessions,
    (session, debugged) => {
      reports.explainSilence(session, debugged);
    },
    log,
  );
  const arrivals = new ArrivalTracker(folders, sessions, reports, log);
  extension.subscriptions.push(
    context,
    tracker,
    arrivals,
    maintainContextKeys(context),
    new InlayHintsNotice(sessions, memory),
    new TraceNotice(sessions, tree, memory),
    new HeadStart(server),
    new StoppedEditor(context),
    ...registerCommands(context),
    ...registerProviders(context),
    debug.registerDebugAdapterDescriptorFactory(DebugType.own, adapters),
    debug.registerDebugAdapterTrackerFactory("*", tracker),
    debug.registerDebugAdapterTrackerFactory("*", context.focus),
    debug.registerDebugAdapterTrackerFactory("*", arrivals),
  );
  void context.cleanUp();
  return context;
}
