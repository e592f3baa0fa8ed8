// Post-processors of tokenizer.json, for one text: TemplateProcessing, BertProcessing,
// RobertaProcessing, ByteLevel (which only touches offsets) and sequences of them.
#include "base/error.h"
#include "data/tokenizer_json.h"
#include "data/vocabulary.h"

namespace loongforge::data {
namespace {

using support::Json;

int32_t checked_id(const Json& json, const std::string& what, const std::string& where) {
  int64_t id = json.as_int(what);
  if (id < 0 || id > Vocabulary::kMaxId)
    throw_bad_data(where, what + ": id " + std::to_string(id) + " is out of range");
  return static_cast<int32_t>(id);
}

PostProcessor make_template(const Json& json, const std::string& where) {
  PostProcessor made;
  bool text_seen = false;
  for (const Json& item :
       json.at("single", "TemplateProcessing").as_array("TemplateProcessing's single")) {
    if (item.contains("Sequence")) {
      if (text_seen) throw_bad_data(where, "post_processor TemplateProcessing has its text twice");
      text_seen = true;
      continue;
    }
    const Json& special = item.at("SpecialToken", "TemplateProcessing's item");
    const std::string& name = special.at("id", "SpecialToken").as_string("SpecialToken's id");
    const Json& entry = json.at("special_tokens", "TemplateProcessing")
                            .at(name, "TemplateProcessing's special_tokens");
    for (const Json& id : entry.at("ids", "special token").as_array("special token's ids"))
      (text_seen ? made.suffix : made.prefix)
          .push_back(checked_id(id, "special token '" + name + "'", where));
  }
  if (!text_seen) throw_bad_data(where, "post_processor TemplateProcessing leaves the text out");
  return made;
}

PostProcessor make_pair(const Json& json, const std::string& where) {
  PostProcessor made;
  for (const char* key : {"cls", "sep"}) {
    const Json::Array& pair = json.at(key, "post_processor").as_array(key);
    if (pair.size() != 2)
      throw_bad_data(where, std::string("post_processor's ") + key + " is no pair of token and id");
    (key[0] == 'c' ? made.prefix : made.suffix).push_back(checked_id(pair[1], key, where));
  }
  return made;
}

}  // namespace

PostProcessor make_post_processor(const Json* json, const std::string& where) {
  if (json == nullptr || json->is_null()) return {};
  const std::string& type = json->at("type", "post_processor").as_string("post_processor's type");
  if (type == "ByteLevel") return {};
  if (type == "TemplateProcessing") return make_template(*json, where);
  if (type == "BertProcessing" || type == "RobertaProcessing") return make_pair(*json, where);
  if (type != "Sequence")
    throw_unsupported_part(
        where, "post_processor", type,
        "TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel, Sequence");
  PostProcessor made;
  for (const Json& part :
       json->at("processors", "post_processor Sequence").as_array("processors")) {
    // Each wraps what the ones before it made.
    PostProcessor outer = make_post_processor(&part, where);
    made.prefix.insert(made.prefix.begin(), outer.prefix.begin(), outer.prefix.end());
    made.suffix.insert(made.suffix.end(), outer.suffix.begin(), outer.suffix.end());
  }
  return made;
}

}  // namespace loongforge::data
