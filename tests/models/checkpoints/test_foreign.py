"""Checkpoints that no family reads are refused in a sentence that names a tensor or a key, and says
what to do.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import attnlab as al
import tiny_models
from attnlab.models import BadModel

AT = "model.layers.0."

FOREIGN = {
    "lora": (AT + "self_attn.q_proj.lora_A.weight", "merge_and_unload"),
    "lora in peft": (AT + "self_attn.q_proj.lora_B.default.weight", "merge_and_unload"),
    "wrapped": (AT + "self_attn.q_proj.base_layer.weight", "merge_and_unload"),
    "gptq": (AT + "self_attn.q_proj.qweight", "16 or 32 bits"),
    "bitsandbytes": (AT + "mlp.up_proj.weight.absmax", "16 or 32 bits"),
    "bitsandbytes 4 bits": (AT + "mlp.up_proj.weight.quant_state.bitsandbytes__nf4", "32 bits"),
    "8 bits": (AT + "mlp.up_proj.SCB", "16 or 32 bits"),
    "fp8": (AT + "mlp.up_proj.weight_scale_inv", "16 or 32 bits"),
    "mixtral": (AT + "block_sparse_moe.experts.0.w1.weight", r"al.models.heads\(Q, K, V, O\)"),
    "qwen moe": (AT + "mlp.experts.3.up_proj.weight", r"al.models.heads\(Q, K, V, O\)"),
    "mamba": ("backbone.layers.0.mixer.A_log", "reads transformers"),
    "rwkv": ("blocks.0.attention.time_decay", "reads transformers"),
}


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("is_beside", [True, False])
def test_it_says_what_to_do(kind, is_beside):
    """Beside the tensors of a Llama, and in the place of one."""
    name, advice = FOREIGN[kind]
    state, raw = tiny_models.llama()
    if not is_beside:
        del state[AT + "self_attn.q_proj.weight"]
    elif not name.startswith(AT):
        return  # outside the layers of a Llama it changes nothing
    with pytest.raises(BadModel, match=rf"The tensor '{name}' .*{advice}"):
        al.models.load({**state, name: np.ones(3)}, config=raw)


@pytest.mark.parametrize("kind", ["mixtral", "mamba", "jamba", "qwen2_moe"])
def test_a_model_type_that_is_not_known_says_more_if_the_tensors_do(kind):
    name = FOREIGN["mamba" if kind in ("mamba", "jamba") else "mixtral"][0]
    with pytest.raises(BadModel, match=f"The tensor '{name}'"):
        al.models.load({name: np.ones(3)}, config={"model_type": kind})
    with pytest.raises(BadModel, match=f"model_type '{kind}', which no family here can read"):
        al.models.load({"a": np.ones(3)}, config={"model_type": kind})


def test_no_name_of_a_family_looks_foreign():
    """Else a mistake in such a checkpoint would be explained wrongly."""
    from attnlab.models.checkpoints.foreign import explain_foreign

    for make in tiny_models.MAKERS.values():
        state, raw = make()
        assert explain_foreign(state, raw) is None


def test_quantization_config_is_named():
    state, raw = tiny_models.llama()
    config = {**raw, "quantization_config": {"quant_method": "gptq", "bits": 4}}
    with pytest.raises(BadModel, match=r"quantization_config in the config is .*gptq.*16 or 32"):
        al.models.load(state, config=config)


def test_a_folder_with_an_adapter(tmp_path):
    base = {"peft_type": "LORA", "base_model_name_or_path": "meta-llama/Llama-2-7b"}
    (tmp_path / "adapter_config.json").write_text(json.dumps(base))
    (tmp_path / "adapter_model.safetensors").write_bytes(b"")
    with pytest.raises(BadModel, match=r"an adapter for meta-llama/Llama-2-7b, .*merge_and_unload"):
        al.models.load(tmp_path)
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(BadModel, match="holds an adapter, and no model"):
        al.models.load(tmp_path)


def write_safetensors(path, name, dtype, size):
    header = {name: {"dtype": dtype, "shape": [size], "data_offsets": [0, size]}}
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(size))


def test_files_with_numbers_of_few_bits(tmp_path):
    state, raw = tiny_models.llama()
    (tmp_path / "config.json").write_text(json.dumps(raw))
    name = AT + "self_attn.q_proj.weight"
    write_safetensors(tmp_path / "model.safetensors", name, "F8_E4M3", 12)
    with pytest.raises(BadModel, match=rf"'{name}' in model.safetensors has .*'F8_E4M3'.*32 bits"):
        al.models.load(tmp_path)
    write_safetensors(tmp_path / "model.safetensors", AT + "mlp.up_proj.qweight", "U8", 12)
    with pytest.raises(BadModel, match=r"mlp.up_proj.qweight' belongs to weights .* few bits"):
        al.models.load(tmp_path)  # whole numbers are passed over, but their names are known
    for number in (1, 2):
        path = tmp_path / f"model-{number}.safetensors"
        write_safetensors(path, AT + f"mlp.up_proj.{'qweight' if number == 1 else 'x'}", "U8", 12)
    where = {
        AT + f"mlp.up_proj.{'qweight' if n == 1 else 'x'}": f"model-{n}.safetensors" for n in (1, 2)
    }
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
    with pytest.raises(BadModel, match="must have one tensor|few bits"):
        al.models.load(tmp_path)
    (tmp_path / "model-2.safetensors").unlink()
    with pytest.raises(BadModel, match=r"names 'model-2.safetensors', .*Fetch the missing file"):
        al.models.load(tmp_path)
