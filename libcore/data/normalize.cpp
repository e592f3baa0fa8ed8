// Normalizers of tokenizer.json: the Unicode forms, sequences, and which other there is.
#include <utility>

#include "data/normalize_parts.h"
#include "data/tokenizer_parts.h"
#include "support/unicode.h"

namespace loongforge::data {
namespace {

using support::Json;
using support::NormalForm;

class UnicodeNormalizer : public Normalizer {
 public:
  explicit UnicodeNormalizer(NormalForm form) : form_(form) {}

  void apply(Segment& segment) const override {
    std::string_view text = segment.text();
    if (form_ == NormalForm::kNfc && support::is_surely_nfc(text)) return;
    if (!segment.tracks_origins()) {
      std::string changed = support::normalize(text, form_);
      segment.rewrite(std::move(changed), {});
      return;
    }
    // An ASCII character neither changes nor composes with what precedes it, so the stretches
    // between them are normalised alone; what changed is mapped as a whole.
    std::string out;
    std::vector<Range> origins;
    for (size_t begin = 0; begin < text.size();) {
      size_t end = begin + 1;
      while (end < text.size() && static_cast<unsigned char>(text[end]) >= 0x80) ++end;
      std::string_view before = text.substr(begin, end - begin);
      std::string after = support::normalize(before, form_);
      bool same = after == before;
      for (size_t i = 0; i < after.size(); ++i)
        origins.push_back(same ? Range{begin + i, begin + i + 1} : Range{begin, end});
      out += after;
      begin = end;
    }
    segment.rewrite(std::move(out), origins);
  }

 private:
  NormalForm form_;
};

class SequenceNormalizer : public Normalizer {
 public:
  explicit SequenceNormalizer(std::vector<std::unique_ptr<Normalizer>> parts)
      : parts_(std::move(parts)) {}
  void apply(Segment& segment) const override {
    for (const auto& part : parts_) part->apply(segment);
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

constexpr const char* kKnown =
    "NFC, NFD, NFKC, NFKD, Prepend, Replace, Strip, StripAccents, Lowercase, Precompiled, Sequence";

}  // namespace

std::unique_ptr<Normalizer> make_normalizer(const Json* json, const std::string& where) {
  if (json == nullptr || json->is_null()) return nullptr;
  const std::string& type = json->at("type", "normalizer").as_string("normalizer's type");
  if (type == "NFC") return std::make_unique<UnicodeNormalizer>(NormalForm::kNfc);
  if (type == "NFD") return std::make_unique<UnicodeNormalizer>(NormalForm::kNfd);
  if (type == "NFKC") return std::make_unique<UnicodeNormalizer>(NormalForm::kNfkc);
  if (type == "NFKD") return std::make_unique<UnicodeNormalizer>(NormalForm::kNfkd);
  if (type == "Prepend") return make_prepend(*json, where);
  if (type == "Replace") return make_replace(*json, where);
  if (type == "Strip") return make_strip(*json, where);
  if (type == "StripAccents") return make_strip_accents();
  if (type == "Lowercase") return make_lowercase();
  if (type == "Precompiled") return make_precompiled(*json, where);
  if (type == "Sequence") {
    std::vector<std::unique_ptr<Normalizer>> parts;
    for (const Json& part : json->at("normalizers", "normalizer Sequence").as_array("normalizers"))
      if (auto made = make_normalizer(&part, where)) parts.push_back(std::move(made));
    return std::make_unique<SequenceNormalizer>(std::move(parts));
  }
  throw_unsupported_part(where, "normalizer", type, kKnown);
}

}  // namespace loongforge::data
