// Records become token ids with a mask of what is trained on.
// Thread-safety: const functions of one builder may run in several threads.
#pragma once

#include <string_view>

#include "data/chat_turns.h"
#include "data/dataset.h"
#include "data/plain_template.h"

namespace loongforge::data {

class SampleBuilder {
 public:
  // The tokenizer must outlive the builder.
  explicit SampleBuilder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // The rendered text is tokenised in one go, with nothing added: the template has all special
  // tokens, as in transformers' apply_chat_template. Only where it ends the last answer with no
  // token at all, the eos token is appended, or the model would never learn to stop.
  Sample from_chat(const ChatText& chat) const;
  // Every turn's prompt and answer in one go, then the eos token; BOS by the tokenizer's rules.
  // last_only: only the last answer is trained on.
  Sample from_plain(const std::vector<PlainTurn>& turns, bool last_only = false) const;
  Sample from_text(std::string_view text) const;
  // A part of a longer text: as from_text, and its first token may follow something.
  Sample document(std::string_view text) const;

  // Takes tokens out so that cutoff_len are left: those after BOS (where the tokenizer itself puts
  // one) go first, the end stays. Says in counts which kind was lost.
  void cut(Sample& sample, int64_t cutoff_len, DatasetCounts& counts) const;
  void train_on_everything(Sample& sample) const;

  // Ids of a prompt that an answer follows.
  std::vector<int32_t> chat_prompt(std::string_view text) const;
  std::vector<int32_t> plain_prompt(const std::vector<PlainTurn>& turns) const;

 private:
  bool ends_turn(int32_t id) const;
  int32_t end_token(const char* user) const;
  size_t bos_count(const Sample& sample) const;

  const Tokenizer& tokenizer_;
};

}  // namespace loongforge::data
