/** The imports of a Python file, as far as they matter here, read from the text alone. */

const TORCH = /^[ \t]*(?:import|from)[ \t]+(?:[\w., \t]+,[ \t]*)?torch\b/m;

/** Returns whether a file is likely to have shapes to show. */
export function importsTorch(source: string): boolean {
  return TORCH.test(source);
}
