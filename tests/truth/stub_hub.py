"""A hub without a network: it fills the bars of a download as huggingface_hub does."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import tiny_models

SIZE = 4_000_000


def stub_hub(folder: Path, pause: Any = None) -> SimpleNamespace:
    """Return an object with snapshot_download, which answers with a tiny BERT in `folder`.

    pause: called after half of the bytes
    """
    state, raw = tiny_models.bert()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(raw))
    (folder / "model.safetensors").write_bytes(tiny_models.safetensors(state))

    def snapshot_download(repository: str, tqdm_class: Any = None, **options: Any) -> str:
        if tqdm_class is None:
            return str(folder)
        network = tqdm_class(
            desc="Downloading bytes", total=0, initial=0, unit="B", unit_scale=True
        )
        disk = tqdm_class(desc="Reconstructing", total=0, initial=0, unit="B", unit_scale=True)
        network.total = disk.total = SIZE

        def fetch(_: str) -> None:
            for _ in range(4):
                disk.update(SIZE // 8)
                disk.set_postfix_str("1 MB/s", refresh=False)

        with (
            tqdm_class(total=2, desc="Fetching 2 files") as files,
            ThreadPoolExecutor(
                2, initializer=tqdm_class.set_lock, initargs=(tqdm_class.get_lock(),)
            ) as pool,
        ):
            for number, name in enumerate(("a", "b")):
                pool.submit(fetch, name).result()
                files.update(1)
                if pause is not None and number == 0:
                    pause()
        disk.set_description("Reconstruction complete")
        return str(folder)

    return SimpleNamespace(snapshot_download=snapshot_download)
