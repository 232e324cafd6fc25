/** How soon the trace tree of a large trace is on the screen, from the click or key that asks. */
import type { Browser, Page } from "playwright-core";

import { Folder } from "../../tests/extension/e2e/support/folder";
import { eventually } from "../../tests/extension/e2e/support/waiting";
import { Workbench } from "../../tests/extension/e2e/support/workbench";
import type { Server } from "../editor/serve.mjs";
import { Failure } from "../setup.mjs";

export interface TreeFigures {
  readonly ops: number;
  /**
   * Milliseconds from the click to the first rows, for each of some times: first of all on the
   * status bar, with the side bar showing something else, then on the view's header.
   */
  readonly first: readonly number[];
  /** The same to the rows below a node: first of all those below the model, then of layers. */
  readonly expanded: readonly number[];
  /** The same for more of the rows below a node, up to all of them. */
  readonly more: readonly number[];
  /** The same for what is left with a text, from the Enter behind it. */
  readonly filtered: readonly number[];
  /** Milliseconds between two frames while all of these rows are scrolled through. */
  readonly frames: readonly number[];
}

const LAYERS = 2_000;
const OPS = 50;
const TIMES = 12;
/** So many nodes are below one at first, and twice as many whenever more are wanted. */
const FIRST_ROWS = 100;

const PROGRAM = `\
import torch
from torch import nn


class Layer(nn.Module):
    def forward(self, x):
${"        x = x + 1\n".repeat(OPS)}\
        return x


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self.layers = nn.ModuleList([Layer() for _ in range(${LAYERS})])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


Model()(torch.ones(2, 3))
`;

/** A row by its level, its number below the one that it is in, and maybe its label. */
type Row = readonly [level: number, position: number, label?: string];

/** Notes in the window when a row is first there, after a click or a key. */
function watchRows([level, position, label]: Row): void {
  const watched = { asked: 0, shown: 0 };
  Object.assign(globalThis, { watched });
  for (const kind of ["mousedown", "keydown"]) {
    document.addEventListener(
      kind,
      (event) => {
        watched.asked = watched.shown === 0 ? event.timeStamp : watched.asked;
      },
      true,
    );
  }
  const row = `.monaco-list-row[aria-level="${level}"][aria-posinset="${position}"]`;
  const rows = `.pane:has(> .pane-header[aria-label^="Trace"]) ${row} .label-name`;
  new MutationObserver((_, observer) => {
    const found = watched.asked > 0 ? document.querySelector(rows) : null;
    if (found !== null && (label === undefined || found.textContent === label)) {
      watched.shown = performance.now();
      observer.disconnect();
    }
  }).observe(document.body, { childList: true, subtree: true, attributes: true });
}

/** Milliseconds from what is done to the row that it brings. */
async function timed(page: Page, row: Row, act: () => Promise<void>): Promise<number> {
  await page.evaluate(watchRows, row);
  await act();
  const { asked, shown } = await eventually(
    `row ${row[1]} of level ${row[0]} is there`,
    () =>
      page.evaluate(
        () => (globalThis as unknown as { watched: { asked: number; shown: number } }).watched,
      ),
    ({ shown }) => shown > 0,
  );
  return shown - asked;
}

/** The longest waits for a frame while the wheel turns. */
async function scrolled(page: Page): Promise<number[]> {
  await page.evaluate(() => {
    const frames: number[] = [];
    Object.assign(globalThis, { frames });
    let last = performance.now();
    // A function with a name would not survive the way into the page.
    const loops: FrameRequestCallback[] = [];
    loops.push((now) => {
      frames.push(now - last);
      last = now;
      loops.forEach((loop) => requestAnimationFrame(loop));
    });
    loops.forEach((loop) => requestAnimationFrame(loop));
  });
  for (let turn = 0; turn < 120; turn += 1) {
    await page.mouse.wheel(0, turn < 100 ? 300 : -1500);
  }
  return page.evaluate(() => (globalThis as unknown as { frames: number[] }).frames);
}

export async function treeFigures(server: Server, browser: Browser): Promise<TreeFigures> {
  const folder = new Folder({ "large.py": PROGRAM });
  const context = await browser.newContext({ viewport: { width: 1200, height: 1200 } });
  const workbench = await Workbench.open(context, server.address(folder.path));
  const { page, trace } = workbench;
  try {
    await workbench.openFile(folder.file("large.py"));
    await workbench.run("Shapetrace: Trace Forward Pass");
    await workbench.debug.waitUntilRunning();
    await workbench.debug.waitUntilEnded({ seconds: 150 });
    const status = await workbench.status();
    const ops = Number(/(\d+) calls/.exec(status)?.[1]);
    if (!(ops >= LAYERS * OPS)) {
      throw new Failure(`the status bar says ${status}`);
    }
    const first = [await timed(page, [1, 1], () => workbench.pressInStatusBar("Show Trace"))];
    await trace.show(); // with more room
    for (let time = 0; time < TIMES; time += 1) {
      await trace.toggle();
      await eventually(
        "the tree is closed",
        () => trace.rows(),
        (rows) => rows.length === 0,
      );
      first.push(await timed(page, [1, 1], () => trace.toggle()));
    }
    const expanded = [await timed(page, [2, 1], () => trace.expand("Model"))];
    for (let layer = 0; layer < TIMES; layer += 1) {
      const label = `layers.${layer}`;
      expanded.push(await timed(page, [3, 1], () => trace.expand(label)));
      await trace.collapse(label);
      await eventually(
        "the layer is closed",
        () => trace.rows(),
        (rows) => rows.every((row) => !row.startsWith("    ")),
      );
    }
    const more: number[] = [];
    for (let rows = FIRST_ROWS; rows < LAYERS; rows *= 2) {
      await trace.scrollToEnd();
      const row = [2, rows + 1, `layers.${rows}`] as const;
      more.push(await timed(page, row, () => trace.click("More...")));
    }
    await page.keyboard.press("Home");
    const frames = await scrolled(page);
    const filtered: number[] = [];
    for (const [text, label] of [
      ["layers.1999", "layers.1999"],
      ["layers.5", "layers.5"],
      ["large.py:9", "layers.0"],
    ] as const) {
      await workbench.run("Shapetrace: Filter Trace...");
      filtered.push(await timed(page, [2, 1, label], () => workbench.answer(text)));
    }
    return { ops, first, expanded, more, filtered, frames };
  } finally {
    await workbench.close();
    await context.close();
    folder.remove();
  }
}
