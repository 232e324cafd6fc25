"""What agent and language server say to each other, and the agent's end of it.

Standard library only, and nothing that the program could have replaced: see ``sender``.
"""
