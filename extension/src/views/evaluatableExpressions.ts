/** Which expression the debugger's hover evaluates while a program of ours stands still. */
import {
  type CancellationToken,
  debug,
  DebugStackFrame,
  EvaluatableExpression,
  type EvaluatableExpressionProvider,
  type Position,
  Range,
  type TextDocument,
} from "vscode";

import { type Log, messageOf } from "../log";
import { expressionAt } from "../model/expressions";
import { property } from "../model/interpreters";
import { isSideEffectFree } from "../model/stopQuery";

export class EvaluatableExpressions implements EvaluatableExpressionProvider {
  constructor(private readonly log: Log) {}

  async provideEvaluatableExpression(
    document: TextDocument,
    position: Position,
    token: CancellationToken,
  ): Promise<EvaluatableExpression | undefined> {
    const found = expressionAt(document.getText(), document.offsetAt(position));
    if (found === undefined) {
      return undefined;
    }
    const range = new Range(document.positionAt(found.start), document.positionAt(found.end));
    if (found.hasItems && !(await this.#isHarmless(found.text))) {
      return undefined;
    }
    return token.isCancellationRequested ? undefined : new EvaluatableExpression(range, found.text);
  }

  /** Whether to look costs the program nothing; only the agent can tell, by what is in there. */
  async #isHarmless(expression: string): Promise<boolean> {
    const frame = debug.activeStackItem;
    if (!(frame instanceof DebugStackFrame)) {
      return false;
    }
    try {
      const answer: unknown = await frame.session.customRequest("evaluate", {
        expression: isSideEffectFree(frame.frameId, expression),
        context: "repl",
      });
      return property(answer, "result") === "true";
    } catch (error) {
      this.log.debug(`${frame.session.name}: no word on ${expression}: ${messageOf(error)}`);
      return false;
    }
  }
}
