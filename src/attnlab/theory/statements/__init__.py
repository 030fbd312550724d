"""Theorems, conjectures and estimates: one file per statement, with the name that it registers.

The docstring of `attnlab.theory` says how to add one.
"""
