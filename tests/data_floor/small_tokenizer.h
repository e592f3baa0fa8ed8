// Tokenizers small enough to see through: one token a byte (id = byte), and five special tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/byte_alphabet.h"
#include "data/chat_template.h"
#include "data/dataset.h"
#include "data/tokenizer.h"
#include "support/bytes.h"
#include "support/json.h"
#include "support/temp_dir.h"

namespace loongforge::test {

inline constexpr int32_t kBos = 256, kStart = 257, kEnd = 258, kEos = 259, kCall = 260;

struct SmallTokenizer {
  bool adds_bos = false;     // the post-processor puts <s> first
  std::string eos = "</s>";  // empty: none
  std::string pad = "</s>";  // pad is eos, as SmolLM2 has it
  bool eos_strips = false;   // </s> takes in the white space before it
};

inline data::Tokenizer make_tokenizer(const SmallTokenizer& wanted = {}) {
  using support::Json;
  Json vocab = Json::object();
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    vocab.set(data::bytes_to_alphabet(std::string_view(&c, 1)), byte);
  }
  Json added = Json::array();
  int32_t id = kBos;
  for (const char* name : {"<s>", "<|im_start|>", "<|im_end|>", "</s>", "<call>"}) {
    Json token = Json::object();
    token.set("id", id);
    token.set("content", name);
    for (const char* flag : {"single_word", "rstrip", "normalized"}) token.set(flag, false);
    token.set("lstrip", wanted.eos_strips && id == kEos);
    token.set("special", id++ != kCall);
    added.push_back(std::move(token));
  }
  Json json = Json::parse(
      R"({"normalizer": null,
          "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
          "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "merges": []}})",
      "small tokenizer");
  json.find("model")->set("vocab", std::move(vocab));
  json.set("added_tokens", std::move(added));
  if (wanted.adds_bos)
    json.set("post_processor", Json::parse(R"({"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [256], "tokens": ["<s>"]}}})",
                                           "post"));
  Json config = Json::object();
  config.set("bos_token", "<s>");
  if (!wanted.eos.empty()) config.set("eos_token", wanted.eos);
  if (!wanted.pad.empty()) config.set("pad_token", wanted.pad);
  return data::Tokenizer::from_json(json, config, {}, "small tokenizer");
}

inline data::ChatTemplate make_chat(std::string_view source) {
  support::Json specials = support::Json::object();
  specials.set("bos_token", "<s>");
  specials.set("eos_token", "</s>");
  return data::ChatTemplate::from_source(source, std::move(specials), "chat_template.jinja");
}

inline constexpr std::string_view kChatMl =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

// The trained-on tokens as text, runs apart from each other by "|".
inline std::string trained_text(const data::Sample& sample, const data::Tokenizer& tokenizer) {
  std::string text;
  std::vector<int32_t> run;
  const auto flush = [&] {
    if (run.empty()) return;
    text += (text.empty() ? "" : "|") + tokenizer.decode(run, false);
    run.clear();
  };
  for (size_t t = 0; t < sample.ids.size(); ++t) {
    if (sample.trained[t] != 0)
      run.push_back(sample.ids[t]);
    else
      flush();
  }
  flush();
  return text;
}

// A dataset of these bytes.
inline data::Dataset load_bytes(const std::string& bytes, const data::DatasetOptions& options,
                                const data::Tokenizer& tokenizer, const char* name = "data.jsonl") {
  const TempDir folder;
  write_file(folder / name, bytes);
  data::DatasetOptions o = options;
  o.path_or_name = (folder / name).string();
  return data::Dataset::load(o, tokenizer);
}

}  // namespace loongforge::test
