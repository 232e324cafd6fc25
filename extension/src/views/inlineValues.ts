/**
 * What stands at line ends while a program stands still, beside the hints.
 *
 * Where no extension answers, VS Code writes down what every name on every line stands for now,
 * modules included, also where it stood for something else. So this answers even if it has nothing
 * to say, from what the stopped function's own call has recorded.
 */
import {
  type CancellationToken,
  type InlineValueContext,
  type InlineValuesProvider,
  InlineValueText,
  type Range,
  type TextDocument,
} from "vscode";

import type { Server } from "../client/server";
import type { Focus } from "../debug/focus";
import { type Log, messageOf } from "../log";
import { INLINE_VALUES } from "../protocol.generated";

export class InlineValues implements InlineValuesProvider {
  constructor(
    private readonly server: Server,
    private readonly focus: Focus,
    private readonly log: Log,
  ) {}

  async provideInlineValues(
    document: TextDocument,
    viewPort: Range,
    _: InlineValueContext,
    token: CancellationToken,
  ): Promise<InlineValueText[]> {
    // They are asked for once, and nothing can have them asked for again.
    await this.focus.settled();
    if (token.isCancellationRequested) {
      return [];
    }
    try {
      const [uri, first, last] = [document.uri.toString(), viewPort.start.line, viewPort.end.line];
      const answer = await this.server.requestIfRunning(INLINE_VALUES, { uri, first, last });
      return (answer?.values ?? [])
        .filter(({ line }) => line < document.lineCount)
        .map(({ line, text }) => new InlineValueText(document.lineAt(line).range, text));
    } catch (error) {
      this.log.warn(`no inline values: ${messageOf(error)}`);
      return [];
    }
  }
}
