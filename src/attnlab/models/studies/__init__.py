"""Studies of trained models: spectra of heads, sentences through a stack, flows of heads, tied
layers, the dossier.

Each study takes a Model and returns a table, a Dataset or a record. `cli/` prints them and
`render/` draws them.
"""
