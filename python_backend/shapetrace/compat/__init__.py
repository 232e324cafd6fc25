"""The public names of tools that Shapetrace stands in for, one module for each tool.

A program moves over by changing one import line: ``from shapetrace import Tracer``.
"""
