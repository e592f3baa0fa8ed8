// lf-random-model FOLDER OUT [nf4|bf16]
// Writes a LoongIR model of random weights to OUT, of the shape that FOLDER/config.json (a Llama's)
// gives, with the tokenizer that FOLDER holds: for measuring speed and memory of models that are
// too large to carry. Nothing but a few rows is in memory.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/tokenizer.h"
#include "formats/hf_config.h"
#include "formats/tensor_source.h"
#include "ir/layout.h"
#include "ir/writer.h"
#include "models/registry.h"

namespace {

using namespace loongforge;
using tensor::DType;

// Names and shapes of a Llama checkpoint; there are no bytes behind them.
class NamedShapes : public formats::TensorSource {
 public:
  explicit NamedShapes(const support::Json& c) : TensorSource("random") {
    const auto size = [&](const char* key) { return c.at(key).as_int(); };
    const int64_t hidden = size("hidden_size"), ff = size("intermediate_size"),
                  vocab = size("vocab_size");
    const int64_t heads = size("num_attention_heads"), kv_heads = size("num_key_value_heads");
    const int64_t head = hidden / heads;
    add("model.embed_tokens.weight", {vocab, hidden});
    for (int64_t i = 0; i < size("num_hidden_layers"); ++i) {
      const std::string layer = "model.layers." + std::to_string(i) + ".";
      add(layer + "input_layernorm.weight", {hidden});
      add(layer + "self_attn.q_proj.weight", {heads * head, hidden});
      add(layer + "self_attn.k_proj.weight", {kv_heads * head, hidden});
      add(layer + "self_attn.v_proj.weight", {kv_heads * head, hidden});
      add(layer + "self_attn.o_proj.weight", {hidden, heads * head});
      add(layer + "post_attention_layernorm.weight", {hidden});
      add(layer + "mlp.gate_proj.weight", {ff, hidden});
      add(layer + "mlp.up_proj.weight", {ff, hidden});
      add(layer + "mlp.down_proj.weight", {hidden, ff});
    }
    add("model.norm.weight", {hidden});
    const support::Json* tied = c.find("tie_word_embeddings");
    if (tied == nullptr || !tied->as_bool()) add("lm_head.weight", {vocab, hidden});
    set_tensors(std::move(list_));
  }
  std::string_view format() const noexcept override { return "random"; }
  void read_range(const formats::StoredTensor& tensor, uint64_t,
                  std::span<uint8_t>) const override {
    throw_failed(tensor.where(), "has no bytes");
  }

 private:
  void add(std::string name, std::vector<int64_t> shape) {
    formats::StoredTensor tensor;
    tensor.name = std::move(name);
    tensor.shape = std::move(shape);
    tensor.type = "BF16";
    tensor.dtype = DType::kBF16;
    tensor.bytes = static_cast<uint64_t>(tensor.elements()) * 2;
    list_.push_back(std::move(tensor));
  }
  std::vector<formats::StoredTensor> list_;
};

struct Random {
  uint64_t state = 0x9E3779B97F4A7C15u;
  uint64_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  }
  void fill(std::vector<uint8_t>& bytes) {  // REQUIRES bytes.size() % 8 == 0
    for (size_t i = 0; i < bytes.size(); i += 8) {
      const uint64_t word = next();
      std::memcpy(bytes.data() + i, &word, 8);
    }
  }
  // bf16 of magnitudes 2^-7 to 2^-5: of the size that weights have.
  void fill_bf16(std::vector<uint8_t>& bytes) {
    fill(bytes);
    for (size_t i = 1; i < bytes.size(); i += 2)
      bytes[i] = static_cast<uint8_t>((bytes[i] & 0x80) | 0x3C);
  }
};

void write_tensor(ir::Writer& writer, const models::PlannedTensor& planned, bool nf4,
                  Random& random) {
  ir::TensorEntry entry;
  entry.name = planned.name;
  entry.shape = planned.shape;
  entry.dtype = planned.shape.size() < 2 ? DType::kF32 : nf4 ? DType::kNf4 : DType::kBF16;
  if (nf4) {
    entry.block_rows = 1;
    entry.block_cols = ir::kNf4Block;
  }
  writer.begin_tensor(entry);
  if (entry.dtype == DType::kF32) {
    const std::vector<float> ones(static_cast<size_t>(entry.cols()), 1.0f);
    writer.write_rows(ones.data(), 1);
  } else {
    constexpr int64_t kRows = 256;
    std::vector<uint8_t> rows((static_cast<size_t>(kRows) * entry.row_bytes() + 7) / 8 * 8);
    for (int64_t r = 0; r < entry.rows(); r += kRows) {
      if (nf4) {
        random.fill(rows);
      } else {
        random.fill_bf16(rows);
      }
      writer.write_rows(rows.data(), std::min(kRows, entry.rows() - r));
    }
  }
  if (nf4) {
    const auto blocks =
        static_cast<size_t>(entry.rows() * ir::ceil_div(entry.cols(), ir::kNf4Block));
    writer.set_scales(std::vector<float>(blocks, 0.05f));
  }
  writer.finish_tensor();
}

int run(const std::filesystem::path& folder, const std::filesystem::path& out,
        const std::string& quantize) {
  const formats::HfConfig config = formats::read_hf_config(folder / "config.json");
  const NamedShapes source(config.raw);
  const models::Family& family = models::choose_family(config, "");
  const models::ModelPlan plan = family.plan(config, source, models::SourceNames::kHuggingFace);
  ir::Writer writer(out, false, *ir::device_page("x86_64"));
  Random random;
  const std::string& head = plan.graph.nodes.back().params.at("weight");
  for (const models::PlannedTensor& planned : plan.tensors) {
    const bool linear = planned.shape.size() == 2 && planned.name != head &&
                        planned.name.find("embed_tokens") == std::string::npos;
    write_tensor(writer, planned, linear && quantize == "nf4", random);
  }
  for (const models::PlannedAlias& alias : plan.aliases)
    writer.add_alias(alias.name, alias.alias_of, false);
  for (const data::TokenizerFile& file : data::tokenizer_files(folder.string()))
    writer.add_file_text(file.name, file.content);
  ir::Model model;
  model.family = family.name;
  model.model_name = "random";
  model.device = "x86_64";
  model.quantize = quantize;
  model.config = config.raw;
  model.token_ids.set("id_scale", ir::kIdScale);
  model.token_ids.set("vocab_size", config.raw.at("vocab_size").as_int());
  model.graph = plan.graph;
  writer.finish(std::move(model));
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string quantize = argc == 4 ? argv[3] : "nf4";
  if (argc < 3 || argc > 4 || (quantize != "nf4" && quantize != "bf16")) {
    std::fprintf(stderr, "usage: lf-random-model FOLDER OUT [nf4|bf16]\n");
    return 2;
  }
  return run(argv[1], argv[2], quantize);
} catch (const std::exception& error) {
  std::fprintf(stderr, "lf-random-model: %s\n", error.what());
  return 1;
}
