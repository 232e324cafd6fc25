/** The loaded part of a tree that is loaded page by page. */

/** Anything that is asked for by an id, and known again by a key in another run of a program. */
export interface Identified {
  readonly id: string;
  readonly key: string;
}

export interface Page<Item> {
  readonly nodes: readonly Item[];
  readonly hasMore: boolean;
}

/** A node that has been loaded, and the one that it is below. */
export interface Loaded<Item> {
  readonly kind: "node";
  readonly parent: Loaded<Item> | undefined;
  item: Item;
}

/** Stands at the end of what has been loaded, where there is more. */
export interface More<Item> {
  readonly kind: "more";
  readonly parent: Loaded<Item> | undefined;
}

/** A node on the way to another one, and how many stand before it below the same. */
export interface Step {
  readonly id: string;
  readonly position: number;
}

export type Element<Item> = Loaded<Item> | More<Item>;

/** Loads some of what is below a node, or of the outermost nodes. */
export type Load<Item> = (
  parent: string | null,
  offset: number,
  limit: number,
) => Promise<Page<Item>>;

/** So many times the first nodes are loaded at the most to show what is on a path. */
const MOST_FIRST_LIMITS = 20;

/** Said of a path with a node that is not among those that have been loaded. */
const MISSING = Symbol("missing");

/** The element of a node stays the same however often it is loaded, also from another run. */
export class LoadedTree<Item extends Identified> {
  #elements = new Map<string, Loaded<Item>>();
  #pages = new Map<string | null, Page<Item>>();
  readonly #limits = new Map<string | null, number>();

  /** At first no more than so many nodes are shown below one; each time that more are wanted, twice as many. */
  constructor(
    private readonly load: Load<Item>,
    private readonly firstLimit: number,
  ) {}

  /** The children to show below an element, or the roots. */
  async children(parent: Loaded<Item> | undefined): Promise<readonly Element<Item>[]> {
    const { nodes, hasMore } = await this.#page(parent);
    const elements: Element<Item>[] = nodes.map((item) => this.#elementOf(item, parent));
    return hasMore ? [...elements, { kind: "more", parent }] : elements;
  }

  /** Has more shown below an element. */
  showMore(parent: Loaded<Item> | undefined): void {
    this.#limits.set(keyOf(parent), 2 * this.#limit(parent));
  }

  /** Reloads everything. */
  outdate(): void {
    this.#pages = new Map();
  }

  /**
   * The element at the end of a path, or the one around it that it is too far below. `changed` is
   * told below which elements other nodes have to be shown than before, so that what is on the path
   * is shown. Ends where it is not wanted any more.
   */
  async find(
    path: readonly Step[],
    changed: (parent: Loaded<Item> | undefined) => void,
    isWanted: () => boolean = () => true,
  ): Promise<Loaded<Item> | undefined> {
    const found = await this.#walk(path, changed, isWanted);
    if (found !== MISSING) {
      return found;
    }
    // The path may be newer than what has been loaded.
    this.outdate();
    changed(undefined);
    const foundNow = await this.#walk(path, changed, isWanted);
    return foundNow === MISSING ? undefined : foundNow;
  }

  async #walk(
    path: readonly Step[],
    changed: (parent: Loaded<Item> | undefined) => void,
    isWanted: () => boolean,
  ): Promise<Loaded<Item> | typeof MISSING | undefined> {
    let parent: Loaded<Item> | undefined;
    for (const { id, position } of path) {
      if (position >= this.#limit(parent)) {
        if (position >= MOST_FIRST_LIMITS * this.firstLimit) {
          return parent; // All of them would be loaded again with each change.
        }
        while (position >= this.#limit(parent)) {
          this.showMore(parent);
        }
        changed(parent);
      }
      const children = await this.children(parent);
      const found = children.find((child) => child.kind === "node" && child.item.id === id);
      if (!isWanted()) {
        return undefined;
      }
      if (found?.kind !== "node") {
        return MISSING;
      }
      parent = found;
    }
    return parent;
  }

  /** Forgets everything, as after a change of what is shown at all. */
  forget(): void {
    this.#elements = new Map();
    this.#limits.clear();
    this.outdate();
  }

  /** Loaded nodes are not requested again until something has changed. */
  async #page(parent: Loaded<Item> | undefined): Promise<Page<Item>> {
    const pages = this.#pages;
    const key = keyOf(parent);
    const limit = this.#limit(parent);
    const known = pages.get(key) ?? { nodes: [], hasMore: true };
    const offset = known.nodes.length;
    if (!known.hasMore || offset >= limit) {
      return known;
    }
    const { nodes, hasMore } = await this.load(parent?.item.id ?? null, offset, limit - offset);
    const page = { nodes: [...known.nodes, ...nodes], hasMore };
    pages.set(key, page);
    return page;
  }

  #limit(parent: Loaded<Item> | undefined): number {
    return this.#limits.get(keyOf(parent)) ?? this.firstLimit;
  }

  #elementOf(item: Item, parent: Loaded<Item> | undefined): Loaded<Item> {
    const known = this.#elements.get(item.key);
    if (known?.parent === parent && known !== undefined) {
      known.item = item;
      return known;
    }
    const element: Loaded<Item> = { kind: "node", parent, item };
    this.#elements.set(item.key, element);
    return element;
  }
}

function keyOf<Item extends Identified>(element: Loaded<Item> | undefined): string | null {
  return element?.item.key ?? null;
}
