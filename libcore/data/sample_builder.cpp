#include "data/sample_builder.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace loongforge::data {
namespace {

using Offsets = std::vector<std::pair<size_t, size_t>>;

void append(Sample& sample, const std::vector<int32_t>& ids, bool trained) {
  sample.ids.insert(sample.ids.end(), ids.begin(), ids.end());
  sample.trained.resize(sample.ids.size(), trained ? 1 : 0);
}

void append(Sample& sample, int32_t id, bool trained) {
  sample.ids.push_back(id);
  sample.trained.push_back(trained ? 1 : 0);
}

// Tokens that stand for any byte of [begin, end).
void mark(const Offsets& offsets, size_t begin, size_t end, std::vector<uint8_t>& trained) {
  auto first = std::partition_point(offsets.begin(), offsets.end(),
                                    [begin](const auto& range) { return range.second <= begin; });
  for (; first != offsets.end() && first->first < end; ++first)
    trained[static_cast<size_t>(first - offsets.begin())] = 1;
}

}  // namespace

bool SampleBuilder::ends_turn(int32_t id) const {
  const std::vector<int32_t>& stops = tokenizer_.eos_ids();
  return tokenizer_.is_special(id) || std::find(stops.begin(), stops.end(), id) != stops.end();
}

int32_t SampleBuilder::end_token(const char* user) const {
  const std::optional<int32_t> eos = tokenizer_.eos_id();
  if (!eos)
    throw_bad_data("tokenizer", std::string("no eos token is known, and ") + user + " ends with it",
                   "name eos_token in tokenizer_config.json and convert again");
  return *eos;
}

Sample SampleBuilder::from_chat(const ChatText& chat) const {
  const Encoding encoding = tokenizer_.encode_with_offsets(chat.text, false);
  const Offsets& offsets = encoding.offsets;
  Sample sample;
  sample.ids = encoding.ids;
  sample.trained.assign(sample.ids.size(), 0);
  for (const AssistantTurn& turn : chat.turns) {
    mark(offsets, turn.begin, turn.end, sample.trained);
    if (chat.marked_by_template) continue;
    // The first token of the closing text that ends a turn, and what stands before it. It may have
    // taken in the white space that the words end with (lstrip).
    size_t t = static_cast<size_t>(
        std::partition_point(offsets.begin(), offsets.end(),
                             [&](const auto& range) { return range.second <= turn.end; }) -
        offsets.begin());
    const auto in_closing = [&] {
      return t < offsets.size() && offsets[t].second <= turn.closing_end;
    };
    while (in_closing() && !ends_turn(sample.ids[t])) ++t;
    if (in_closing()) {
      mark(offsets, turn.end, offsets[t].second, sample.trained);
    } else if (is_blank(std::string_view(chat.text).substr(turn.end))) {
      mark(offsets, turn.end, chat.text.size(), sample.trained);
      append(sample, end_token("an answer of this chat template"), true);
    }
  }
  if (!sample.trained.empty()) sample.trained[0] = 0;
  return sample;
}

Sample SampleBuilder::from_plain(const std::vector<PlainTurn>& turns, bool last_only) const {
  const int32_t eos = end_token("an answer of a plain template");
  Sample sample;
  append(sample, tokenizer_.prefix_ids(), false);
  const auto answered = [](const PlainTurn& turn) { return !is_blank(turn.answer); };
  const auto last = std::find_if(turns.rbegin(), turns.rend(), answered);
  for (const PlainTurn& turn : turns) {
    const Encoding encoding = tokenizer_.encode_with_offsets(turn.prompt + turn.answer, false);
    const size_t start = sample.ids.size();
    append(sample, encoding.ids, false);
    if (!answered(turn)) continue;
    const bool learnt = !last_only || &turn == &*last;
    for (size_t i = 0; i < encoding.ids.size(); ++i)
      sample.trained[start + i] = learnt && encoding.offsets[i].second > turn.prompt.size() ? 1 : 0;
    append(sample, eos, learnt);
  }
  return sample;
}

Sample SampleBuilder::document(std::string_view text) const {
  Sample sample;
  append(sample, tokenizer_.prefix_ids(), false);
  append(sample, tokenizer_.encode(text, false), true);
  append(sample, end_token("text"), true);
  return sample;
}

Sample SampleBuilder::from_text(std::string_view text) const {
  Sample sample = document(text);
  sample.trained[0] = 0;
  return sample;
}

// Only where the tokenizer adds a BOS by itself: ChatML models call their first header token so.
size_t SampleBuilder::bos_count(const Sample& sample) const {
  const std::vector<int32_t> prefix = tokenizer_.prefix_ids();
  const bool there = prefix.size() <= sample.ids.size() &&
                     std::equal(prefix.begin(), prefix.end(), sample.ids.begin());
  return there ? prefix.size() : 0;
}

void SampleBuilder::cut(Sample& sample, int64_t cutoff_len, DatasetCounts& counts) const {
  const auto length = static_cast<int64_t>(sample.ids.size());
  if (length <= cutoff_len) return;
  const auto bos = static_cast<int64_t>(bos_count(sample));
  const int64_t from = bos < cutoff_len ? bos : 0, to = from + length - cutoff_len;
  const auto lost = sample.trained.begin();
  const bool answer_lost = std::any_of(lost + from, lost + to, [](uint8_t t) { return t != 0; });
  ++(answer_lost ? counts.answers_cut : counts.prompts_cut);
  sample.ids.erase(sample.ids.begin() + from, sample.ids.begin() + to);
  sample.trained.erase(sample.trained.begin() + from, sample.trained.begin() + to);
  sample.trained[0] = 0;
}

void SampleBuilder::train_on_everything(Sample& sample) const {
  const size_t bos = bos_count(sample);
  for (size_t t = std::max<size_t>(bos, 1); t < sample.trained.size(); ++t) sample.trained[t] = 1;
}

std::vector<int32_t> SampleBuilder::chat_prompt(std::string_view text) const {
  return tokenizer_.encode(text, false);
}

std::vector<int32_t> SampleBuilder::plain_prompt(const std::vector<PlainTurn>& turns) const {
  std::vector<int32_t> ids = tokenizer_.prefix_ids();
  for (size_t i = 0; i < turns.size(); ++i) {
    tokenizer_.encode_append(turns[i].prompt + turns[i].answer, false, ids);
    if (i + 1 < turns.size()) ids.push_back(end_token("an answer of a plain template"));
  }
  return ids;
}

}  // namespace loongforge::data
