"""The program's process: how it ends and forks, its signals and its main thread.

Modules:

- ``start_time``: when this process began
- ``main_thread``: runs something on the main thread between two instructions
- ``own_threads``: threads that a debugger neither shows nor stops
- ``forks``: keeps a fork from happening in the middle of something
- ``undisturbed``: runs code at the end despite the program's signal handlers
- ``ending``: ends the program early (``--stop-after-trace``)
- ``exits``: notices ``os._exit`` and ``os.exec*``
- ``early_exit``: notices an end without Python's own shutdown
- ``fatal``: handles fatal signals: saves the trace first
- ``alarm_first``: machine code that sets an alarm before such a handler
- ``alternate_stack``: a signal stack, for when the thread's own has overflowed
- ``trimmed_tracebacks``: tracebacks without our frames
"""
