#include "quant/loongamp.h"

#include "base/error.h"

namespace loongforge::quant {
namespace {

using tensor::DType;

// Below this a tensor's bytes and products do not matter, its rounding might.
constexpr int64_t kSmallElements = 4096;

AmpRule rule(TensorRole role, Storage storage, std::string reason) {
  AmpRule out;
  out.role = role;
  out.storage = storage;
  out.reason = std::move(reason);
  return out;
}

DType stored_dtype(Storage storage, DType source, bool exact) {
  switch (storage) {
    case Storage::kNf4:
      return DType::kNf4;
    case Storage::kFp8:
      return DType::kE4M3LA;
    case Storage::kBf16:
      return DType::kBF16;
    case Storage::kF32:
      return DType::kF32;
    case Storage::kSource:
      break;
  }
  if (source == DType::kF16) return exact ? DType::kF32 : DType::kBF16;
  if (source == DType::kF64) return DType::kF32;
  return source;
}

bool matches(const AmpRule& rule, const TensorFacts& facts) {
  return (!rule.role || *rule.role == facts.role) &&
         (rule.below_elements == 0 || facts.elements < rule.below_elements) &&
         (!rule.tied_only || facts.tied) && layer_match(rule.pattern, facts.name);
}

}  // namespace

std::string_view role_name(TensorRole role) noexcept {
  switch (role) {
    case TensorRole::kLinear:
      return "linear";
    case TensorRole::kHead:
      return "head";
    case TensorRole::kEmbedding:
      return "embedding";
    case TensorRole::kNorm:
      return "norm";
    case TensorRole::kBias:
      return "bias";
    case TensorRole::kOther:
      break;
  }
  return "other";
}

std::string_view storage_name(Storage storage) noexcept {
  switch (storage) {
    case Storage::kNf4:
      return "nf4";
    case Storage::kFp8:
      return "fp8";
    case Storage::kBf16:
      return "bf16";
    case Storage::kF32:
      return "fp32";
    case Storage::kSource:
      break;
  }
  return "source";
}

std::optional<Storage> parse_storage(std::string_view text) noexcept {
  for (Storage storage :
       {Storage::kNf4, Storage::kFp8, Storage::kBf16, Storage::kF32, Storage::kSource}) {
    if (text == storage_name(storage)) return storage;
  }
  return std::nullopt;
}

void AmpPolicy::add_block_rules(Storage linear, bool quantize_head, const std::string& head_reason,
                                const std::string& linear_reason) {
  AmpRule tied = rule(
      TensorRole::kEmbedding, Storage::kBf16,
      quantize_head
          ? "is the embedding as well as the head, so --quantize_head leaves it in high precision"
          : "the embedding stays in high precision; it is the head as well");
  tied.tied_only = true;
  add(std::move(tied));
  add(rule(TensorRole::kEmbedding, Storage::kBf16, "the embedding stays in high precision"));
  AmpRule small;
  small.below_elements = kSmallElements;
  small.storage = Storage::kBf16;
  small.reason = "has fewer than 4096 elements";
  add(std::move(small));
  add(rule(TensorRole::kHead, quantize_head ? Storage::kFp8 : Storage::kBf16, head_reason));
  add(rule(TensorRole::kLinear, linear, linear_reason));
}

AmpPolicy AmpPolicy::standard(std::string_view quantize, bool quantize_head) {
  AmpPolicy policy;
  policy.add(rule(TensorRole::kNorm, Storage::kSource, "norms stay in high precision"));
  policy.add(rule(TensorRole::kBias, Storage::kSource, "biases stay in high precision"));
  policy.add(rule(TensorRole::kOther, Storage::kSource, "is no weight of a linear layer"));
  AmpRule rest;
  if (quantize == "fp32") {
    policy.exact_ = true;
    rest.storage = Storage::kF32;
    rest.reason = "--quantize fp32";
    policy.add(rest);
    return policy;
  }
  if (quantize == "bf16") {
    rest.storage = Storage::kBf16;
    rest.reason = "--quantize bf16";
    policy.add(rest);
    return policy;
  }
  const bool nf4 = quantize == "nf4";
  if (quantize != "fp8" && !nf4)
    throw_usage("--quantize " + std::string(quantize) + " is unknown",
                "use nf4, fp8, bf16 or fp32");
  if (nf4 && quantize_head)
    throw_usage("--quantize_head needs --quantize fp8", "the head of an nf4 model stays in bf16");
  std::string head = "the head stays in high precision";
  if (!nf4) head = quantize_head ? "--quantize_head" : head + "; --quantize_head moves it to fp8";
  policy.add_block_rules(nf4 ? Storage::kNf4 : Storage::kFp8, quantize_head, head,
                         "--quantize " + std::string(quantize));
  return policy;
}

AmpPolicy AmpPolicy::running(const Recipe& recipe) {
  AmpPolicy policy;
  policy.add(rule(TensorRole::kNorm, Storage::kF32, "norms stay in high precision"));
  policy.add(rule(TensorRole::kBias, Storage::kF32, "biases stay in high precision"));
  const std::string flag = "--fp8_precision " + std::string(run_precision_name(recipe.precision));
  if (recipe.fp8()) {
    policy.add_block_rules(Storage::kFp8, false, "the head stays in high precision", flag);
    return policy;
  }
  AmpRule rest;
  rest.storage = recipe.precision == RunPrecision::kFp32 ? Storage::kF32 : Storage::kBf16;
  rest.reason = flag;
  policy.add(rest);
  return policy;
}

Decision AmpPolicy::decide(const TensorFacts& facts) const {
  for (const AmpRule& each : rules_) {
    if (!matches(each, facts)) continue;
    // FP8 and NF4 have blocks of rows and columns: a vector cannot be stored so, whatever an
    // override asks for.
    const bool blocks = each.storage == Storage::kFp8 || each.storage == Storage::kNf4;
    if (blocks && facts.rank != 2) continue;
    if (each.storage == Storage::kNf4 && facts.role != TensorRole::kLinear) continue;
    return {each.storage, stored_dtype(each.storage, facts.source, exact_), each.reason,
            each.by_request};
  }
  return {Storage::kSource, stored_dtype(Storage::kSource, facts.source, exact_),
          "no rule asks for less", false};
}

std::string AmpPolicy::describe() const {
  std::string text;
  for (const AmpRule& each : rules_) {
    text += std::string(each.role ? role_name(*each.role) : "any") + " " + each.pattern;
    if (each.below_elements > 0)
      text += " under " + std::to_string(each.below_elements) + " elements";
    if (each.tied_only) text += " tied";
    text += " -> " + std::string(storage_name(each.storage)) + ": " + each.reason + "\n";
  }
  return text;
}

std::vector<AmpRule> parse_amp_overrides(std::string_view list, std::string_view flag) {
  std::vector<AmpRule> rules;
  for (PatternValue& item : parse_pattern_values(list, flag)) {
    const std::optional<Storage> storage = parse_storage(item.value);
    // A run makes no NF4 codes, an import does.
    const bool nf4 = flag == "quantize_override";
    if (!storage || *storage == Storage::kSource || (*storage == Storage::kNf4 && !nf4))
      throw_usage("--" + std::string(flag) + ": " + item.value + " is no precision",
                  std::string("use ") + (nf4 ? "nf4, " : "") + "fp8, bf16 or fp32, as in --" +
                      std::string(flag) + " \"*.down_proj=bf16\"");
    AmpRule each;
    each.reason = "--" + std::string(flag) + " " + item.pattern + "=" + item.value;
    each.pattern = std::move(item.pattern);
    each.storage = *storage;
    each.by_request = true;
    rules.push_back(std::move(each));
  }
  return rules;
}

}  // namespace loongforge::quant
