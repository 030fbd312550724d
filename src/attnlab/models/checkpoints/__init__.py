"""A checkpoint as one record, and all that follows from the record alone.

`families/` reads each kind of checkpoint into the record of `record.py`, through the formats of `files.py`, `onnx.py` and
`llama2c.py`. `forward.py` computes with the record, `slices.py` cuts heads out of it as Weights, `model.py` is what users hold.
`texts.py` makes ids from text. This folder knows neither the catalog nor the studies.
"""
