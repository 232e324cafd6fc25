"""What runs in the user's process in a debug session: standard library and torch only.

Entered by debugpy's plugin folder (``pydevd_plugins``), before the program and before torch.
"""
