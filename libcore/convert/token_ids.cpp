#include "convert/token_ids.h"

#include <algorithm>

#include "base/error.h"
#include "ir/layout.h"

namespace loongforge::convert {
namespace {

void append_unique(std::vector<int64_t>* ids, int64_t id) {
  if (id >= 0 && std::find(ids->begin(), ids->end(), id) == ids->end()) ids->push_back(id);
}

std::optional<int64_t> widen(std::optional<int32_t> id) {
  return id ? std::optional<int64_t>(*id) : std::nullopt;
}

}  // namespace

TokenIds resolve_token_ids(const formats::HfConfig& config,
                           const formats::GenerationConfig* generation,
                           const data::Tokenizer* tokenizer, std::optional<int64_t> flag) {
  TokenIds out;
  std::vector<int64_t> eos;
  if (tokenizer != nullptr) {
    for (int32_t id : tokenizer->eos_ids()) append_unique(&eos, id);
  }
  for (int64_t id : config.eos_token_ids) append_unique(&eos, id);
  if (generation != nullptr) {
    for (int64_t id : generation->eos_token_ids) append_unique(&eos, id);
  }
  std::optional<int64_t> bos = tokenizer != nullptr ? widen(tokenizer->bos_id()) : std::nullopt;
  if (!bos) bos = config.bos_token_id;
  std::optional<int64_t> config_pad = config.pad_token_id;
  if (!config_pad && generation != nullptr) config_pad = generation->pad_token_id;
  if (flag && *flag < 0) throw_usage("--pad_token_id " + std::to_string(*flag) + " is negative");
  out.pad = data::resolve_pad_id(
      config_pad, tokenizer != nullptr ? widen(tokenizer->pad_id()) : std::nullopt,
      tokenizer != nullptr, flag, eos.empty() ? std::nullopt : std::optional<int64_t>(eos[0]));

  if (flag && (*flag < 0 || *flag >= config.vocab_size))
    throw_usage("--pad_token_id " + std::to_string(*flag) +
                " is outside the model's vocabulary of " + std::to_string(config.vocab_size));
  const auto check = [&](const char* what, int64_t id) {
    if (id < config.vocab_size) return;
    out.warnings.push_back(std::string(what) + " token id " + std::to_string(id) +
                           " is outside the model's vocabulary of " +
                           std::to_string(config.vocab_size));
  };
  out.block = support::Json::object();
  out.block.set("id_scale", ir::kIdScale);
  out.block.set("vocab_size", config.vocab_size);
  if (bos && *bos >= 0) {
    check("bos", *bos);
    out.block.set("bos", *bos * ir::kIdScale);
  }
  support::Json list = support::Json::array();
  for (int64_t id : eos) {
    check("eos", id);
    list.push_back(id * ir::kIdScale);
  }
  out.block.set("eos", std::move(list));
  if (out.pad) {
    check("pad", *out.pad);
    out.block.set("pad", *out.pad * ir::kIdScale);
  }
  return out;
}

support::Json generation_config_of(const support::Json& block) {
  support::Json json = support::Json::object();
  json.set("_from_model_config", true);
  if (const support::Json* bos = block.find("bos"))
    json.set("bos_token_id", bos->as_int() / ir::kIdScale);
  const support::Json::Array& eos = block.at("eos").as_array();
  if (eos.size() == 1) json.set("eos_token_id", eos[0].as_int() / ir::kIdScale);
  if (eos.size() > 1) {
    support::Json list = support::Json::array();
    for (const support::Json& id : eos) list.push_back(id.as_int() / ir::kIdScale);
    json.set("eos_token_id", std::move(list));
  }
  if (const support::Json* pad = block.find("pad"))
    json.set("pad_token_id", pad->as_int() / ir::kIdScale);
  return json;
}

}  // namespace loongforge::convert
