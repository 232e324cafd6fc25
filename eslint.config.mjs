import eslint from "@eslint/js";
import { defineConfig, globalIgnores } from "eslint/config";
import typescript from "typescript-eslint";

export default defineConfig(
  globalIgnores([".editors/", ".pythons/", ".venv/", "build/", "dist/"]),
  { linterOptions: { reportUnusedDisableDirectives: "error" } },
  {
    files: ["**/*.{ts,mjs}"],
    extends: [
      eslint.configs.recommended,
      typescript.configs.strictTypeChecked,
      typescript.configs.stylisticTypeChecked,
    ],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      "@typescript-eslint/switch-exhaustiveness-check": [
        "error",
        { considerDefaultExhaustiveForUnions: true },
      ],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-extraneous-class": ["error", { allowConstructorOnly: true }],
      eqeqeq: "error",
      "no-console": "error",
      "no-undef": "off", // tsc does this better, in scripts too
    },
  },
  {
    // The extension writes to its log; a script's console is its user interface. The types that
    // scripts give in comments are seen by tsc only.
    files: ["scripts/**"],
    rules: { "no-console": "off", "@typescript-eslint/no-unsafe-assignment": "off" },
  },
  {
    // node:test reports through the runner; its promises need no waiting.
    files: ["tests/extension/**"],
    rules: {
      "@typescript-eslint/no-floating-promises": [
        "error",
        {
          allowForKnownSafeCalls: [
            { from: "package", package: "node:test", name: ["test", "describe", "it"] },
          ],
        },
      ],
    },
  },
);
