"""Makes the golden models of variants that the shared golden/ does not have: make_golden.py [FOLDER, default: beside this file].

Tiny random models with the results of PyTorch and transformers (fp32, eager attention, one thread) and PEFT. Weights are
larger than an initialisation, so that a wrong mask, position or scale shows, and exact in bf16.
"""
import glob, json, os, sys
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM

torch.manual_seed(20)
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)

SMALL = dict(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, head_dim=8, bos_token_id=1, eos_token_id=2, pad_token_id=0, use_cache=False)
LENGTHS = [(24, 4), (17, 0), (9, 2)]  # tokens of a row, the first of which are not trained on

def rope(theta=1e4, **scaling):
    return {"rope_theta": theta, **scaling}

MODELS = {
    # Every bias that Llama can have; linear rope. Spelled as transformers v4 does.
    "llama_bias": (LlamaForCausalLM, LlamaConfig(**SMALL, attention_bias=True, mlp_bias=True, max_position_embeddings=64,
                                                 rope_parameters=rope(rope_type="linear", factor=2.5))),
    # The longest row is beyond max_position_embeddings, the others are not.
    "llama_dynamic": (LlamaForCausalLM, LlamaConfig(**SMALL, max_position_embeddings=16,
                                                    rope_parameters=rope(rope_type="dynamic", factor=3.0))),
    "llama_yarn": (LlamaForCausalLM, LlamaConfig(**SMALL, max_position_embeddings=64, rope_parameters=rope(
        100.0, rope_type="yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=8.0, mscale=1.0,
        mscale_all_dim=0.5))),
    # A window in the first layer only, biases of q, k, v and o, a tied head.
    "qwen3_window": (Qwen3ForCausalLM, Qwen3Config(**SMALL, max_position_embeddings=64, attention_bias=True,
                                                   use_sliding_window=True, sliding_window=5, tie_word_embeddings=True,
                                                   layer_types=["sliding_attention", "full_attention"])),
}

def randomize(parameters):
    for name, p in parameters:
        spread = {"norm": 0.3, "bias": 0.5, "embed": 0.8, "lora": 0.15}.get(next((k for k in ("norm", "bias", "embed", "lora")
                                                                             if k in name), ""), 1.3 / p.shape[-1] ** 0.5)
        value = torch.randn(p.shape) * spread + (1.0 if "norm" in name and p.dim() == 1 else 0.0)
        p.data.copy_(value.bfloat16().float())

def rows(vocab):
    width = max(length for length, _ in LENGTHS)
    ids, mask = torch.zeros(len(LENGTHS), width, dtype=torch.long), torch.zeros(len(LENGTHS), width, dtype=torch.long)
    labels = torch.full_like(ids, -100)
    for r, (length, untrained) in enumerate(LENGTHS):
        ids[r, :length] = torch.randint(3, vocab, (length,))
        mask[r, :length] = 1
        labels[r, untrained:length] = ids[r, untrained:length]
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}

def results(model, batch):
    """Logits, summed loss and gradients of loss / valid tokens of everything that trains."""
    model.zero_grad()
    logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
    labels = batch["labels"][:, 1:].flatten()
    loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels, ignore_index=-100, reduction="sum")
    valid = int((labels >= 0).sum())
    (loss / valid).backward()
    grads = {"grad." + n: p.grad.clone() for n, p in model.named_parameters() if p.requires_grad}
    return {"logits": logits.detach(), "loss_sum": loss.detach().double().reshape(1),
            "valid_tokens": torch.tensor([valid]), **grads}

def write_torch(folder, shards):
    os.makedirs(folder, exist_ok=True)
    names = [f"pytorch_model-{i + 1:05}-of-{len(shards):05}.bin" for i in range(len(shards))] if len(shards) > 1 else ["pytorch_model.bin"]
    for name, shard in zip(names, shards):
        torch.save(shard, os.path.join(folder, name))
    if len(shards) > 1:
        index = {"metadata": {"total_size": sum(w.nbytes for shard in shards for w in shard.values())},
                 "weight_map": {n: name for name, shard in zip(names, shards) for n in shard}}
        json.dump(index, open(folder + "/pytorch_model.bin.index.json", "w"), indent=1)

def write_checkpoint(folder, name, model):
    os.makedirs(folder, exist_ok=True)
    tied = model.config.tie_word_embeddings
    weights = {n: p.detach().bfloat16().contiguous() for n, p in model.state_dict().items()
               if not (tied and n == "lm_head.weight")}
    save_file(weights, folder + "/model.safetensors", metadata={"format": "pt"})
    if name == "llama_bias":  # beside it, one torch file as older checkpoints have it, with the buffer that they hold
        write_torch(folder + "_bin", [{**weights, "model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4)}])
    if name == "qwen3_window":  # two torch files, the tied head saved as well: one storage, two names
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
        first = {n: w for n, w in weights.items() if ".layers.1." not in n}
        write_torch(folder + "_bin_sharded", [first, {n: w for n, w in weights.items() if n not in first}])
    config = model.config.to_dict()
    config = {k: v for k, v in config.items() if k in SMALL or k in (
        "architectures", "attention_bias", "attention_dropout", "hidden_act", "initializer_range", "layer_types", "max_position_embeddings",
        "max_window_layers", "mlp_bias", "model_type", "rms_norm_eps", "rope_parameters", "sliding_window",
        "tie_word_embeddings", "transformers_version", "use_sliding_window")}
    config["architectures"], config["dtype"] = [type(model).__name__], "bfloat16"
    if name == "llama_bias":  # as v4 spells it
        parameters = dict(config.pop("rope_parameters"))
        config["rope_theta"], config["rope_scaling"] = parameters.pop("rope_theta"), parameters
        config["torch_dtype"], config["transformers_version"] = config.pop("dtype"), "4.46.3"
    for each in glob.glob(folder + "*"):
        json.dump(config, open(each + "/config.json", "w"), indent=2, sort_keys=True)

base = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
for name, (kind, config) in MODELS.items():
    config._attn_implementation = "eager"
    model, folder = kind(config).float().eval(), os.path.join(base, name)
    randomize(model.named_parameters())
    batch = rows(config.vocab_size)
    write_checkpoint(folder + "/checkpoint", name, model)
    golden = results(model, batch)
    save_file({**batch, **golden}, folder + "/golden.safetensors")
    adapted = get_peft_model(model, LoraConfig(r=2, lora_alpha=4, target_modules="all-linear", task_type="CAUSAL_LM")).eval()
    randomize((n, p) for n, p in adapted.named_parameters() if p.requires_grad)
    adapted.save_pretrained(folder + "/adapter")
    adapter_config = json.load(open(folder + "/adapter/adapter_config.json"))
    adapter_config["target_modules"].sort()  # PEFT writes a set
    json.dump(adapter_config, open(folder + "/adapter/adapter_config.json", "w"), indent=2)
    lora = results(adapted, batch)
    save_file({k: v for k, v in lora.items() if k != "valid_tokens"}, folder + "/golden_lora.safetensors")
    # The folder read back by transformers gives the same logits: what was written is the model that was run.
    again = kind.from_pretrained(folder + "/checkpoint", dtype=torch.float32, attn_implementation="eager").eval()
    same = torch.equal(again(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits, golden["logits"])
    print(f"{name}: loss {float(golden['loss_sum']) / int(golden['valid_tokens']):.4f}, read back {'equal' if same else 'DIFFERENT'}")
    readme = folder + "/adapter/README.md"
    if os.path.exists(readme):
        os.remove(readme)
