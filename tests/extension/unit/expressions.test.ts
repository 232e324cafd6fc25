import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { expressionAt } from "../../../extension/src/model/expressions";
import { tokensOf } from "../../../extension/src/model/tokens";

/** The place is where the `|` is. */
function at(marked: string): string | undefined {
  const offset = marked.indexOf("|");
  const source = marked.slice(0, offset) + marked.slice(offset + 1);
  const found = expressionAt(source, offset);
  if (found !== undefined) {
    const text = source.slice(found.start, found.end);
    assert.equal(text.replaceAll(/\s|\\/g, ""), found.text.replaceAll(/\s/g, ""));
  }
  return found?.text;
}

const FOUND: readonly (readonly [string, string])[] = [
  // Names.
  ["y = |x + 1", "x"],
  ["y = long|name + 1", "longname"],
  ["y = x| + 1", "x"],
  ["|y = x", "y"],
  ["größe|2 = x", "größe2"],
  ["f(x, a|s_tensor)", "as_tensor"],
  ["print(x|)", "x"],
  // Attributes: as far as the place.
  ["y = se|lf.blocks[2].attn.w", "self"],
  ["y = self.blo|cks[2].attn.w", "self.blocks"],
  ["y = self.blocks[2].at|tn.w", "self.blocks[2].attn"],
  ["y = self.blocks[2].attn.w|", "self.blocks[2].attn.w"],
  ["y = self.blocks[|2].attn.w", "self.blocks[2]"],
  ["y = x . grad|", "x.grad"],
  // What is called is not a call.
  ["y = self.f|c(x)", "self.fc"],
  ["y = self.fc(x|)", "x"],
  ["y = f|(x)", "f"],
  // Items.
  ["y = x|[0]", "x"],
  ["y = x[|0]", "x[0]"],
  ["y = x[0]|[1]", "x[0][1]"],
  ["y = x[0|]", "x[0]"],
  ["y = x[0][|1]", "x[0][1]"],
  ["y = x[-|1]", "x[-1]"],
  ["y = x[:, |0]", "x[:,0]"],
  ["y = x[..., |None]", "x[...,None]"],
  ["y = x[i|]", "i"],
  ["y = self.layers[i].w|", "self.layers[i].w"],
  ["y = self.layers[self.n].w|", "self.layers[self.n].w"],
  ['y = batch["input|_ids"]', 'batch["input_ids"]'],
  ["y = batch|['input_ids']", "batch"],
  ["y = batch['a'].sha|pe", "batch['a'].shape"],
  ["y = x[y[|0]]", "y[0]"],
  ["y = x[y[0]|]", "x[y[0]]"],
  // Over several lines.
  ["y = (\n    self\n    .fc|\n)", "self.fc"],
  ["y = self \\\n    .fc|", "self.fc"],
  ["y = self \\\n    [|0]", "self[0]"],
  ["y = (\n    self\n    [|0]\n)", "self[0]"],
  // Parameters and targets.
  ["def forward(self, x|):", "x"],
  ["def forward(self, ma|sk=None):", "mask"],
  ["for pa|rt in parts:", "part"],
  ["if (n| := 3): pass", "n"],
  ["x = {'a': |b}", "b"],
  ["x = [a|, b]", "a"],
  ["x = a if b| else c", "b"],
  ["# x\ny|", "y"],
  ['"""a "quoted" doc"""\nx|', "x"],
  ["s = 'it''s' # '\nx|", "x"],
  ["x = y|", "y"],
];

const NOT_FOUND: readonly string[] = [
  "",
  "|",
  "   |   ",
  // In strings and comments.
  "y = 'so|me text'",
  'y = "a # b|"',
  "y = '''so|me\ntext'''",
  'y = """\nx|\n"""',
  "y = f'{x|}'",
  "y = rb'x|'",
  "y = x  # an|d y",
  "y = 'open x|\nz",
  // Keywords, numbers, signs.
  "re|turn x",
  "x = No|ne",
  "lam|bda: 1",
  "y = 1|2",
  "y = 1.5e|3",
  "y |+ x",
  "y = (|(x))",
  // What is defined.
  "def for|ward(self):",
  "class Ne|t(nn.Module):",
  // Imports.
  "import to|rch",
  "from torch import n|n",
  // Names of arguments.
  "y = x.sum(di|m=1)",
  "y = f(x)(n|ame=1)",
  // Behind a call: that would have to be called again.
  "y = f(x).sha|pe",
  "y = f(x)[|0]",
  "y = self.fc(x).weight[0].da|ta",
  "y = x[f(1)].sha|pe",
  "y = x[f(|1)]",
  "y = 'text'.upp|er",
  // Items by what is worked out.
  "y = x[|1 + n]",
  "y = x[n + 1|]",
  "y = x[f'{n}'].sha|pe",
  // Lists are no items.
  "y = [|1, 2]",
  "y = [x][|0]",
  "return [|1]",
  "y = {'a'|: 1}",
  "y = x\n|[a, b] = z",
  "y = x  # of the line before\n[0|].w",
  "y = x\r\n[0].w|",
];

describe("the expression at a place", () => {
  for (const [marked, expected] of FOUND) {
    test(marked, () => {
      assert.equal(at(marked), expected);
    });
  }
});

describe("no expression is at a place", () => {
  for (const marked of NOT_FOUND) {
    test(marked || "of an empty text", () => {
      assert.equal(at(marked.includes("|") ? marked : `${marked}|`), undefined);
    });
  }
});

test("the tokens of a text are all of it but its spaces", () => {
  const source = `@decorated\ndef f(a: int = 0x1F, *b, **c) -> "x":\n    return a @ b[1_0.5e-3, ...] // 2 != 3\\\n  # end`;
  const tokens = tokensOf(source);
  assert.equal(
    tokens.map(({ text }) => text).join(""),
    source.replaceAll(/\\\n|(?<!#)\s/g, "").replace("#end", "# end"),
  );
  for (const { text, start, end } of tokens) {
    assert.equal(source.slice(start, end), text);
  }
});

test("a long text is read in a moment", () => {
  const line = "        hidden = self.layers[number](hidden, mask=None) + 'a # b'  # (B, T, C)\n";
  const source = line.repeat(10_000);
  const before = performance.now();
  assert.equal(expressionAt(source, source.length - line.length + 8)?.text, "hidden");
  assert.ok(performance.now() - before < 3_000);
});

test("items are told from attributes", () => {
  for (const [source, hasItems] of [
    ["self.blocks", false],
    ["self.blocks[2].attn", true],
    ["[x]", false],
  ] as const) {
    assert.equal(expressionAt(source, source.lastIndexOf(".") + 2)?.hasItems, hasItems, source);
  }
});
