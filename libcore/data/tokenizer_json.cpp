#include "data/tokenizer_json.h"

#include <algorithm>

#include "base/error.h"
#include "data/vocabulary.h"

namespace loongforge::data {
namespace {

using support::Json;

// The id that an added token has or gets: its own, the vocabulary's, or the next free one.
void settle_id(AddedToken& token, const TokenizerParts& parts, const std::string& where) {
  int32_t known = parts.model->token_to_id(token.content);
  if (const AddedToken* added = parts.added.find(token.content)) known = added->id;
  if (token.id < 0)
    token.id = known >= 0 ? known : std::max(parts.model->end_id(), parts.added.end_id());
  if (known >= 0 && token.id != known)
    throw_bad_data(where, "added token '" + token.content + "' has id " + std::to_string(token.id) +
                              " here and id " + std::to_string(known) + " elsewhere");
  std::string_view other = parts.model->id_to_token(token.id);
  if (!other.empty() && other != token.content)
    throw_bad_data(where, "added token '" + token.content + "' has the id of token '" +
                              std::string(other) + "'");
}

void add_token(AddedToken token, TokenizerParts& parts, const std::string& where) {
  settle_id(token, parts, where);
  if (!parts.added.add(token))
    throw_bad_data(where, "added token '" + token.content + "' has id " + std::to_string(token.id) +
                              ", which belongs to another token");
}

void add_tokens(const Json& tokenizer, const TokenizerConfig& config, TokenizerParts& parts,
                const std::string& where) {
  if (const Json* list = tokenizer.find("added_tokens"); list != nullptr && !list->is_null())
    for (const Json& item : list->as_array("added_tokens"))
      add_token(parse_added_token(item, "added_tokens's entry"), parts, where);
  for (const AddedToken& token : config.added_tokens) add_token(token, parts, where);
  // What the configuration calls special is special, even if tokenizer.json does not list it.
  for (const AddedToken& token : config.named) {
    const AddedToken* known = parts.added.find(token.content);
    if (token.content.empty() || (known != nullptr && known->special)) continue;
    AddedToken special = known != nullptr ? *known : token;
    special.special = true;
    add_token(special, parts, where);
  }
}

// add_bos_token and add_eos_token of the configuration count over the post-processor.
void apply_flag(const std::optional<bool>& flag, const std::string& token,
                const TokenizerParts& parts, std::vector<int32_t>& ids) {
  if (!flag.has_value()) return;
  const AddedToken* added = token.empty() ? nullptr : parts.added.find(token);
  ids.clear();
  if (*flag && added != nullptr) ids.push_back(added->id);
}

}  // namespace

void add_tokens_and_flags(const Json& tokenizer, const TokenizerConfig& config,
                          TokenizerParts& parts, const std::string& where) {
  add_tokens(tokenizer, config, parts, where);
  parts.added.build(parts.normalizer.get());
  apply_flag(config.add_bos_token, config.token("bos_token"), parts, parts.post.prefix);
  apply_flag(config.add_eos_token, config.token("eos_token"), parts, parts.post.suffix);
}

TokenizerParts build_tokenizer(const Json& tokenizer, const TokenizerConfig& config,
                               const std::string& where) {
  try {
    tokenizer.as_object("tokenizer.json");
    TokenizerParts parts;
    parts.normalizer = make_normalizer(tokenizer.find("normalizer"), where);
    PreTokenizerParts pre = make_pre_tokenizer(tokenizer.find("pre_tokenizer"), where);
    parts.pre_tokenizer = std::move(pre.pre_tokenizer);
    parts.track_origins = pre.needs_origins && parts.normalizer != nullptr;
    parts.model = make_model(tokenizer.at("model", "tokenizer.json"), pre.byte_level, where);
    parts.decoder = make_decoder(tokenizer.find("decoder"), where);
    parts.post = make_post_processor(tokenizer.find("post_processor"), where);
    add_tokens_and_flags(tokenizer, config, parts, where);
    return parts;
  } catch (const Error& e) {
    // Faults of single values know what they are, not in which file.
    if (!e.where().empty()) throw;
    throw Error(e.code(), where, e.message(), e.hint());
  }
}

}  // namespace loongforge::data
