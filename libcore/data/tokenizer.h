// LoongTokenizer: text to token ids and back, token for token as the Hugging Face tokenizer of the
// same files. Built from tokenizer.json (with tokenizer_config.json and generation_config.json
// beside it), from a SentencePiece model where there is no tokenizer.json, or from a GGUF file's
// metadata, which goes through the same JSON: what is exported is what was loaded. Ids are Hugging
// Face ids; the *_ir functions give and take LoongIR's even ids (id x kIdScale). Thread-safety:
// immutable after load; every const function may be called from several threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/api.h"
#include "support/json.h"

namespace loongforge::data {

struct TokenizerConfig;
struct TokenizerParts;

inline constexpr int32_t kIdScale = 2;  // LoongIR id = Hugging Face id x 2

struct Encoding {
  std::vector<int32_t> ids;
  // Byte range in the text that each id stands for; empty ranges for ids that the post-processor
  // added. Where normalisation changed a stretch of text, its tokens all name the whole stretch.
  std::vector<std::pair<size_t, size_t>> offsets;
};

struct TokenizerFile {
  std::string name;  // "tokenizer.json"
  std::string content;
};

class LF_API Tokenizer {
 public:
  // A folder that holds tokenizer.json or tokenizer.model, such a file itself (.json, .model), or a
  // .gguf file. kNoInput where there is
  // none, kBadData naming file and part where it is wrong or asks for something that is not
  // supported.
  static Tokenizer load(const std::string& path);
  // False when the folder (or GGUF file) has no tokenizer at all: convert then warns and goes on.
  static bool present(const std::string& path);
  // Parsed documents. config and generation may be null. where names the source in errors.
  static Tokenizer from_json(const support::Json& tokenizer, const support::Json& config,
                             const support::Json& generation, const std::string& where);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Added tokens in the text become their ids. add_special: the post-processor's tokens (BOS, EOS)
  // as well. Error(kBadData) when text is not valid UTF-8.
  std::vector<int32_t> encode(std::string_view text, bool add_special) const;
  // Appends to ids: no allocation once the vectors have grown.
  void encode_append(std::string_view text, bool add_special, std::vector<int32_t>& ids) const;
  Encoding encode_with_offsets(std::string_view text, bool add_special) const;
  // Ids that stand for no token are left out, as the reference does. Ill-formed bytes become
  // U+FFFD.
  std::string decode(std::span<const int32_t> ids, bool skip_special) const;

  std::vector<int32_t> encode_ir(std::string_view text, bool add_special) const;  // even ids
  std::string decode_ir(std::span<const int32_t> even_ids,
                        bool skip_special) const;  // Error(kBadData) on an odd id

  std::optional<int32_t> token_to_id(std::string_view token) const;
  // Empty when no token has this id. The spelling of the file: byte-level tokens in their printable
  // alphabet.
  std::string_view id_to_token(int32_t id) const;
  bool is_special(int32_t id) const;
  // Largest id + 1 (a model's embedding may have more rows).
  int32_t vocab_size() const;

  std::optional<int32_t> bos_id() const;
  std::optional<int32_t> eos_id() const;
  std::optional<int32_t> pad_id() const;
  std::optional<int32_t> unk_id() const;
  // Where generation stops: eos_id first, then what generation_config.json (or the GGUF) adds. May
  // be empty.
  const std::vector<int32_t>& eos_ids() const;
  // What add_special puts before and after a text.
  std::vector<int32_t> prefix_ids() const;
  std::vector<int32_t> suffix_ids() const;
  // bos_token, eos_token, pad_token, unk_token and further named ones, as chat templates see them.
  const support::Json& special_tokens() const;

  struct Impl;

 private:
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  static Tokenizer from_parts(TokenizerParts parts, const TokenizerConfig& config,
                              const support::Json& generation, const std::string& where);
  std::unique_ptr<Impl> impl_;
};

// The text of a growing list of ids, piece by piece: never half a character. One per generated
// sequence; not thread-safe.
class LF_API StreamDecoder {
 public:
  StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
      : tokenizer_(&tokenizer), skip_special_(skip_special) {}
  std::string put(int32_t id);  // what this id adds to the text; may be empty
  std::string finish();         // what was held back (an unfinished character shows as U+FFFD)

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_;
  std::vector<int32_t> window_;
  size_t shown_ids_ = 0;  // ids of the window whose text has been given out
};

// The tokenizer's own files, to be carried into a LoongIR or exported folder: copied as they are
// from a folder, rebuilt from a GGUF file's metadata (tokenizer.json, tokenizer_config.json). Empty
// when there is no tokenizer.
LF_API std::vector<TokenizerFile> tokenizer_files(const std::string& path);
// Whether tokenizer_files() can have a file of this name.
LF_API bool is_tokenizer_file(std::string_view name);

// The pad rule of LoongIR. flag (--pad_token_id) wins; where only one of config and tokenizer says
// it, that one counts; none and no tokenizer: nothing. Both and different, or neither with a
// tokenizer present: Error(kBadData) "Tokenization error: pad_token_id mismatch between config and
// tokenizer" whose hint proposes eos. Hugging Face ids.
LF_API std::optional<int64_t> resolve_pad_id(std::optional<int64_t> config_pad,
                                             std::optional<int64_t> tokenizer_pad,
                                             bool tokenizer_present, std::optional<int64_t> flag,
                                             std::optional<int64_t> eos);

}  // namespace loongforge::data
