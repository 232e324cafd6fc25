"""The messages between the extension and the language server, beside those of the protocol."""
