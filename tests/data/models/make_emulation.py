"""Emulates the project's bf16 and fp8 recipe in PyTorch: what its roundings cost against the fp32 references.

  make_emulation.py FAMILY --precision fp32|bf16|fp8|e5m2|compute|hybrid [--one_scale] [--sums fp64] [--write FOLDER] [--verbose]
  make_emulation.py MODEL --texts REFERENCE.json --precision ...   (a Hugging Face folder or a GGUF file)

FAMILY is a folder laid out as those here. No code is shared with the C++ side; the recipe, as DESIGN 4 states it:
- operands of products are bf16 (weights too, or decoded E4M3), sums fp32; tensors between nodes bf16, so their gradients;
- the residual stream is fp32 inside a block and bf16 at block edges, and so is its gradient;
- fp8: weights of block linears of 4096 elements or more are E4M3 under power-of-two scales per 128 x 128, the exponent
  rounded up; X of the weight gradients is E4M3 per 1 x 128; full fine-tuning makes codes anew from the fp32 master;
- e5m2: as fp8 with E5M2 throughout. compute: X and dY too are E4M3 per 1 x 128 before their products with W (X before A as
  well; dH, dB and the bias read dY as it is); hybrid: that with dY in E5M2. --one_scale: one scale a tensor instead of blocks;
- attention: q, k, v, P, dS, dO are bf16 operands; norms (of heads too), biases, softmax, loss are fp32; head, embedding,
  LoRA operands bf16.
What DESIGN leaves open is as the kernels' headers say: P is rounded before its division by the row's sum, which sums it
unrounded; dS comes of unrounded P; H, dH of LoRA are tensors between nodes; gradients are of the summed loss.
E4M3 here is OCP's; the project's is OCP's times 2^-5, which a power-of-two scale absorbs.
--sums fp64: sums in double, to see what their order does. --write: results for lf-golden-check --recipe, in F16.
"""
import argparse, glob, json, math, os
import torch
from safetensors.torch import load_file, save_file
from torch.autograd import Function
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

P = argparse.Namespace(bf16=True, w=None, x=None, dy=None, compute=False, one_scale=False, sums=torch.float32)  # the recipe at work

def r16(x):
    return x.to(torch.bfloat16).float() if P.bf16 else x

def mm(a, b):
    return (a.to(P.sums) @ b.to(P.sums)).float()

E4M3, E5M2 = (torch.float8_e4m3fn, 448), (torch.float8_e5m2, 57344)
RECIPES = {"fp8": (E4M3, E4M3, E4M3, False), "e5m2": (E5M2, E5M2, E5M2, False), "compute": (E4M3, E4M3, E4M3, True),
           "hybrid": (E4M3, E4M3, E5M2, True)}

def fp8(x, form, rows, cols):
    """x as FP8 codes decode it, one power-of-two scale per block of rows x cols; as it is where form is None."""
    if form is None:
        return x
    n, k = x.shape
    rows, cols = (n, k) if P.one_scale else (rows, cols)
    x = torch.nn.functional.pad(x, (0, -k % cols, 0, -n % rows))
    b = x.view(x.shape[0] // rows, rows, x.shape[1] // cols, cols)
    amax = b.abs().amax(dim=(1, 3), keepdim=True).double()
    scale = torch.where(amax > 0, torch.exp2(torch.ceil(torch.log2(amax / form[1]))), 1.0).float()
    return ((b / scale).to(form[0]).float() * scale).reshape(x.shape)[:n, :k]

class Node(Function):
    """A tensor between nodes is bf16; so is its gradient, once all its uses are summed."""

    forward = staticmethod(lambda ctx, x: r16(x))
    backward = staticmethod(lambda ctx, g: r16(g))

class Linears(Function):
    """y_s = x W_s^T + bias_s + H_s (scale B_s)^T, H_s = x A_s^T, of linears that share x; (W, bias, A, B) of each follow."""

    @staticmethod
    def forward(ctx, scale, x, *all):
        ctx.x, ctx.scale, ctx.full, ctx.kept, outs = x, scale, all[0].requires_grad, [], []
        x = fp8(x, P.x, 1, 128) if P.compute else x
        for w, bias, a, b in zip(all[0::4], all[1::4], all[2::4], all[3::4]):
            w = fp8(w, P.w, 128, 128) if P.w and w.numel() >= 4096 else r16(w)
            y, h = mm(x, w.T), None
            if a is not None:
                a, b = r16(a), r16(scale * b)
                h = r16(mm(x, a.T))
                y = y + mm(h, b.T)
            outs.append(r16(y if bias is None else y + bias))
            ctx.kept.append((w, bias, a, b, h))
        return tuple(outs)

    @staticmethod
    def backward(ctx, *dys):
        x, dx, grads = fp8(ctx.x, P.x, 1, 128), 0, []
        for dy, (w, bias, a, b, h) in zip(map(r16, dys), ctx.kept):
            code = fp8(dy, P.dy, 1, 128) if P.compute else dy
            dx, da, db = dx + mm(code, w), None, None
            d_bias = mm(torch.ones(1, len(dy)), dy)[0] if ctx.full and bias is not None else None
            if h is not None:
                dh = r16(mm(dy, b))
                dx, da, db = dx + mm(dh, a), mm(dh.T, x), ctx.scale * mm(dy.T, h)
            grads += [mm(code.T, x) if ctx.full else None, d_bias, da, db]
        return (None, r16(dx), *grads)

class Attention(Function):
    @staticmethod
    def forward(ctx, q, k, v, mask, scale):  # [heads, T, d]; fewer heads of k and v
        ctx.g, ctx.scale = q.shape[0] // k.shape[0], scale
        kk, vv = k.repeat_interleave(ctx.g, 0), v.repeat_interleave(ctx.g, 0)
        s = mm(q, kk.mT) * scale + mask
        m = s.amax(-1, keepdim=True)
        e = torch.exp(s - m)
        total = e.sum(-1, keepdim=True)
        o = r16(mm(r16(e), vv) / total)
        ctx.save_for_backward(q, k, kk, vv, o, mask, m + torch.log(total))
        return o

    @staticmethod
    def backward(ctx, do):
        q, k, kk, vv, o, mask, lse = ctx.saved_tensors
        do = r16(do)
        p = torch.exp(mm(q, kk.mT) * ctx.scale + mask - lse)
        ds = r16(p * (mm(do, vv.mT) - (do * o).sum(-1, keepdim=True)))
        group = lambda t: t.view(k.shape[0], ctx.g, *t.shape[1:]).sum(1)
        dk, dv = group(mm(ds.mT, q)), group(mm(r16(p).mT, do))
        return r16(ctx.scale * mm(ds, kk)), r16(ctx.scale * dk), r16(dv), None, None

class Head(Function):
    """Summed cross-entropy and the logits."""

    @staticmethod
    def forward(ctx, x, w, targets):
        w, rows = r16(w), targets >= 0
        logits = mm(x, w.T)
        log_p = torch.log_softmax(logits.double(), -1)
        d = torch.exp(log_p[rows]).scatter_add(1, targets[rows, None], torch.full((int(rows.sum()), 1), -1.0).double())
        ctx.save_for_backward(x, w, r16(torch.zeros_like(logits).index_put((rows,), d.float())))
        ctx.mark_non_differentiable(logits)
        return -log_p[rows, targets[rows]].sum(), logits

    @staticmethod
    def backward(ctx, g, _):
        x, w, d = ctx.saved_tensors
        return r16(mm(d, w)), mm(d.T, x), None

def norm(x, w, eps):
    return Node.apply(x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * w)

def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return Node.apply(torch.cat((a * cos - b * sin, b * cos + a * sin), -1))

class Model:
    def __init__(self, config, weights, adapter={}, scale=0.0):
        self.c, self.w, self.adapter, self.scale = config, weights, adapter, scale

    def linears(self, x, block, *names):
        tensors = [t for n in names for t in (self.w[block + n + ".weight"], self.w.get(block + n + ".bias"),
                                              *self.adapter.get(block + n, (None, None)))]
        return Linears.apply(self.scale, x, *tensors)

    def window(self, layer):
        types = getattr(self.c, "layer_types", None)
        slides = types[layer] == "sliding_attention" if types else self.c.model_type == "mistral"
        return getattr(self.c, "sliding_window", None) if slides else None

    def run(self, documents, targets):
        c, w = self.c, self.w
        dim = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
        pos = torch.cat([torch.arange(len(d)) for d in documents])
        doc = torch.cat([torch.full((len(d),), i) for i, d in enumerate(documents)])
        seen = (doc[:, None] == doc[None]) & (pos[:, None] >= pos[None])
        turn = [t[0, :, :dim // 2] for t in LlamaRotaryEmbedding(c)(w["model.norm.weight"], pos[None])]  # both halves are equal
        split = lambda t: t.view(t.shape[0], -1, dim).transpose(0, 1)
        x = Node.apply(w["model.embed_tokens.weight"][torch.cat(documents)])
        for i in range(c.num_hidden_layers):
            b = f"model.layers.{i}."
            h = norm(x, w[b + "input_layernorm.weight"], c.rms_norm_eps)
            q, k, v = map(split, self.linears(h, b, "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"))
            if b + "self_attn.q_norm.weight" in w:
                q, k = (norm(t, w[f"{b}self_attn.{n}_norm.weight"], c.rms_norm_eps) for n, t in (("q", q), ("k", k)))
            near = seen if self.window(i) is None else seen & (pos[:, None] - pos[None] < self.window(i))
            mask = torch.zeros(seen.shape).masked_fill(~near, -math.inf)
            o = Attention.apply(rotate(q, *turn), rotate(k, *turn), v, mask, dim**-0.5)
            mid = x + self.linears(o.transpose(0, 1).reshape(len(pos), -1), b, "self_attn.o_proj")[0]
            h = norm(mid, w[b + "post_attention_layernorm.weight"], c.rms_norm_eps)
            gate, up = map(Node.apply, self.linears(h, b, "mlp.gate_proj", "mlp.up_proj"))
            h = Node.apply(torch.nn.functional.silu(gate) * up)
            x = Node.apply(mid + self.linears(h, b, "mlp.down_proj")[0])
        head = w.get("lm_head.weight", w["model.embed_tokens.weight"])
        return Head.apply(norm(x, w["model.norm.weight"], c.rms_norm_eps), head, targets)

def documents_of(t, prefix="", rows=None):
    docs, targets = [], []
    for ids, mask, labels in zip(*(t[prefix + n][:rows] for n in ("input_ids", "attention_mask", "labels"))):
        docs.append(ids[:int(mask.sum())])
        targets.append(torch.cat((labels[1:len(docs[-1])], torch.tensor([-100]))))
    return docs, torch.cat(targets)

def rel(ours, theirs):
    return float((ours.double() - theirs.double()).norm() / theirs.double().norm())

def once(title, model, golden, docs, targets, live, args):
    """Forward and backward; prints the errors against `golden`, returns the same tensors as the emulation has them."""
    loss, logits = model.run(docs, targets)
    loss.backward()
    loss, valid = loss.detach(), int((targets >= 0).sum())
    grads = {"grad." + n: t.grad / valid for n, t in live.items()}
    all_logits = golden["logits"].clone()
    rows = torch.cat([torch.arange(len(d)) + i * all_logits.shape[1] for i, d in enumerate(docs)])
    all_logits.view(-1, logits.shape[-1])[rows] = logits
    errors = {n: rel(g, golden[n]) for n, g in grads.items()}
    for n in errors if args.verbose else []:
        print(f"    {n:70} {errors[n]:.3e}")
    worst = max(errors, key=errors.get)
    print(f"  {title} logits {rel(logits, golden['logits'].flatten(0, 1)[rows]):.3e}"
          f"  loss {abs(float(loss / golden['loss_sum']) - 1):.3e}  gradients {errors[worst]:.3e} {worst}")
    return {n: t.half().contiguous() for n, t in {**grads, "logits": all_logits}.items()} | {"loss_sum": loss}

def ten_steps(config, w, folder, args):
    doc, batches = json.load(open(folder + "/trajectory.json")), load_file(folder + "/trajectory_batches.safetensors")
    o, losses, norms = doc["optimizer"], [0.0], [0.0]
    decay = lambda d: {"params": [t for t in w.values() if t.dim() == d], "weight_decay": o[f"weight_decay_{d}d"]}
    adam = torch.optim.AdamW([decay(1), decay(2)], betas=tuple(o["betas"]), eps=o["eps"])
    for k, step in enumerate(doc["steps"]):
        d0, t0 = documents_of(batches, f"batch{2 * k % 4}.")
        d1, t1 = documents_of(batches, f"batch{(2 * k + 1) % 4}.", 1)
        adam.zero_grad()
        loss = Model(config, w).run(d0 + d1, torch.cat((t0, t1)))[0]
        loss.backward()
        for t in w.values():
            t.grad /= step["valid_tokens"]
        size = float(torch.nn.utils.clip_grad_norm_(w.values(), o["max_grad_norm"]))
        for group in adam.param_groups:
            group["lr"] = step["lr"]
        adam.step()
        mean = float(loss.detach()) / step["valid_tokens"]
        losses, norms = losses + [abs(mean - step["loss"])], norms + [abs(size / step["grad_norm"] - 1)]
        step.update(loss=mean, grad_norm=size)
    print(f"  steps:   losses {max(losses):.3e} (step {losses.index(max(losses))})"
          f"  gradient norms {max(norms):.3e} (step {norms.index(max(norms))})")
    return doc

def family(folder, args):
    config = AutoConfig.from_pretrained(folder + "/checkpoint")
    files = glob.glob(folder + "/checkpoint/*.safetensors")
    weights = {n: w.float() for file in sorted(files) for n, w in load_file(file).items()}
    trained = lambda: {n: w.clone().requires_grad_() for n, w in weights.items()}
    golden, golden_lora = load_file(folder + "/golden.safetensors"), load_file(folder + "/golden_lora.safetensors")
    inputs, w = documents_of(golden), trained()
    full = once("full:   ", Model(config, w), golden, *inputs, w, args)
    a = json.load(open(folder + "/adapter/adapter_config.json"))
    ab = {n: t.requires_grad_() for n, t in load_file(folder + "/adapter/adapter_model.safetensors").items()}
    adapter = {n[17:-14]: (ab[n], ab[n.replace("lora_A", "lora_B")]) for n in ab if n.endswith(".lora_A.weight")}
    live = {n.replace(".weight", ".default.weight"): t for n, t in ab.items()}
    scale = a["lora_alpha"] / (a["r"] ** 0.5 if a.get("use_rslora") else a["r"])
    lora = once("adapter:", Model(config, weights, adapter, scale), golden_lora, *inputs, live, args)
    steps = ten_steps(config, trained(), folder, args) if os.path.exists(folder + "/trajectory.json") else None
    if args.write:
        os.makedirs(args.write, exist_ok=True)
        save_file(full, args.write + "/golden.safetensors")
        save_file(lora, args.write + "/golden_lora.safetensors")
        if steps:
            json.dump(steps, open(args.write + "/trajectory.json", "w"), indent=1)

def texts(args):
    folder, file = os.path.split(args.model) if args.model.endswith(".gguf") else (args.model, None)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, gguf_file=file)
    emulation, worst = Model(model.config, model.state_dict()), 0.0
    for text in json.load(open(args.texts))["texts"]:
        ids = torch.tensor(text["ids"])
        with torch.no_grad():
            nll = float(emulation.run([ids], torch.cat((ids[1:], torch.tensor([-100]))))[0]) / (len(ids) - 1)
        worst = max(worst, abs(nll - text["mean_nll"]))
        print(f"  text of {len(ids):4} tokens: {nll:.6f}, reference {text['mean_nll']:.6f}, {nll - text['mean_nll']:+.2e}")
    print(f"  worst {worst:.2e}")

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--precision", default="bf16", choices=["fp32", "bf16", *RECIPES])
    parser.add_argument("--one_scale", action="store_true")
    parser.add_argument("--sums", default="fp32", choices=["fp32", "fp64"])
    parser.add_argument("--texts")
    parser.add_argument("--write")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    P.bf16, P.one_scale = arguments.precision != "fp32", arguments.one_scale
    P.w, P.x, P.dy, P.compute = RECIPES.get(arguments.precision, (None, None, None, False))
    P.sums = torch.float64 if arguments.sums == "fp64" else torch.float32
    print(arguments.model, arguments.precision, "" if arguments.sums == "fp32" else "sums in fp64")
    texts(arguments) if arguments.texts else family(os.path.normpath(arguments.model), arguments)
