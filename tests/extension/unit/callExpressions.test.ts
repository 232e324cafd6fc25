import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { callsAt, isExpression, valueAt } from "../../../extension/src/model/callExpressions";

/** Statements, each with the calls that can be made where a program stands at it. */
const CALLS: readonly (readonly [string, ...string[]])[] = [
  ["loss = model(x).sum()", "model(x).sum()", "model(x)"],
  ["y = self.fc(x)", "self.fc(x)"],
  ["return criterion(model(x), y)", "criterion(model(x), y)", "model(x)"],
  ["y = self.layers[0](x)[1].view(-1)", "self.layers[0](x)[1].view(-1)", "self.layers[0](x)"],
  ["y = super().forward(x)", "super().forward(x)"],
  ["y = (a + b).relu()", "(a + b).relu()"],
  ["y = f(x) + g(f(x))", "f(x)", "g(f(x))"],
  [
    "y = model(\n    x,  # the batch\n    mask=None,\n)",
    "model(\n    x,  # the batch\n    mask=None,\n)",
  ],
  ["y = model \\\n    (x)", "model \\\n    (x)"],
  ["for x in loader(n):", "loader(n)"],
  ["for i, x in enumerate(loader(n)):", "loader(n)"],
  ["if model(x).any():", "model(x).any()", "model(x)"],
  ["with torch.autocast(kind()):", "torch.autocast(kind())", "kind()"],
  ["x += f(x)", "f(x)"],
  ["print(model(x))", "model(x)"],
  ["y = '(' + f('a)', x)", "f('a)', x)"],
  // Names that are not there, or what cannot be run from outside.
  ["y = [f(x) for x in parts(z)]"],
  ["y = sum(f(x) for x in z)", "sum(f(x) for x in z)"],
  ["y = map(lambda x: f(g(x)), z)", "map(lambda x: f(g(x)), z)"],
  ["y = {k: f(v) for k, v in z.items()}"],
  ["y = await f(g(x))", "g(x)"],
  ["y = f(await g(x))"],
  ["y = yield f(x)", "f(x)"],
  // Nothing that runs a model.
  ["def f(x=g()):"],
  ["class A(f()):"],
  ["@f(x)"],
  ["from a import (b)"],
  ["y = x @ w"],
  ["y = (x)"],
  ["# f(x)"],
  ["'f(x)'"],
  ["y = x[len(z):]"],
];

describe("the calls of a statement", () => {
  for (const [statement, ...calls] of CALLS) {
    test(statement, () => {
      const source = `import torch\n\n${statement}\nother(1)\n`;
      for (let line = 3; line <= 2 + statement.split("\n").length; line += 1) {
        assert.deepEqual(callsAt(source, line), calls, `in line ${line}`);
      }
    });
  }

  test("is the one that the line is of", () => {
    const source = "first(1)\nif second(2):\n    third(3)\n\n\n";
    assert.deepEqual(callsAt(source, 1), ["first(1)"]);
    assert.deepEqual(callsAt(source, 2), ["second(2)"]);
    assert.deepEqual(callsAt(source, 3), ["third(3)"]);
    for (const line of [0, 4, 5, 99]) {
      assert.deepEqual(callsAt(source, line), []);
    }
  });

  test("are not too many", () => {
    const many = Array.from({ length: 30 }, (_, index) => `f(${index})`).join(" + ");
    assert.equal(callsAt(many, 1).length, 8);
  });
});

describe("what a statement is worth", () => {
  for (const [statement, value] of [
    ["y = x @ w", "x @ w"],
    ["a = b = x * 2", "x * 2"],
    ["x += y", "y"],
    ["x: Tensor = y[1:]", "y[1:]"],
    ["return x + 1", "x + 1"],
    ["x @ w", "x @ w"],
    ["f = lambda x=1: x", "lambda x=1: x"],
    ["if x > 1:", undefined],
    ["return", undefined],
    ["del x", undefined],
    ["", undefined],
  ] as const) {
    test(statement, () => {
      assert.equal(valueAt(statement, 1), value);
    });
  }
});

const EXPRESSIONS = [
  ...["x", "model(x)", "x + 1", "-x", "x[1:, None]", "a, b", "lambda x=2: x", "not x", "'text'"],
  ...["a if b else c", "[f(x) for x in z]", "f(a=1)", "a == b", "x <= y", "(y := f(x))", "None"],
  ...["f(\n  x\n)", "x  # said"],
];

const OTHERS = [
  ...["", "  ", "# x", "f(x", "x)", ")(", "y = f(x)", "x += 1", "+", "x +", "* x", "return x"],
  ...["a; b", "if x: y", "x: int", "y := 1", "import a", "x and", "def f(): pass", "x.", ", x"],
];

describe("expressions", () => {
  for (const text of EXPRESSIONS) {
    test(text, () => {
      assert.ok(isExpression(text));
    });
  }
});

describe("no expressions", () => {
  for (const text of OTHERS) {
    test(JSON.stringify(text), () => {
      assert.ok(!isExpression(text));
    });
  }
});

test("a long statement is read in a moment", () => {
  const source = `x = f(${"g(x, [1, 2]), ".repeat(500)})\n`.repeat(20);
  const before = performance.now();
  assert.equal(callsAt(source, 20).length, 2);
  assert.ok(performance.now() - before < 3_000);
});
