/** The trace tree in the Run and Debug side bar. */
import {
  type Disposable,
  type Event,
  EventEmitter,
  MarkdownString,
  ThemeColor,
  ThemeIcon,
  type TreeDataProvider,
  TreeItem,
  TreeItemCollapsibleState,
  type TreeView,
  window,
} from "vscode";

import type { Server } from "../client/server";
import { Command, View } from "../contributions";
import { type Log, messageOf } from "../log";
import { type Element, type Loaded, LoadedTree } from "../model/tree";
import type { Pins } from "../pins";
import { type NodeKind, TREE, TREE_PATH, type TreePage, type TreeNode } from "../protocol";

/** How many nodes below one are shown before somebody asks for more. */
const PAGE = 200;

const ICONS: Readonly<Record<NodeKind, string>> = {
  process: "server-process",
  module: "symbol-class",
  op: "symbol-operator",
  kernel: "chip",
  fold: "library",
};

const NOTHING: TreePage = { nodes: [], hasMore: false, extra: {} };

/** A call in the tree, as commands are given it. */
export type TraceElement = Element<TreeNode>;

export class TraceTree implements TreeDataProvider<TraceElement>, Disposable {
  readonly #tree = new LoadedTree<TreeNode>((...page) => this.#load(...page), PAGE);
  readonly #changed = new EventEmitter<TraceElement | undefined>();
  readonly #stateChanged = new EventEmitter<void>();
  readonly #view: TreeView<TraceElement>;
  readonly #disposables: Disposable[];
  #filter = "";
  /** Grows with each place that is to be shown: only the last one counts. */
  #revealed = 0;

  readonly onDidChangeTreeData: Event<TraceElement | undefined> = this.#changed.event;
  /** Whether something is filtered out has changed, or whether the view can be seen. */
  readonly onDidChangeState: Event<void> = this.#stateChanged.event;

  constructor(
    private readonly server: Server,
    pins: Pins,
    private readonly log: Log,
  ) {
    this.#view = window.createTreeView(View.trace, {
      treeDataProvider: this,
      showCollapseAll: true,
    });
    const refresh = () => {
      this.refresh();
    };
    this.#disposables = [
      this.#view,
      this.#changed,
      this.#stateChanged,
      server.onDidChangeTrace(refresh),
      server.onDidRestart(refresh),
      server.onDidChangeState(refresh),
      pins.onDidChange(refresh),
      this.#view.onDidChangeVisibility(({ visible }) => {
        this.#stateChanged.fire();
        if (visible) {
          this.refresh(); // What has changed meanwhile was not told.
        }
      }),
    ];
  }

  get isVisible(): boolean {
    return this.#view.visible;
  }

  get filter(): string {
    return this.#filter;
  }

  /** Shows only nodes that have a text in them, and what these are in. */
  setFilter(text: string): void {
    this.#filter = text.trim();
    this.#tree.forget();
    this.#view.description = this.#filter === "" ? "" : `filtered by "${this.#filter}"`;
    this.#stateChanged.fire();
    this.refresh();
  }

  refresh(): void {
    this.#changed.fire(undefined);
  }

  /** Shows one page more of what is below a node. */
  showMore(parent: Loaded<TreeNode> | undefined): void {
    this.#tree.showMore(parent);
    this.#changed.fire(parent);
  }

  /** Selects the call that was made at a place, of several the one nearest to the selected one. */
  async revealCallAt(uri: string, line: number, character: number): Promise<void> {
    const turn = ++this.#revealed;
    const isWanted = () => turn === this.#revealed && this.isVisible;
    const [selected] = this.#view.selection;
    const near = selected?.kind === "node" ? selected.item.id : null;
    const question = { uri, line, character, near, filter: this.#filter };
    const found = await this.server.requestIfRunning(TREE_PATH, question);
    const path = found?.path ?? [];
    if (path.at(-1)?.id === near || !isWanted()) {
      return;
    }
    const widened = (parent: TraceElement | undefined) => {
      this.#changed.fire(parent);
    };
    const element = await this.#tree.find(path, widened, isWanted);
    if (element !== undefined) {
      await this.#view.reveal(element, { select: true, focus: false });
    }
  }

  async getChildren(parent?: TraceElement): Promise<TraceElement[]> {
    if (parent?.kind === "more") {
      return [];
    }
    const children = await this.#tree.children(parent);
    if (parent === undefined) {
      const isMissing = this.#filter !== "" && children.length === 0;
      this.#view.message = isMissing ? `No call has "${this.#filter}" in it.` : "";
    }
    return [...children];
  }

  getParent(element: TraceElement): TraceElement | undefined {
    return element.parent;
  }

  getTreeItem(element: TraceElement): TreeItem {
    return element.kind === "more" ? moreItem(element) : itemOf(element, this.#filter);
  }

  dispose(): void {
    for (const disposable of this.#disposables) {
      disposable.dispose();
    }
  }

  async #load(parent: string | null, offset: number, limit: number): Promise<TreePage> {
    try {
      const question = { parent, filter: this.#filter, offset, limit };
      return (await this.server.requestIfRunning(TREE, question)) ?? NOTHING;
    } catch (error) {
      this.log.warn(`trace tree: ${messageOf(error)}`);
      return NOTHING;
    }
  }
}

function itemOf(element: Loaded<TreeNode>, filter: string): TreeItem {
  const { id, kind, label, description, hasChildren, isExpanded, isPinned, isFailed, tooltip } =
    element.item;
  const state = isExpanded ? TreeItemCollapsibleState.Expanded : TreeItemCollapsibleState.Collapsed;
  const item = new TreeItem(label, hasChildren ? state : TreeItemCollapsibleState.None);
  // What was opened by hand is remembered by this id: a filter opens and closes nodes of its own.
  item.id = `${filter}/${id}`;
  item.description = description;
  item.contextValue = isPinned ? `${kind}.pinned` : kind;
  item.iconPath = isFailed
    ? new ThemeIcon("error", new ThemeColor("list.errorForeground"))
    : new ThemeIcon(isPinned ? "pinned" : ICONS[kind]);
  if (tooltip !== "") {
    item.tooltip = new MarkdownString(tooltip);
  }
  if (kind !== "process") {
    item.command = { command: Command.goToCall, title: "Go to Call", arguments: [element] };
  }
  return item;
}

function moreItem(element: TraceElement): TreeItem {
  const item = new TreeItem("More...");
  item.iconPath = new ThemeIcon("ellipsis");
  item.command = { command: Command.showMoreCalls, title: "More", arguments: [element] };
  return item;
}
