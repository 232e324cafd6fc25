/** What of a tree has been loaded, page by page. */

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

export type Element<Item> = Loaded<Item> | More<Item>;

/** Loads some of what is below a node, or of the outermost nodes. */
export type Load<Item> = (
  parent: string | null,
  offset: number,
  limit: number,
) => Promise<Page<Item>>;

/** The element of a node stays the same however often it is loaded, also from another run. */
export class LoadedTree<Item extends Identified> {
  #elements = new Map<string, Loaded<Item>>();
  readonly #limits = new Map<string | null, number>();

  constructor(
    private readonly load: Load<Item>,
    private readonly pageSize: number,
  ) {}

  /** What is to be shown below an element, or outermost. */
  async children(parent: Loaded<Item> | undefined): Promise<readonly Element<Item>[]> {
    const id = parent?.item.id ?? null;
    const { nodes, hasMore } = await this.load(id, 0, this.#limit(parent));
    const elements: Element<Item>[] = nodes.map((item) => this.#elementOf(item, parent));
    return hasMore ? [...elements, { kind: "more", parent }] : elements;
  }

  /** Has one page more shown below an element. */
  showMore(parent: Loaded<Item> | undefined): void {
    this.#limits.set(keyOf(parent), this.#limit(parent) + this.pageSize);
  }

  /**
   * The element at the end of a path. `widened` is told of elements of which more has to be shown
   * than before, so that what is on the path is shown.
   */
  async find(
    path: readonly { readonly id: string; readonly position: number }[],
    widened: (parent: Loaded<Item> | undefined) => void,
  ): Promise<Loaded<Item> | undefined> {
    let parent: Loaded<Item> | undefined;
    for (const { id, position } of path) {
      if (position >= this.#limit(parent)) {
        const pages = Math.floor(position / this.pageSize) + 1;
        this.#limits.set(keyOf(parent), pages * this.pageSize);
        widened(parent);
      }
      const children = await this.children(parent);
      const found = children.find((child) => child.kind === "node" && child.item.id === id);
      if (found?.kind !== "node") {
        return undefined;
      }
      parent = found;
    }
    return parent;
  }

  /** Forgets everything, as after a change of what is shown at all. */
  forget(): void {
    this.#elements = new Map();
    this.#limits.clear();
  }

  #limit(parent: Loaded<Item> | undefined): number {
    return this.#limits.get(keyOf(parent)) ?? this.pageSize;
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
