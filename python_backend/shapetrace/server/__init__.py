"""The language server: keeps traces and shows them in the editor. It never imports torch."""
