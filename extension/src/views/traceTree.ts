/** The trace tree in the Run and Debug side bar. */
import { setTimeout as passed } from "node:timers/promises";

import {
  type CancellationToken,
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
  Uri,
  window,
} from "vscode";

import type { Server } from "../client/server";
import type { Asked } from "../debug/preparation";
import { Command, View } from "../contributions";
import { type Log, messageOf } from "../log";
import { histogramAddress, ICON, PICTURE } from "../model/histogram";
import { type Element, type Loaded, LoadedTree } from "../model/pagedTree";
import { Turns } from "../model/turns";
import type { Pins } from "../pins";
import {
  type NodeKind,
  STORY,
  TREE,
  TREE_PATH,
  type TreePage,
  type TreeNode,
} from "../protocol.generated";

/** How many children of a node are shown at first. */
const FIRST_LIMIT = 100;

/** Milliseconds after a change in which VS Code may lose the selection by itself. */
const RELOAD_MILLISECONDS = 1_000;

const RELOAD_POLL_MILLISECONDS = 20;

/** How often a node is selected that does not stay so. */
const MOST_SELECTIONS = 3;

const ICONS: Readonly<Record<NodeKind, string>> = {
  process: "server-process",
  module: "symbol-class",
  op: "symbol-operator",
  kernel: "chip",
  fold: "library",
  captures: "graph",
  capturePath: "symbol-variable",
  captureName: "symbol-variable",
  capture: "symbol-number",
  watches: "eye",
  watch: "symbol-variable",
  change: "arrow-small-right",
};

const NOTHING: TreePage = { nodes: [], hasMore: false };

/** A call in the tree, as commands are given it. */
export type TraceElement = Element<TreeNode>;

export class TraceTree implements TreeDataProvider<TraceElement>, Disposable {
  readonly #tree = new LoadedTree<TreeNode>((...page) => this.#load(...page), FIRST_LIMIT);
  readonly #changed = new EventEmitter<TraceElement | undefined>();
  readonly #stateChanged = new EventEmitter<void>();
  readonly #view: TreeView<TraceElement>;
  readonly #disposables: Disposable[];
  /** Nodes that the user opened and closed: a node that is gone for a moment comes back as it was. */
  readonly #isOpen = new Map<string, boolean>();
  /** The last selection, and whether it is gone since the tree changed. */
  #selected: string | undefined;
  #isSelectionLost = false;
  #refreshedAt = 0;
  #filter = "";
  /** Of two nodes that VS Code reveals at once, the one that is further down stays selected. */
  readonly #reveals = new Turns();
  #stay: { readonly uri: string; readonly line: number } | undefined;
  /** How often the program has stopped elsewhere, and how often it had when a call was shown last. */
  #stops = 0;
  #shown = 0;

  readonly onDidChangeTreeData: Event<TraceElement | undefined> = this.#changed.event;
  /** Fires when the filter or the visibility of the view changes. */
  readonly onDidChangeState: Event<void> = this.#stateChanged.event;

  constructor(
    private readonly server: Server,
    pins: Pins,
    private readonly asked: Asked,
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
      this.#view.onDidChangeSelection(({ selection: [selected] }) => {
        this.#noteSelected(selected);
      }),
      this.#view.onDidExpandElement(({ element }) => {
        this.#isOpen.set(this.#idOf(element), true);
      }),
      this.#view.onDidCollapseElement(({ element }) => {
        this.#isOpen.set(this.#idOf(element), false);
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
    this.#refreshedAt = Date.now();
    this.#tree.outdate();
    this.#changed.fire(undefined);
  }

  /** Shows more of what is below a node. */
  showMore(parent: Loaded<TreeNode> | undefined): void {
    this.#tree.showMore(parent);
    this.#changed.fire(parent);
  }

  /** The next place that is to be shown is that of the program, whatever is selected. */
  leaveSelected(): void {
    this.#stops += 1;
  }

  /** A captured value, or a change, stays selected while the cursor is where it was made. */
  stayAt(uri: string, line: number): void {
    this.#stay = { uri, line };
  }

  /**
   * The node that is clicked: VS Code selects it before it runs the node's command.
   *
   * The command has no arguments, as VS Code forgets those when the tree is loaded anew, and with them
   * a click that was on its way. What is selected is known again once the node is there.
   */
  async clicked(): Promise<TraceElement | undefined> {
    const deadline = Date.now() + RELOAD_MILLISECONDS;
    while (this.#view.selection.length === 0 && Date.now() < deadline) {
      await passed(RELOAD_POLL_MILLISECONDS);
    }
    return this.#view.selection[0];
  }

  /** Selects the call that was made at a place, of several the one nearest to the selected one. */
  async revealCallAt(uri: string, line: number, character: number): Promise<void> {
    await this.#reveals.newest((isNewest) =>
      this.#revealCallAt(uri, line, character, () => isNewest() && this.isVisible),
    );
  }

  async #revealCallAt(
    uri: string,
    line: number,
    character: number,
    isWanted: () => boolean,
  ): Promise<void> {
    const [selected] = this.#view.selection;
    const stops = this.#stops;
    const isLeft = stops !== this.#shown;
    const isStaying = this.#stay?.uri === uri && this.#stay.line === line && !isLeft;
    if (isStaying && selected?.kind === "node" && isOfValues(selected.item)) {
      return;
    }
    this.#stay = undefined;
    const near = selected?.kind === "node" && !isLeft ? selected.item.id : null;
    const question = { uri, line, character, near, filter: this.#filter };
    const found = await this.server.requestIfRunning(TREE_PATH, question);
    const path = found?.path ?? [];
    if (!isWanted()) {
      return;
    }
    if (path.at(-1)?.id === near) {
      this.#shown = stops;
      return;
    }
    const changed = (parent: TraceElement | undefined) => {
      this.#changed.fire(parent);
    };
    const element = await this.#tree.find(path, changed, isWanted);
    if (element !== undefined) {
      await this.#select(element, isWanted);
    }
    if (isWanted()) {
      this.#shown = stops;
    }
  }

  async getChildren(parent?: TraceElement): Promise<TraceElement[]> {
    if (parent?.kind === "more") {
      return [];
    }
    const children = await this.#tree.children(parent);
    if (parent === undefined) {
      const isMissing = this.#filter !== "" && children.length === 0;
      this.#view.message = isMissing ? `No call matches "${this.#filter}".` : "";
    }
    this.#selectAgain(children);
    return [...children];
  }

  getParent(element: TraceElement): TraceElement | undefined {
    return element.parent;
  }

  getTreeItem(element: TraceElement): TreeItem {
    if (element.kind === "more") {
      return moreItem();
    }
    const item = itemOf(element, this.asked);
    const id = this.#idOf(element);
    item.id = id;
    const { hasChildren, isExpanded } = element.item;
    if (hasChildren) {
      const isOpen = this.#isOpen.get(id) ?? isExpanded;
      const { Collapsed, Expanded } = TreeItemCollapsibleState;
      item.collapsibleState = isOpen ? Expanded : Collapsed;
    }
    return item;
  }

  /** The tooltip of a node is requested when the mouse is over it. */
  async resolveTreeItem(
    item: TreeItem,
    element: TraceElement,
    token: CancellationToken,
  ): Promise<TreeItem> {
    if (element.kind === "node" && !token.isCancellationRequested) {
      const { id, label, description } = element.item;
      const story = await this.server.requestIfRunning(STORY, { node: id });
      const markdown = story?.markdown ?? "";
      item.tooltip =
        markdown === ""
          ? `${label}  ${description}`
          : new MarkdownString(markdown + pictureOf(element.item));
    }
    return item;
  }

  dispose(): void {
    for (const disposable of this.#disposables) {
      disposable.dispose();
    }
  }

  #noteSelected(selected: TraceElement | undefined): void {
    if (selected !== undefined) {
      this.#selected = this.#idOf(selected);
      this.#isSelectionLost = false;
    } else if (Date.now() - this.#refreshedAt < RELOAD_MILLISECONDS) {
      this.#isSelectionLost = true;
    } else {
      this.#selected = undefined;
    }
  }

  /** Selects what was selected until a new run began that had not come to it yet. */
  #selectAgain(children: readonly TraceElement[]): void {
    const found = this.#isSelectionLost
      ? children.find((child) => this.#idOf(child) === this.#selected)
      : undefined;
    if (found !== undefined) {
      this.#isSelectionLost = false;
      // VS Code has to have it first.
      setTimeout(() => {
        // VS Code may not have reported a later selection yet.
        const isWanted = () =>
          this.#selected === this.#idOf(found) && this.#view.selection.length === 0;
        void this.#reveals.next(() => this.#select(found, isWanted));
      });
    }
  }

  /** Selects a node. VS Code may lose the selection while it reloads the tree. */
  async #select(element: TraceElement, isWanted: () => boolean): Promise<void> {
    for (let left = MOST_SELECTIONS; left > 0 && isWanted(); left--) {
      try {
        await this.#view.reveal(element, { select: true, focus: false });
      } catch (error) {
        this.log.debug(`trace tree: not selected yet: ${messageOf(error)}`);
      }
      if (this.#view.selection[0] === element) {
        return;
      }
    }
  }

  /** The id of a node for VS Code: a filter opens and closes nodes of its own. */
  #idOf(element: TraceElement): string {
    const key =
      element.kind === "more" ? `${element.parent?.item.key ?? ""}/more` : element.item.key;
    return `${this.#filter}/${key}`;
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

function itemOf(element: Loaded<TreeNode>, asked: Asked): TreeItem {
  const { kind, label, description, isPinned } = element.item;
  const item = new TreeItem(label);
  item.description = description;
  const isWanted = isAskedFor(element.item, asked);
  item.contextValue = isPinned ? `${kind}.pinned` : isWanted ? `${kind}.wanted` : kind;
  item.iconPath = iconOf(element.item);
  if (kind !== "process" && kind !== "captures" && kind !== "watches") {
    item.command = { command: Command.goToCall, title: "Go to Call" };
  }
  return item;
}

/** Whether what a node shows is to go on. */
function isAskedFor({ kind, label }: TreeNode, { captures, watches }: Asked): boolean {
  switch (kind) {
    case "captures":
      return captures.wanted.length > 0;
    case "capturePath":
      return captures.wanted.includes(label);
    case "watches":
      return watches.wanted.length > 0;
    case "watch":
      return watches.wanted.includes(label);
    default:
      return false;
  }
}

/** Returns whether a node is a captured value or a watched variable, not a call. */
export function isOfValues({ kind }: TreeNode): boolean {
  return kind.startsWith("capture") || kind.startsWith("watch") || kind === "change";
}

function iconOf({ kind, isFailed, isPinned, histogram }: TreeNode): ThemeIcon | Uri {
  if (isFailed) {
    return kind === "capturePath" || kind === "watch"
      ? new ThemeIcon("warning", new ThemeColor("list.warningForeground"))
      : new ThemeIcon("error", new ThemeColor("list.errorForeground"));
  }
  if (histogram !== null) {
    return Uri.parse(histogramAddress(histogram.heights, ICON), true);
  }
  return new ThemeIcon(isPinned ? "pinned" : ICONS[kind]);
}

/** The picture of captured values, in Markdown. */
function pictureOf({ histogram }: TreeNode): string {
  if (histogram === null) {
    return "";
  }
  const { heights, low, high } = histogram;
  return `\n\n![${low} to ${high}](${histogramAddress(heights, PICTURE)})`;
}

function moreItem(): TreeItem {
  const item = new TreeItem("More...");
  item.iconPath = new ThemeIcon("ellipsis");
  item.command = { command: Command.showMoreCalls, title: "More" };
  return item;
}
