// Model families. Everything that is particular to a family stands in one file of this folder:
// which config.json it reads, what its tensors are called in each source, and the graph it builds.
// README.md says how to add one. Thread-safety: constants and pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/api.h"
#include "formats/gguf.h"
#include "formats/hf_config.h"
#include "formats/tensor_source.h"
#include "ir/model.h"

namespace loongforge::models {

// A tensor of the LoongIR model and where the source has it. source points into the TensorSource.
struct PlannedTensor {
  std::string name;  // LoongIR's name
  const formats::StoredTensor* source = nullptr;
  std::vector<int64_t> shape;  // LoongIR's; the source's has been checked against it
  int64_t interleaved_heads =
      0;  // > 0: GGUF rotary weights of that many heads, rows to be put into rotate_half order
};

// A second name of a planned tensor.
struct PlannedAlias {
  std::string name, alias_of;
  const formats::StoredTensor* source = nullptr;  // not null: the source holds it as well
};

struct ModelPlan {
  ir::Graph graph;
  std::vector<PlannedTensor> tensors;  // in the order in which the graph uses them
  std::vector<PlannedAlias> aliases;
  std::vector<std::string> ignored;  // source tensors that carry nothing (buffers of old files)
  std::vector<std::string> warnings;
};

enum class SourceNames { kHuggingFace, kGguf };

// A tensor of a Hugging Face checkpoint that an export writes.
struct ExportTensor {
  std::string name;     // in the Hugging Face file
  std::string loongir;  // in the LoongIR folder; aliases may be named
};

// A tensor of a GGUF file that an export writes.
struct GgufTensor {
  std::string name;               // in the GGUF file
  std::string loongir;            // in the LoongIR folder; aliases may be named
  int64_t interleaved_heads = 0;  // > 0: its rows go out in pairs, the inverse of PlannedTensor's
};

// What a model is as a GGUF file, the tokenizer's keys aside.
struct GgufPlan {
  std::string architecture;                                      // general.architecture
  std::vector<std::pair<std::string, formats::GgufValue>> keys;  // "<architecture>.*"
  std::vector<GgufTensor> tensors;
  std::vector<std::pair<std::string, std::vector<float>>> values;  // F32 vectors made of the config
  std::vector<std::string> warnings;
};

struct Family {
  std::string_view name;                          // what loongir_model.json calls it
  std::span<const std::string_view> model_types;  // of config.json
  // general.architecture of its files. Where config_from_gguf is null they are read as another
  // family's (Mistral's as llama's).
  std::span<const std::string_view> gguf_architectures;
  std::span<const std::string_view> labels;  // what a --model-name of this family begins with
  // Throws Error(kBadData) naming file and tensor (or key) where config and source do not fit
  // together.
  ModelPlan (*plan)(const formats::HfConfig& config, const formats::TensorSource& source,
                    SourceNames names);
  // config.json as transformers would have it. Null where the family has no GGUF form.
  support::Json (*config_from_gguf)(const formats::GgufFile& file);
  // The inverse of plan for Hugging Face names. Null: same_names().
  std::vector<ExportTensor> (*to_hugging_face)(const ir::Model& model);
  // The inverse of plan for GGUF names and of config_from_gguf. Throws Error(kBadData) naming the
  // key of the config that GGUF files of this family cannot say. Null where there is no such form.
  GgufPlan (*to_gguf)(const ir::Model& model, const formats::HfConfig& config) = nullptr;
};

LF_API std::span<const Family* const> families() noexcept;
LF_API std::string known_model_types();  // "llama, ...": for messages
LF_API const Family* find_by_model_type(std::string_view model_type) noexcept;  // null when unknown
LF_API const Family* find_by_gguf_architecture(std::string_view architecture) noexcept;
LF_API bool has_gguf_architecture(const Family& family, std::string_view architecture) noexcept;
LF_API const Family* find_by_name(std::string_view name) noexcept;
// The family whose labels begin the text ("Llama-2-7b" -> llama), case ignored. Null when it names
// none.
LF_API const Family* find_by_label(std::string_view label) noexcept;

// The family of a Hugging Face folder (where: its config.json) by DESIGN's rule: model_type
// decides; without one the label does; a label that names another family than model_type is an
// Error(kUsage).
LF_API const Family& choose_family(const std::string& model_type, const std::string& where,
                                   std::string_view label);
LF_API const Family& choose_family(const formats::HfConfig& config, std::string_view label);

// Every tensor under the name it has in LoongIR, companions left out, aliases only where the source
// held them.
LF_API std::vector<ExportTensor> same_names(const ir::Model& model);

}  // namespace loongforge::models
