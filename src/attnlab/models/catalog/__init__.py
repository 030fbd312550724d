"""The sources of trained models: the list of known models, the download, and the arguments of
`load`.

`catalog.py` has one entry per known model, and `hub.py` finds the models of the Hugging Face hub.
`fetch.py` downloads a known model through the programs of `clients.py` and unpacks it with
`archives.py`. `sources.py` turns a name, a folder, a file or arrays into a Model.
"""
