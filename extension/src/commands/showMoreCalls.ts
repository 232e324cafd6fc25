import type { Context } from "../context";
import { isElement } from "./calls";

/** Shows more of what is below a node of the trace tree. */
export function showMoreCalls({ tree }: Context, argument?: unknown): void {
  if (isElement(argument)) {
    tree.showMore(argument.parent);
  }
}
