"""Compiled counterparts of members of the axes: one folder per axis, as in axes/, and one file per
member, by the same name.

    engine/cores/kernels/softmax.py     how scores become attention, for blocks of rows or for a whole table
    engine/cores/reads/rms_norm.py      what attention reads of a token

An equation is compiled where every axis has a counterpart, or its usual member, which needs none
(engine/plan.py). Otherwise it runs on the reference path (engine/reference.py), in every space,
mask, clock and batch.
"""
