/**
 * Programs as they should look in the editor: each hint in its place, between « and ». Without the
 * hints such a text is the program itself.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { Failure, PYTHON } from "../../../../scripts/setup.mjs";

/** The program without its hints. */
export function sourceOf(annotated: string): string {
  return annotated.replaceAll(/«[^»]*»/g, "");
}

/** Two layers, and a program that makes one step of training. */
export const TRAINING = `\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 8)
        self.down = nn.Linear(8, 2)

    def forward(self, x):«x f32[3,4]»
        hidden = self.up(x).relu()«f32[3,8]»
        return self.down(hidden)«f32[3,2]»


model = Model()
inputs = torch.randn(3, 4)«f32[3,4]»
outputs = model(inputs)«f32[3,2]»
loss = outputs.pow(2).mean()«f32[]»
loss.backward()
`;

/** The number of the only line that contains that. */
export function lineOf(program: string, fragment: string): number {
  const lines = sourceOf(program).split("\n");
  const found = lines.flatMap((line, index) => (line.includes(fragment) ? [index + 1] : []));
  const [number] = found;
  if (number === undefined || found.length > 1) {
    throw new Failure(`${found.length} lines contain ${fragment}`);
  }
  return number;
}

/** A virtual environment without torch: its Python, and where its packages are. */
export function makeEnvironment(folder: string): { python: string; packages: string } {
  must(PYTHON, ["-m", "venv", "--without-pip", folder]);
  const python = join(folder, "bin", "python");
  return { python, packages: packagesOf(python) };
}

/** Lets an environment import what the project's own environment has, torch above all. */
export function shareTorch({ packages }: { packages: string }): void {
  mkdirSync(packages, { recursive: true });
  writeFileSync(join(packages, "shared.pth"), `${packagesOf(PYTHON)}\n`);
}

function packagesOf(python: string): string {
  return must(python, ["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).trim();
}

function must(program: string, options: readonly string[]): string {
  const result = spawnSync(program, options, { encoding: "utf8" });
  if (result.status !== 0) {
    throw new Failure(`${program} ${options.join(" ")} failed: ${result.stderr}`);
  }
  return result.stdout;
}
