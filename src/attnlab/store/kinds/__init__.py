"""The kinds of results that can be stored, one file each. `attnlab.store.packing.Kind` says what a
file must register.
"""
