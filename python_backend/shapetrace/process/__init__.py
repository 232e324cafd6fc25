"""What goes on beside a program in its process: how it ends, and noticing that it leaves."""
