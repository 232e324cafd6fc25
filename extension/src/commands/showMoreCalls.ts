import type { Context } from "../context";
import { isElement } from "./calls";

/** Shows more of what is below a node of the trace tree. */
export async function showMoreCalls({ tree }: Context, argument?: unknown): Promise<void> {
  const element = argument ?? (await tree.clicked());
  if (isElement(element)) {
    tree.showMore(element.parent);
  }
}
