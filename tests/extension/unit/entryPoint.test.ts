import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";

import { hasEntryPoint } from "../../../extension/src/model/entryPoint";

const EXAMPLES = join(import.meta.dirname, "../../../examples");

const PROGRAMS: Readonly<Record<string, string>> = {
  "a guard": 'def main():\n    pass\nif __name__ == "__main__":\n    main()\n',
  "a guard with other quotes": "if __name__ == '__main__': main()",
  "a guard the other way round": 'if "__main__" == __name__:\n    main()',
  "a guard in brackets": 'if (__name__ == "__main__"):\n    main()',
  "a call": "import torch\nmain()",
  "a call of a method": "trainer = Trainer()\ntrainer.fit(model)",
  "a call over several lines": "train(\n    model,\n    data,\n)",
  "an awaited call": "await main()",
  print: "print(model(x))",
  "a result that is kept": "model = Net()\ny = model(torch.randn(2, 3))",
  "a method of what was made": "model = Net()\nloss = model.loss(x)",
  "an annotated result": "model: Net = Net()\ny: Tensor = model(x)",
  "a loop": "model = Net()\nfor x in loader:\n    y = model(x)",
  "a with block": "model = Net()\nwith torch.no_grad():\n    y = model(x)",
  "a with block on one line": "with torch.no_grad(): evaluate(model)",
  "a statement behind another": "import torch; main()",
  "the result of a function of its own": "def train(model):\n    pass\n\nhistory = train(Net())\n",
  "only assignments": "import torch\nx = torch.randn(2, 3)\ny = x @ x.T",
  "an old Mac would not": "x = 1\r\nmain()\r\n",
};

const LIBRARIES: Readonly<Record<string, string>> = {
  nothing: "",
  definitions:
    "import torch\nclass Net(nn.Module):\n    def forward(self, x):\n        return f(x)\n",
  "a decorator with arguments":
    "@dataclass(frozen=True)\nclass Config:\n    width: int = field(1)\n",
  "a decorator over lines": "@register(\n    'net',\n)\ndef net():\n    return Net()\n",
  constants:
    "DEVICE = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\nT = TypeVar('T')",
  "a table made by a function of its own": "def _table():\n    return {}\nTABLE = _table()\n",
  "a configuration": "import torch\nwidth = 64\nDEVICE = torch.device('cpu')\n",
  "a variable beside definitions": "cache = make()\ndef f(): ...\n",
  "a logger and nothing else": "log = logging.getLogger(__name__)",
  "a logger": "logger = logging.getLogger(__name__)\nlogger.setLevel(logging.INFO)",
  "a seed": "torch.manual_seed(0)\nwarnings.filterwarnings('ignore')",
  "torch's switches":
    "torch.backends.cudnn.benchmark = True\ntorch.set_float32_matmul_precision('high')",
  "a path": "sys.path.append(os.path.dirname(__file__))",
  "optional imports": "try:\n    import apex\nexcept ImportError:\n    apex = None\n",
  "a name list": "__all__ = ['Net']\n__all__.extend(extra)",
  "a guard in a docstring": '"""\nif __name__ == "__main__":\n    main()\n"""\ndef f(): ...\n',
  "a guard in a comment": '# if __name__ == "__main__":\nx = 1',
  "a call in a string": 'USAGE = """\nmain()\n"""\n',
  "a call in a function": "def f():\n    # text\n    main()\n\n    main()\n",
  "typing only": "if TYPE_CHECKING:\n    from torch import Tensor\n",
  "an unfinished string": 'x = "abc\ny = 1\n',
  "an unfinished bracket": "def g(): ...\nx = f(\n",
};

describe("a program", () => {
  for (const [name, source] of Object.entries(PROGRAMS)) {
    test(name, () => {
      assert.equal(hasEntryPoint(source), true);
    });
  }

  test("the examples", () => {
    for (const file of readdirSync(EXAMPLES).filter((each) => /^\w+\.py$/.test(each))) {
      assert.equal(hasEntryPoint(readFileSync(join(EXAMPLES, file), "utf8")), true, file);
    }
  });
});

describe("a library", () => {
  for (const [name, source] of Object.entries(LIBRARIES)) {
    test(name, () => {
      assert.equal(hasEntryPoint(source), false);
    });
  }
});
