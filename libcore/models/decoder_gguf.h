// GGUF files of decoder families: what tensors are called there, and config.json made from the
// keys. The graph has Hugging Face's names and order of rows; decoder.h says who differs in order.
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/api.h"
#include "formats/gguf.h"
#include "formats/hf_config.h"
#include "models/decoder.h"

namespace loongforge::models {

// Llama-3.x files have no keys for their rope scaling but this tensor: what frequency i is divided
// by.
inline constexpr std::string_view kGgufRopeFreqs = "rope_freqs.weight";
// Of rope type llama3.
double llama3_divisor(const formats::RopeConfig& rope, int64_t head_dim, int64_t i);

// "model.layers.3.self_attn.q_proj.weight" -> "blk.3.attn_q.weight". Error(kFailed) for a name that
// has none.
LF_API std::string decoder_gguf_name(const std::string& name);
// Tensors that carry nothing but what the keys say as well.
bool is_gguf_buffer(std::string_view name);

// config.json as transformers v4 would have it, of the keys "<general.architecture>.*". The family
// sets what is its own (biases, windows). kBadData Error naming file and key.
support::Json decoder_config_from_gguf(const formats::GgufFile& file, std::string_view model_type,
                                       std::string_view architecture);

// The inverse of both for a model of this spec. architecture: general.architecture. kBadData Error
// naming the key of the config that GGUF files cannot say.
GgufPlan decoder_to_gguf(const ir::Model& model, const formats::HfConfig& config,
                         std::string_view architecture, const DecoderSpec& spec);

}  // namespace loongforge::models
