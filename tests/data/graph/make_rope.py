"""Writes rope.json: inverse frequencies and attention factors as transformers' modeling_rope_utils makes them."""
import json, os
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

HEADS = 2
CASES = [  # head_dim, theta, max_position_embeddings, length (dynamic), scaling
    (64, 1e4, 2048, 0, {"rope_type": "default"}),
    (128, 1e6, 40960, 0, {"rope_type": "default"}),
    (64, 1e4, 4096, 0, {"rope_type": "linear", "factor": 2.5}),
    (96, 1e5, 4096, 0, {"rope_type": "linear", "factor": 8.0}),
    (64, 1e4, 2048, 100, {"rope_type": "dynamic", "factor": 2.0}),
    (64, 1e4, 2048, 2048, {"rope_type": "dynamic", "factor": 2.0}),
    (64, 1e4, 2048, 2049, {"rope_type": "dynamic", "factor": 2.0}),
    (128, 5e5, 2048, 9000, {"rope_type": "dynamic", "factor": 4.5}),
    (128, 1e6, 131072, 0, {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}),
    (128, 1e6, 131072, 0, {"rope_type": "yarn", "factor": None, "original_max_position_embeddings": 32768}),
    (64, 1e4, 8192, 0, {"rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 512, "beta_fast": 16.0, "beta_slow": 2.0}),
    (64, 1e4, 8192, 0, {"rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 512, "truncate": False}),
    (64, 1e4, 8192, 0, {"rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 512, "attention_factor": 0.8}),
    (64, 1e4, 163840, 0, {"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4096, "mscale": 1.0, "mscale_all_dim": 0.7}),
    (64, 1e4, 163840, 0, {"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4096, "mscale": 0.7, "mscale_all_dim": 0.0}),
    (64, 1e4, 163840, 0, {"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4096, "mscale": 0.7}),
    (8, 1e4, 64, 0, {"rope_type": "yarn", "factor": 1.0, "original_max_position_embeddings": 64}),
    (8, 1e8, 64, 0, {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4}),
    (64, 5e5, 131072, 0, {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}),
    (128, 5e5, 131072, 0, {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}),
    (16, 1e4, 64, 0, {"rope_type": "llama3", "factor": 3.0, "low_freq_factor": 0.5, "high_freq_factor": 7.0, "original_max_position_embeddings": 16}),
]

out = []
for head_dim, theta, positions, length, scaling in CASES:
    config = LlamaConfig(hidden_size=HEADS * head_dim, num_attention_heads=HEADS, head_dim=head_dim,
                         max_position_embeddings=positions, rope_parameters={"rope_theta": theta, **scaling})
    if scaling["rope_type"] == "default":
        rope = LlamaRotaryEmbedding(config)
        inv_freq, factor = rope.inv_freq, rope.attention_scaling
    else:
        inv_freq, factor = ROPE_INIT_FUNCTIONS[scaling["rope_type"]](config, None, seq_len=length or None)
    out.append({"head_dim": head_dim, "theta": theta, "max_position_embeddings": positions, "longest": length,
                "scaling": scaling, "inv_freq": [float(f) for f in inv_freq], "attention_factor": float(factor)})
lines = ",\n".join(json.dumps(case) for case in out)
with open(os.path.join(os.path.dirname(__file__) or ".", "rope.json"), "w") as file:
    file.write("[\n" + lines + "\n]\n")
