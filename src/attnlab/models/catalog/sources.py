"""From a name to a Model: the catalog, a folder, the Hugging Face hub, or a state dict in
memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from attnlab.models.catalog import catalog
from attnlab.models.catalog.hub import HUB, hub_folder
from attnlab.models.checkpoints.families import families, family_of
from attnlab.models.checkpoints.files import (
    PICKLES,
    InMemory,
    open_safetensors,
    read_json,
    refuse_pickle,
)
from attnlab.models.checkpoints.foreign import explain_foreign, refuse_adapter
from attnlab.models.checkpoints.gguf_file import GgufFile, is_gguf
from attnlab.models.checkpoints.gguf_names import checkpoint_of
from attnlab.models.checkpoints.gguf_tokens import why_no_tokenizer
from attnlab.models.checkpoints.llama2c import is_llama2c, open_llama2c
from attnlab.models.checkpoints.model import Model
from attnlab.models.checkpoints.objects import describe_object, name_one_layer
from attnlab.models.checkpoints.onnx import config_of, open_onnx
from attnlab.models.checkpoints.record import BadModel, Tensors
from attnlab.models.checkpoints.tokenizers import with_tokenizer
from attnlab.models.checkpoints.torch_files import open_torch_files
from attnlab.progress import Progress, ProgressOption, track

FILES = (".gguf", ".bin", ".safetensors", ".onnx", ".pt", ".pth")
"""A name that ends so is a file, and no model of the catalog."""


def load(
    source: Any,
    config: Any = None,
    *,
    name: str | None = None,
    offline: bool = False,
    tokenizer: Any = None,
    torch_files: bool = False,
    progress: ProgressOption = False,
) -> Model:
    """Return the model under a catalog name, in a folder or file, on the hub, or in memory.

    Parameters
    ----------
    source : str, path, mapping or model
        The name of a model (`attnlab models` lists them, `attnlab fetch NAME` downloads one); a
        folder with config.json and *.safetensors, as Hugging Face writes them; a GGUF file; a raw
        file of llama2.c; "hf:owner/name@revision", from the folder owner/name of the mirror that the
        environment variable ATTNLAB_MIRROR names, or else through huggingface_hub with its cache
        and its offline mode; a state dict, arrays by their names; or a model in memory: of the
        library transformers, a HookedTransformer of TransformerLens, or a TransformerEncoder of
        torch.nn.
    config : mapping, optional
        The content of config.json, for a state dict. That of TransformerLens takes
        vars(model.cfg), that of torch.nn {"nhead": 4, "norm_first": False, "activation": "relu"}.
    name : str, optional
        A name for the model.
    offline : bool, optional
        Whether to download nothing. A model of the hub must then be in its cache.
    tokenizer : path, tokenizer or function, optional
        What cuts texts: a tokenizer.json or the folder that has one; a tokenizer of the library
        transformers or tokenizers; or a function from (text, special) to (ids, words). The default
        is the tokenizer.json that comes with the weights.
    torch_files : bool, optional
        Whether to read pytorch_model.bin where a folder has no safetensors. It is read by
        torch.load(weights_only=True), which needs torch, and which runs no program that the file
        holds.
    progress : bool, function or Progress, optional
        False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
        cancel. It shows the download of a model of the hub. With False huggingface_hub shows its
        own bars.

    Returns
    -------
    Model
        The model.

    Raises
    ------
    BadModel
        The checkpoint cannot be used. The message says why.

    Examples
    --------
    >>> import attnlab as al
    >>> model = al.models.load("minilm")                               # doctest: +SKIP
    """
    is_shown = progress is not None and progress is not False
    with track(progress, "loading") as progress:
        part = progress.part(0.0, 0.95) if is_shown else None
        model = _opened(source, config, name, offline, torch_files, part)
    return model if tokenizer is None else with_tokenizer(model, tokenizer)


def _opened(
    source: Any,
    config: Any,
    name: str | None,
    offline: bool,
    torch_files: bool,
    progress: Progress | None,
) -> Model:
    if isinstance(source, Mapping):
        return _from_memory(source, config, name or "in-memory model")
    if config is not None:
        raise ValueError(
            "config= goes with a state dict in memory; a folder, a name or a model brings its own."
        )
    if callable(getattr(source, "state_dict", None)):
        return _from_object(source, name)
    if not isinstance(source, str | Path):
        raise TypeError(
            "A model must be a catalog name, a folder or file, hf:owner/name, a model of"
            " transformers, TransformerLens or torch.nn, or a state dict with config=, got"
            f" {type(source).__name__}."
        )
    if isinstance(source, str) and source.startswith(HUB):
        return fetch_from_hub(source, name, offline=offline, progress=progress)[1]
    if not str(source).strip():
        raise ValueError("A model must have a name or a path, but the text is empty.")
    path = Path(source)
    if path.is_dir():
        return _from_folder(
            path,
            name or path.resolve().name,
            f"the folder {path.resolve().name}",
            str(source),
            torch_files,
        )
    if path.is_file():
        if path.suffix == ".bin" and is_llama2c(path):
            tensors, raw = open_llama2c(path)
            beside = path.with_name("tokenizer.bin")
            return _make_model(
                tensors,
                raw,
                name or path.stem,
                f"the file {path.name}",
                str(source),
                tokenizer=beside if beside.is_file() else None,
            )
        if is_gguf(path):
            return _from_gguf(path, name or path.stem, f"the file {path.name}", str(source))
        if path.suffix in PICKLES:
            raise refuse_pickle(path.name)
        raise BadModel(
            "A model must be a folder with config.json and weights, a GGUF file, or a raw file of"
            f" llama2.c, got the file {path.name}. Give its folder."
        )
    if isinstance(source, Path) or "/" in source or "\\" in source:
        raise FileNotFoundError(
            f"There is no folder {str(source)!r}. A model of the hub is written hf:owner/name."
        )
    if path.suffix in FILES:
        raise FileNotFoundError(f"There is no file {str(source)!r}. Give its path.")
    model = _from_folder(Path(catalog.folder_of(source)), source, f"the catalog, {source}", source)
    missing = catalog.missing_beside(source)
    if missing is None:
        return model
    size = catalog.in_megabytes(missing.archive_size)
    reason = f"`attnlab fetch {source}` adds it ({size}, with {missing.client})."
    return replace(model, without_tokenizer=reason)


def fetch_from_hub(
    source: str,
    name: str | None = None,
    *,
    force: bool = False,
    offline: bool = False,
    progress: ProgressOption = False,
) -> tuple[Path, Model]:
    """Download hf:owner/name[@revision] into the hub's own cache, or find it in the mirror. Return
    its folder and the checked model.

    Cached files are downloaded again only if they changed on the hub, or with force. offline:
    nothing is downloaded. progress: False, True (a bar), a function f(fraction, doing), or an
    al.Progress, which can also cancel.
    """
    said = source.removeprefix(HUB)
    is_shown = progress is not None and progress is not False
    with track(progress, f"fetching {said}") as progress:
        part = progress.part(0.0, 0.9) if is_shown else None
        folder = hub_folder(said, force, offline, part)
        progress(0.9, "reading")
        model = _from_folder(folder, name or said, f"the Hugging Face hub, {said}", source)
    return folder, model


def _from_memory(state: Mapping[str, Any], config: Any, name: str) -> Model:
    if config is None:
        raise ValueError(
            "A state dict needs config=, the content of its config.json: model_type, hidden_size,"
            " num_attention_heads and so on."
        )
    raw = config.to_dict() if hasattr(config, "to_dict") else dict(config)
    return _make_model(InMemory(name_one_layer(state)), raw, name, "memory", None)


def _from_object(model: Any, name: str | None) -> Model:
    """Return a model of another library with its weights in memory."""
    state, raw = describe_object(model)
    kind = type(model).__name__
    return _from_memory(state, raw, name or str(getattr(model, "name_or_path", "") or kind))


def _from_gguf(
    path: Path, name: str, source: str, address: str | None, licence: str | None = None
) -> Model:
    """Return the model in a GGUF file, with the tokenizer.json beside it or the one inside."""
    file = GgufFile(path)
    beside = path.with_name("tokenizer.json")
    reason = None if beside.is_file() else why_no_tokenizer(file.fields)
    tokenizer = beside if beside.is_file() else path if reason is None else None
    licence = licence or str(file.fields.get("general.license", "not stated"))[:80]
    try:
        tensors, raw = checkpoint_of(file)
    except BadModel as error:
        raise BadModel(f"{name} cannot be loaded. {error}") from None
    model = _make_model(tensors, raw, name, source, address, licence, tokenizer)
    return replace(model, without_tokenizer=reason or "")


def _from_folder(
    folder: Path, name: str, source: str, address: str | None, torch_files: bool = False
) -> Model:
    """Return the model in a folder. `attnlab.json`, which fetching writes, gives its format,
    licence and config.
    """
    refuse_adapter(folder)
    note = read_json(folder / "attnlab.json") if (folder / "attnlab.json").is_file() else {}
    raw: dict[str, Any] = (
        read_json(folder / "config.json") if (folder / "config.json").is_file() else {}
    )
    family = note.get("family")
    if isinstance(family, str) and family in families and "model_type" not in raw:
        raw["model_type"] = families[family].model_types[0]
    tensors: Tensors
    if note.get("format") == "gguf" or (not note and not raw):
        files = sorted(folder.glob("*.gguf"))
        if len(files) == 1:
            return _from_gguf(files[0], name, source, address, note.get("licence"))
        if files:
            raise BadModel(
                f"The folder {folder.name} has several GGUF files. Give one of them:"
                f" {', '.join(path.name for path in files[:4])}."
            )
    layout = note.get("format") or (
        "onnx" if not raw and (folder / "model.onnx").is_file() else "safetensors"
    )
    if layout == "onnx":
        tensors = open_onnx(folder / "model.onnx")
        raw = {**config_of(tensors), **raw}
    elif layout == "llama2c":
        tensors, raw = open_llama2c(folder / "model.bin")
    elif layout == "safetensors":
        has_pickle = torch_files and not any(folder.glob("*.safetensors"))
        address = None if has_pickle else address  # a Spec does not ask for files of torch
        tensors = open_torch_files(folder) if has_pickle else open_safetensors(folder)
        if not raw:
            raise BadModel(
                f"The folder {folder.name} must hold config.json, which says heads and layers. Copy"
                " it from the checkpoint."
            )
    else:
        raise BadModel(
            "attnlab.json must name the format safetensors, onnx, llama2c or gguf, with its file,"
            f" found {str(layout)[:40]!r}. Fetch the model again."
        )
    files = [
        folder / "tokenizer.json",
        *([folder / "tokenizer.bin"] if layout == "llama2c" else []),
    ]
    tokenizer = next((path for path in files if path.is_file()), None)
    return _make_model(
        tensors, raw, name, source, address, str(note.get("licence") or "not stated"), tokenizer
    )


def _make_model(
    tensors: Tensors,
    raw: dict[str, Any],
    name: str,
    source: str,
    address: str | None,
    licence: str = "not stated",
    tokenizer: Path | None = None,
) -> Model:
    try:
        parts = families[family_of(tensors, raw)](tensors, raw)
    except BadModel as error:
        names = (*tensors, *getattr(tensors, "passed_over", ()))
        reason = explain_foreign(names, raw) or str(error)
        raise BadModel(f"{name} cannot be loaded. {reason}") from None
    return Model(name, parts, raw, source, licence, tokenizer, address)
