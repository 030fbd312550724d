"""A checkpoint as one record, and everything that follows from the record alone.

`families/` reads each kind of checkpoint into the record of `record.py`, from the formats of
`files.py`, `onnx.py` and `llama2c.py`. `forward.py` computes with the record, `slices.py` cuts
heads out of it as Weights, `model.py` has the Model of users. `texts.py` makes ids from text. This
folder uses neither the catalog nor the studies.
"""
