# Makes the bitsandbytes checkpoints: a tiny Llama of random weights, NF4 single and double quantised.
import json, sys, torch, shutil, os
from pathlib import Path
import bitsandbytes as bnb, bitsandbytes.functional as F
from safetensors.torch import save_file
import transformers
from transformers import LlamaConfig, LlamaForCausalLM, BitsAndBytesConfig
out = Path(sys.argv[1])
torch.manual_seed(7)
cfg = LlamaConfig(vocab_size=96, hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16, max_position_embeddings=64, tie_word_embeddings=False, bos_token_id=1, eos_token_id=2, pad_token_id=0)
m = LlamaForCausalLM(cfg).to(torch.bfloat16)
with torch.no_grad():
  for p in m.parameters(): p.copy_((torch.randn(p.shape)*0.08 + (1.0 if p.dim()==1 else 0)).to(torch.bfloat16))
plain = out / 'plain'; m.save_pretrained(plain)
for name, double in (('single', False), ('double', True)):
  q = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type='nf4', bnb_4bit_use_double_quant=double, bnb_4bit_compute_dtype=torch.bfloat16)
  qm = LlamaForCausalLM.from_pretrained(plain, quantization_config=q, device_map='cpu', dtype=torch.bfloat16)
  qm.save_pretrained(out / name)
  deq = {}
  for n, mod in qm.named_modules():
    if isinstance(mod, bnb.nn.Linear4bit):
      # As one row: bitsandbytes 0.50.2 decodes rows that end inside a block wrongly on CPUs.
      state, shape = mod.weight.quant_state, mod.weight.quant_state.shape
      state.shape = torch.Size([shape.numel()])
      deq[n + '.weight'] = F.dequantize_4bit(mod.weight.data, state).reshape(shape)
  keep = ('layers.0.self_attn.q_proj', 'layers.1.self_attn.k_proj', 'layers.0.mlp.down_proj', 'layers.1.mlp.gate_proj')
  deq = {k: v.to(torch.bfloat16).contiguous() for k, v in deq.items() if any(p in k for p in keep)}
  save_file(deq, out / name / 'dequantised.safetensors')
