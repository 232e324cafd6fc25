"""Follows variables by name wherever a program assigns them, without editing it.

Modules:

- ``wanted``: what is to be watched, as the user writes it
- ``territory``: whether a file is the user's code or a library's
- ``loading``: hooks into Python's import, between reading and running a module
- ``watched_functions``: which functions are followed for which name
- ``listening``: who hears of watched variables
- ``existing``: follows functions that already exist
- ``unseen_names``: explains names without reports
- ``program_watch``: watches a whole program
- ``children``: goes on in processes that ``multiprocessing`` starts
"""
