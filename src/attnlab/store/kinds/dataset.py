"""A labelled Dataset of xarray, as `al.models.sentence` and `al.models.iterate` return it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.netcdf import Variable
from attnlab.store.kinds.table import tabulate as tabulate_frame
from attnlab.store.packing import Arrays, Kind, Labelled, Packed, Words, is_instance, kinds
from attnlab.store.trees import as_text, check_stored, decode, encode, text_type

if TYPE_CHECKING:
    import xarray


def pack(data: xarray.Dataset) -> Packed:
    """All variables and coordinates with their axes and attributes."""
    variables, about, texts = {}, {}, {}
    for name, variable in data.variables.items():
        values = check_stored(np.asarray(variable.values), str(name))
        words = {
            str(word): value for word, value in variable.attrs.items() if isinstance(value, str)
        }
        variables[str(name)] = Variable(tuple(map(str, variable.dims)), values, words)
        about[str(name)], texts[str(name)] = dict(variable.attrs), text_type(values)
    tree, arrays = encode({"attributes": dict(data.attrs), "about": about}, "attributes")
    content = {
        "tree": tree,
        "texts": texts,
        "axes": {name: list(variable.axes) for name, variable in variables.items()},
        "coordinates": [str(name) for name in data.coords],
    }
    return Packed(variables | arrays, {"content": json.dumps(content)})


def unpack(arrays: Arrays, words: Words) -> xarray.Dataset:
    """The Dataset of arrays and words."""
    import xarray

    content = json.loads(words["content"])
    tree = decode(content["tree"], arrays)
    found = {
        name: (tuple(axes), as_text(arrays[name], content["texts"][name]), tree["about"][name])
        for name, axes in content["axes"].items()
    }
    coordinates = {name: found[name] for name in content["coordinates"]}
    return xarray.Dataset(
        {name: variable for name, variable in found.items() if name not in coordinates},
        coordinates,
        tree["attributes"],
    )


def label(data: xarray.Dataset) -> Labelled:
    """Return the Dataset unchanged."""
    variables = {
        str(name): Variable(tuple(map(str, one.dims)), np.asarray(one.values), dict(one.attrs))
        for name, one in data.variables.items()
    }
    return Labelled(variables, dict(data.attrs), tuple(map(str, data.coords)))


def view(data: xarray.Dataset) -> Labelled:
    """The words of the Dataset, for other programs."""
    words = {
        str(name): value
        for name, value in data.attrs.items()
        if isinstance(value, str | int | float)
    }
    return Labelled({}, {name: value for name, value in words.items() if name != "content"})


def tabulate(data: xarray.Dataset) -> Mapping[str, np.ndarray]:
    """The table of a result of `al.models`."""
    from attnlab.models.studies.tidy import has_table, no_table, table

    if not has_table(data):
        raise ValueError(f"{no_table(data)} Or save it as a .nc file.")
    return tabulate_frame(table(data))


def _samples() -> Mapping[str, Any]:
    import xarray

    rng = np.random.default_rng(0)
    data = xarray.Dataset(
        {
            "x": (
                ("variant", "step", "token"),
                rng.normal(size=(2, 3, 4)),
                {"long_name": "tokens", "most": 7},
            ),
            "leader": (("step",), np.arange(3)),
        },
        coords={
            "variant": ["real", "twin"],
            "word": ("token", ["a", "cat", "sat", "."]),
            "is_special": ("token", np.zeros(4, np.int8)),
        },
        attrs={
            "model": "tiny",
            "rng": 3,
            "share": 0.5,
            "special": True,
            "layers": (1, 2),
            "none": None,
        },
    )
    return {"sentence": data, "nothing": xarray.Dataset()}


kinds.register("dataset")(
    Kind(
        title="a Dataset",
        is_one=lambda thing: is_instance(thing, "xarray", "Dataset"),
        pack=pack,
        unpack=unpack,
        label=label,
        samples=_samples,
        tabulate=tabulate,
        views=view,
    )
)
