// The parts a tokenizer is put together from, as tokenizer.json names them, and what they hand to
// each other:
//   text -> added tokens split off -> normalizer -> pre-tokenizer -> model -> post-processor;  ids
//   -> decoder -> text.
// A new kind of part is a class of one of these interfaces in its own file and one line where its
// file is parsed (make_normalizer, make_pre_tokenizer, make_model, make_decoder). Thread-safety:
// parts are immutable; what changes during an encode lives in Segment and ModelScratch, one set per
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/vocabulary.h"
#include "support/json.h"
#include "support/regex.h"

namespace loongforge::data {

struct Range {
  size_t begin = 0, end = 0;
};

// A stretch of text between added tokens on its way to the model: its text (as it came, or
// rewritten), cut into pieces.
class Segment {
 public:
  // text must outlive the segment's use; offset is where it stands in the user's text.
  void reset(std::string_view text, size_t offset, bool track_origins);
  // A part of another segment, after its normalisation.
  void reset_from(const Segment& whole, Range part);

  std::string_view text() const { return text_; }
  size_t offset() const { return offset_; }  // in the user's text
  std::vector<Range>& pieces() { return pieces_; }
  const std::vector<Range>& pieces() const { return pieces_; }
  bool tracks_origins() const { return track_; }

  // How long a rewritten text may become: what no real normalizer makes of the user's text.
  size_t room() const { return room_; }
  // Replaces the text. origins (empty, or one per byte of text): where each byte came from in the
  // current text.
  void rewrite(std::string text, const std::vector<Range>& origins);
  // The range of the user's text that a range of this text came from.
  Range origin(Range range) const;

 private:
  std::string owned_;
  std::string_view text_;
  size_t offset_ = 0, room_ = 0;
  bool track_ = false;
  std::vector<Range>
      origins_;  // per byte of text_, in the user's text; empty: text_ is a verbatim part of it
  std::vector<Range> pieces_;
};

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(Segment& segment) const = 0;
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Cuts the segment's pieces into smaller ones; may rewrite its text.
  virtual void apply(Segment& segment, support::Regex::Matcher& matcher) const = 0;
};

struct ModelScratch {
  virtual ~ModelScratch() = default;
  bool text_start = false;  // the next piece is where the user's text begins
};

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  virtual std::unique_ptr<ModelScratch> make_scratch() const = 0;
  // Appends the ids of one piece; spans, when given, receives the byte range of the piece that each
  // id stands for.
  virtual void encode(std::string_view piece, ModelScratch& scratch, std::vector<int32_t>& ids,
                      std::vector<Range>* spans) const = 0;
  virtual int32_t token_to_id(std::string_view token) const = 0;  // -1 when absent
  virtual std::string_view id_to_token(int32_t id) const = 0;     // empty when absent
  virtual int32_t end_id() const = 0;                             // largest id + 1
};

// One whose tokens are those of a vocabulary, as the file spells them.
class VocabularyModel : public TokenModel {
 public:
  int32_t token_to_id(std::string_view token) const final { return vocabulary_.find(token); }
  std::string_view id_to_token(int32_t id) const final { return vocabulary_.token(id); }
  int32_t end_id() const final { return vocabulary_.end_id(); }

 protected:
  VocabularyModel() = default;
  explicit VocabularyModel(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}

  Vocabulary vocabulary_;
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Rewrites the tokens' spellings; the text is their concatenation, ill-formed UTF-8 replaced.
  virtual void apply(std::vector<std::string>& tokens) const = 0;
};

// tokenizer.json's "added_tokens", as far as they matter here.
struct AddedToken {
  std::string content;
  int32_t id = -1;
  bool single_word = false, lstrip = false, rstrip = false, normalized = false, special = false;
};

// Ids put before and after a single text.
struct PostProcessor {
  std::vector<int32_t> prefix, suffix;
};

struct PreTokenizerParts {
  std::unique_ptr<PreTokenizer> pre_tokenizer;  // null: pieces are segments
  bool byte_level = false;     // the model works on bytes, its vocabulary is in the byte alphabet
  bool needs_origins = false;  // what it does depends on where a piece stood in the user's text
};

// Each takes the part's JSON (null: no such part) and where = file for errors; an unknown type or
// option is Error(kBadData).
std::unique_ptr<Normalizer> make_normalizer(const support::Json* json, const std::string& where);
PreTokenizerParts make_pre_tokenizer(const support::Json* json, const std::string& where);
std::unique_ptr<TokenModel> make_model(const support::Json& json, bool byte_level,
                                       const std::string& where);
std::unique_ptr<Decoder> make_decoder(const support::Json* json, const std::string& where);

// "pre_tokenizer Odd" is not supported; the hint lists the known ones.
[[noreturn]] void throw_unsupported_part(const std::string& where, std::string_view part,
                                         std::string_view type, std::string_view known);

}  // namespace loongforge::data
