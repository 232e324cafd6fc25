"""An independent second opinion on what a program did, written to be read rather than fast.

Nothing here imports the recorder. ``mode`` notes every torch call through a mode of its own,
``calls`` compares such notes with a trace, ``lines`` watches which assignments made tensors,
``claims`` says what a trace claims about them, ``remains`` looks for what a trace left behind.
"""
