import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
  type Element,
  type Loaded,
  LoadedTree,
  type Page,
} from "../../../extension/src/model/pagedTree";

interface Item {
  readonly id: string;
  readonly key: string;
}

/** Ten nodes, ten below each, and so on. */
function pageOf(parent: string | null, offset: number, limit: number): Page<Item> {
  const ids = Array.from({ length: 10 }, (_, index) => `${parent ?? ""}${index}`);
  const nodes = ids.slice(offset, offset + limit).map((id) => ({ id, key: id }));
  return { nodes, hasMore: offset + limit < ids.length };
}

function treeOf(pageSize: number) {
  const asked: string[] = [];
  const tree = new LoadedTree<Item>((parent, offset, limit) => {
    asked.push(`${parent ?? "root"} ${offset}+${limit}`);
    return Promise.resolve(pageOf(parent, offset, limit));
  }, pageSize);
  return { tree, asked };
}

function shown(elements: readonly Element<Item>[]): string {
  return elements.map((each) => (each.kind === "node" ? each.item.id : "more")).join(" ");
}

async function nodeOf(
  tree: LoadedTree<Item>,
  id: string,
  parent?: Loaded<Item>,
): Promise<Loaded<Item>> {
  const found = (await tree.children(parent)).find(
    (each): each is Loaded<Item> => each.kind === "node" && each.item.id === id,
  );
  assert.ok(found);
  return found;
}

describe("a tree that is loaded page by page", () => {
  test("shows the first page, and that there is more", async () => {
    const { tree } = treeOf(3);
    assert.equal(shown(await tree.children(undefined)), "0 1 2 more");
    tree.showMore(undefined);
    assert.equal(shown(await tree.children(undefined)), "0 1 2 3 4 5 more");
    const node = await nodeOf(tree, "4");
    assert.equal(shown(await tree.children(node)), "40 41 42 more");
  });

  test("asks for nothing twice, until something has changed", async () => {
    const { tree, asked } = treeOf(3);
    await tree.children(undefined);
    tree.showMore(undefined);
    assert.equal(shown(await tree.children(undefined)), "0 1 2 3 4 5 more");
    await tree.children(undefined);
    assert.deepEqual(asked.splice(0), ["root 0+3", "root 3+3"]);
    tree.outdate();
    assert.equal(shown(await tree.children(undefined)), "0 1 2 3 4 5 more");
    assert.deepEqual(asked.splice(0), ["root 0+6"]);
    tree.showMore(undefined);
    assert.equal(shown(await tree.children(undefined)), "0 1 2 3 4 5 6 7 8 9");
    await tree.children(undefined);
    assert.deepEqual(asked, ["root 6+6"]);
  });

  test("keeps nothing that was loaded before it changed", async () => {
    let turn = 0;
    let arrive = (): void => undefined;
    const tree = new LoadedTree<Item>(async () => {
      turn += 1;
      const key = String(turn);
      if (turn === 1) {
        await new Promise<void>((resolve) => (arrive = resolve));
      }
      return { nodes: [{ id: key, key }], hasMore: false };
    }, 3);
    const late = tree.children(undefined);
    tree.outdate();
    assert.equal(shown(await tree.children(undefined)), "2");
    arrive();
    await late;
    assert.equal(shown(await tree.children(undefined)), "2");
  });

  test("shows all there is where that is no more than a page", async () => {
    const { tree } = treeOf(10);
    assert.equal(shown(await tree.children(undefined)), "0 1 2 3 4 5 6 7 8 9");
  });

  test("keeps an element though it is loaded again", async () => {
    const { tree } = treeOf(3);
    const node = await nodeOf(tree, "1");
    const below = await nodeOf(tree, "12", node);
    assert.equal(await nodeOf(tree, "1"), node);
    assert.equal(await nodeOf(tree, "12", node), below);
    assert.equal(below.parent, node);
    tree.forget();
    assert.notEqual(await nodeOf(tree, "1"), node);
  });

  test("knows nodes again that have other ids in another run", async () => {
    let run = 1;
    const tree = new LoadedTree<Item>((parent, offset, limit) => {
      assert.ok(parent === null || parent.startsWith(`${run}.`), "nodes of the other run are gone");
      const { nodes, hasMore } = pageOf(parent?.slice(2) ?? null, offset, limit);
      return Promise.resolve({
        nodes: nodes.map(({ key }) => ({ id: `${run}.${key}`, key })),
        hasMore,
      });
    }, 3);
    const node = await nodeOf(tree, "1.1");
    tree.showMore(node);
    run = 2;
    tree.outdate();
    assert.equal(await nodeOf(tree, "2.1"), node);
    assert.equal(shown(await tree.children(node)), "2.10 2.11 2.12 2.13 2.14 2.15 more");
  });

  test("finds the end of a path, with as many pages as it takes", async () => {
    const { tree, asked } = treeOf(3);
    const widened: (string | undefined)[] = [];
    const path = [
      { id: "1", position: 1 },
      { id: "17", position: 7 },
    ];
    const found = await tree.find(path, (parent) => widened.push(parent?.item.id));
    assert.equal(found?.item.id, "17");
    assert.equal(found.parent?.item.id, "1");
    assert.deepEqual(widened, ["1"]);
    assert.deepEqual(asked, ["root 0+3", "1 0+12"]);
    assert.equal(shown(await tree.children(found.parent)), "10 11 12 13 14 15 16 17 18 19");
  });

  test("finds what is around the end of a path that is too far below", async () => {
    const { tree, asked } = treeOf(3);
    const path = [
      { id: "1", position: 1 },
      { id: "1x", position: 60 },
    ];
    const fail = () => assert.fail("nothing more is to be shown");
    assert.equal((await tree.find(path, fail))?.item.id, "1");
    assert.deepEqual(asked, ["root 0+3"]);
    assert.equal(await tree.find([{ id: "x", position: 60 }], fail), undefined);
  });

  test("looks no further for what is not wanted any more", async () => {
    const { tree, asked } = treeOf(10);
    const path = [
      { id: "1", position: 1 },
      { id: "17", position: 7 },
    ];
    const nothing = () => undefined;
    assert.equal(await tree.find(path, nothing, () => false), undefined);
    assert.deepEqual(asked, ["root 0+10"]);
  });

  test("finds what has come since the last change that it was told of", async () => {
    const counts = { root: 1, asked: 0 };
    const tree = new LoadedTree<Item>((parent) => {
      counts.asked += 1;
      return Promise.resolve({ ...pageOf(parent, 0, counts.root), hasMore: false });
    }, 3);
    await tree.children(undefined);
    counts.root = 2;
    const changed: (string | undefined)[] = [];
    const path = [{ id: "1", position: 1 }];
    const find = () => tree.find(path, (parent) => changed.push(parent?.item.id));
    assert.equal((await find())?.item.id, "1");
    assert.deepEqual([changed, counts.asked], [[undefined], 2]);
    await find();
    assert.deepEqual([changed, counts.asked], [[undefined], 2]);
  });

  test("finds nothing at the end of a path that is no more", async () => {
    const { tree } = treeOf(3);
    const nothing = () => undefined;
    assert.equal(await tree.find([{ id: "x", position: 0 }], nothing), undefined);
    assert.equal(await tree.find([], nothing), undefined);
  });
});
