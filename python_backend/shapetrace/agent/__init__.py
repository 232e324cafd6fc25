"""The agent: the part of Shapetrace in the debugged program. Standard library and torch only.

Debugpy's plugin folder (``pydevd_plugins``) starts it, before the program and before torch.

Modules:

- ``bootstrap``: starts the agent: with the program, on attaching, after a fork
- ``agent``: the agent: runs the recorder, and sends what is new from a hidden thread
- ``left_over_modes``: removes modes that torch puts back after the agent has left
- ``environment``: reads facts about the program without importing anything
- ``debugger``: asks pydevd about breakpoints, and whether the program is stopped
- ``hiding``: keeps our files out of the debugger's steps and stacks
- ``hook_hiding``: keeps the hooks of followed functions out of the debugger's steps
- ``stop_query``: tells the server at a stop which recorded call a stack frame belongs to
- ``lookups``: whether a hovered expression can be evaluated without side effects
- ``in_place``: runs and records an expression in a stopped frame
- ``providers``: answers pydevd's questions about values
- ``panes``: registers these answers with pydevd, and removes them
- ``requests``: the requested captures and watches of this process
- ``captures``: captures values of the program's models for the server
- ``capturing``: captures from one model; reports values and keeps none
- ``summaries``: shape, statistics and histogram of a captured value
- ``watches``: watches variables for the server
- ``feeds``: items that wait to be sent, and what the server already knows
"""
