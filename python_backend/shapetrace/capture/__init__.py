"""Captures values of a model while it runs: outputs, arguments and variables, chosen by path.

Modules:

- ``paths``: the grammar of paths (``layers.*.attn.forward.scores``), matching, and nearest names
- ``structure``: a model as names: modules, their functions and variables
- ``scripted``: modules that TorchScript runs: only inputs and outputs can be captured
- ``plan``: which functions of which modules a path refers to
- ``installing``: has the functions of a plan followed, for as long as needed
- ``replacing``: replaces methods of classes that can only be followed from outside
- ``watch_importlib_bootstrap``: our frames on the program's stack while the model runs
- ``iterations``: which iteration of the model runs, by thread and generator
- ``capture_session``: one model whose values are captured, from its start to its end
- ``receivers``: who gets the values
- ``listeners``: handles the begin, the assignments and the return of a followed call
- ``value_changes``: whether a value differs from what was last seen
- ``fused_steps``: parameter changes by fused optimizers, which do not count them
- ``copies``: copies values unnoticed
- ``value_items``: the named parts of a value: keys, indices, fields, attributes
- ``dtensors``: distributed tensors by their local shard
- ``results``: captured values with iteration and rank, and rounds of them
- ``problems``: what could not be captured, as values; what could not be saved
- ``outcome``: explains why a path captured nothing
- ``finding``: finds the program's model for the command line: the outermost called module
"""
