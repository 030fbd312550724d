"""Theorems, conjectures and estimates: one file per statement, called like the name that it registers.

The front door of `attnlab.theory` says how to add one.
"""
