/** Which expression the debugger's hover evaluates while a program of ours stands still. */
import {
  EvaluatableExpression,
  type EvaluatableExpressionProvider,
  type Position,
  Range,
  type TextDocument,
} from "vscode";

import { expressionAt } from "../model/expressions";

export class EvaluatableExpressions implements EvaluatableExpressionProvider {
  provideEvaluatableExpression(
    document: TextDocument,
    position: Position,
  ): EvaluatableExpression | undefined {
    const found = expressionAt(document.getText(), document.offsetAt(position));
    if (found === undefined) {
      return undefined;
    }
    const range = new Range(document.positionAt(found.start), document.positionAt(found.end));
    return new EvaluatableExpression(range, found.text);
  }
}
