/** Evaluates an expression in the selected stack frame, and records it. */
import { randomInt } from "node:crypto";

import {
  type CancellationToken,
  debug,
  type DebugStackFrame,
  ProgressLocation,
  Range,
  Uri,
  window,
} from "vscode";

import type { Context } from "../context";
import { messageOf } from "../log";
import {
  type Outcome,
  outcomeInWords,
  outcomeOf,
  readOutcome,
  runIn,
  shortExpression,
} from "../model/evaluation";
import { property } from "../model/interpreters";
import { CANCEL_EVALUATION } from "../protocol.generated";
import type { StoppedFrame } from "./focus";
import type { WatchedSession } from "./sessions";

/** Evaluations that are shorter than this show no progress. */
const PATIENCE_MILLISECONDS = 700;

/** Of evaluations; several windows may know one program. */
const MOST_NUMBER = 2 ** 31;

/** Milliseconds for which the outcome is shown in the status bar. */
const TOLD_MILLISECONDS = 15_000;

/** Evaluates an expression where the program is stopped, and shows the outcome. */
export async function evaluateIn(
  context: Context,
  { frame, session }: StoppedFrame,
  expression: string,
): Promise<void> {
  const number = randomInt(MOST_NUMBER);
  const { log, messages } = context;
  const running = run(frame, number, expression);
  void showIfSlow(running, shortExpression(expression), () => {
    void cancel(context, session, number);
  });
  try {
    const outcome = await running;
    if (outcome === undefined) {
      await messages.info("The program has continued. Nothing was evaluated.");
      return;
    }
    await tell(context, expression, outcome);
  } catch (error) {
    log.warn(`${session.name}: ${expression} was not evaluated: ${messageOf(error)}`);
    if (session.isOpen) {
      await messages.error(`${shortExpression(expression)} was not evaluated: ${messageOf(error)}`);
    }
  }
}

async function run(
  { session, frameId }: DebugStackFrame,
  number: number,
  expression: string,
): Promise<Outcome | undefined> {
  // As typed into the debug console: what it prints is seen, and no warning is hidden.
  const context = "repl";
  await session.customRequest("evaluate", {
    expression: runIn(frameId, number, expression),
    frameId,
    context,
  });
  const answer: unknown = await session.customRequest("evaluate", {
    expression: outcomeOf(number),
    context,
  });
  return readOutcome(String(property(answer, "result")));
}

async function tell({ messages }: Context, expression: string, outcome: Outcome): Promise<void> {
  const text = outcomeInWords(expression, outcome);
  switch (outcome.kind) {
    case "value":
      // The status bar is easily missed.
      debug.activeDebugConsole.appendLine(text);
      window.setStatusBarMessage(`Shapetrace: ${text}`, TOLD_MILLISECONDS);
      break;
    case "cancelled":
      window.setStatusBarMessage(`Shapetrace: ${text}`, TOLD_MILLISECONDS);
      break;
    case "error":
      await messages.raised(text, showing(outcome));
      break;
    case "refused":
      await messages.warn(text);
      break;
  }
}

/** How to show the line that an error came from, if that is known. */
function showing({ origin }: Outcome): (() => Thenable<unknown>) | undefined {
  if (origin === null) {
    return undefined;
  }
  const [file, line] = origin;
  const selection = new Range(line - 1, 0, line - 1, 0);
  return () => window.showTextDocument(Uri.file(file), { selection });
}

/** By way of the server: while the debugger waits for an evaluation to go on, it hears nothing. */
async function cancel(
  { server, log }: Context,
  { id, name }: WatchedSession,
  number: number,
): Promise<void> {
  try {
    await server.requestIfRunning(CANCEL_EVALUATION, { session: id, number });
  } catch (error) {
    log.warn(`${name}: the evaluation was not cancelled: ${messageOf(error)}`);
  }
}

async function showIfSlow(
  running: Promise<unknown>,
  title: string,
  onCancel: () => void,
): Promise<void> {
  const over = running.then(noValue, noValue);
  const patience = new Promise<"slow">((resolve) => {
    setTimeout(resolve, PATIENCE_MILLISECONDS, "slow").unref();
  });
  if ((await Promise.race([over, patience])) !== "slow") {
    return;
  }
  const options = {
    location: ProgressLocation.Notification,
    title: `Shapetrace: evaluating ${title}`,
    cancellable: true,
  };
  await window.withProgress(options, async (_, token: CancellationToken) => {
    token.onCancellationRequested(onCancel);
    await over;
  });
}

function noValue(): undefined {
  return undefined;
}
