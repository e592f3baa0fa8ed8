// loongamp: which tensor is stored and runs in which precision, as data. A policy is an ordered
// list of rules; the first one that matches a tensor decides and gives its reason as text, so that
// a report can say why. Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/api.h"
#include "quant/pattern.h"
#include "quant/recipe.h"
#include "tensor/dtype.h"

namespace loongforge::quant {

// What a tensor is to the node that owns it.
enum class TensorRole { kLinear, kHead, kEmbedding, kNorm, kBias, kOther };
LF_API std::string_view role_name(TensorRole role) noexcept;

enum class Storage {
  kNf4,     // 4 bits with an absmax for 64 elements along a row
  kFp8,     // E4M3LA in 128 x 128 blocks
  kBf16,    // rounded once
  kF32,     // exact
  kSource,  // BF16 and F32 as they are; F16 becomes BF16 (rounded once), or F32 where everything is
            // fp32
};
LF_API std::string_view storage_name(Storage storage) noexcept;
LF_API std::optional<Storage> parse_storage(
    std::string_view text) noexcept;  // "nf4", "fp8", "bf16", "fp32", "source"

struct LF_API AmpRule {
  std::optional<TensorRole> role;  // absent: any
  std::string pattern = "*";       // glob over the tensor's name, or its layer's
  int64_t below_elements = 0;      // > 0: only tensors with fewer elements
  bool tied_only = false;          // only where the head shares the embedding's tensor
  Storage storage = Storage::kSource;
  std::string reason;       // "norms stay in high precision"
  bool by_request = false;  // of --precision_override or --quantize_override
};

struct TensorFacts {
  std::string_view name;
  TensorRole role = TensorRole::kOther;
  int64_t elements = 0;
  int64_t rank = 0;
  bool tied = false;  // embedding and head are one tensor
  tensor::DType source = tensor::DType::kBF16;
};

struct Decision {
  Storage storage = Storage::kSource;
  tensor::DType dtype = tensor::DType::kBF16;  // what storage means for this source
  std::string reason;
  bool by_request = false;
};

class LF_API AmpPolicy {
 public:
  // The default policy of --quantize ("nf4", "fp8", "bf16", "fp32"; Error(kUsage) else).
  // quantize_head: the head in FP8 as well.
  static AmpPolicy standard(std::string_view quantize, bool quantize_head);
  // What a run does by default with the weights that it reads.
  static AmpPolicy running(const Recipe& recipe);

  // An override stands before every rule that is there: "layers.0.*" -> bf16.
  void prepend(AmpRule rule) { rules_.insert(rules_.begin(), std::move(rule)); }
  // Overrides as parsed: the first that matches counts.
  void prepend(const std::vector<AmpRule>& rules) {
    rules_.insert(rules_.begin(), rules.begin(), rules.end());
  }
  const std::vector<AmpRule>& rules() const noexcept { return rules_; }
  Decision decide(const TensorFacts& facts) const;
  std::string describe() const;  // a line per rule

 private:
  void add(AmpRule rule) { rules_.push_back(std::move(rule)); }
  // Of formats that store linears in blocks: what stays in high precision.
  void add_block_rules(Storage linear, bool quantize_head, const std::string& head_reason,
                       const std::string& linear_reason);

  std::vector<AmpRule> rules_;
  bool exact_ = false;  // --quantize fp32: nothing is rounded
};

// "PATTERN=fp8|bf16|fp32,..." of a flag, as rules. Error(kUsage) for anything else.
LF_API std::vector<AmpRule> parse_amp_overrides(std::string_view list, std::string_view flag);

}  // namespace loongforge::quant
