"""Following named variables through functions, and telling of calls, inputs and outputs.

    @var_tracker("video", "sample['mask']")
    def transform(sample): ...

A function is followed in place (``instrument``): it stays the object that it was. What is told are
events (``events.followed``), which are printed, or handed to whoever asked for them.
"""
