/** What a Python file imports, as far as it matters here; read from the text alone. */

const TORCH = /^[ \t]*(?:import|from)[ \t]+(?:[\w., \t]+,[ \t]*)?torch\b/m;

/** Whether a file is likely to have shapes to show. */
export function importsTorch(source: string): boolean {
  return TORCH.test(source);
}
