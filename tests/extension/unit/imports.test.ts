import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { importsTorch } from "../../../extension/src/model/imports";

const WITH = [
  "import torch",
  "import os\nimport torch.nn as nn",
  "from torch import nn",
  "from torch.nn import functional as F",
  "import os, sys, torch",
  "def f():\n    import torch\n",
];

const WITHOUT = [
  "",
  "import torchvision",
  "from torchmetrics import Accuracy",
  "# import torch",
  'x = "import torch"',
  "from mine import torch_tools",
];

describe("a file imports torch", () => {
  for (const source of WITH) {
    test(source, () => {
      assert.ok(importsTorch(source));
    });
  }
});

describe("a file does not import torch", () => {
  for (const source of WITHOUT) {
    test(source || "nothing", () => {
      assert.ok(!importsTorch(source));
    });
  }
});
