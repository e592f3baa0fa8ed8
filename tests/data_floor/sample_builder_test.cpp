#include "data/sample_builder.h"

#include <doctest/doctest.h>

#include <string>

#include "data_floor/small_tokenizer.h"
#include "support/expect_error.h"

namespace loongforge::data {
namespace {

using test::kBos;
using test::kEnd;
using test::kEos;
using test::make_tokenizer;
using test::trained_text;

// before, words, closing
ChatText one_turn(const std::string& before, const std::string& words, const std::string& closing) {
  ChatText chat;
  chat.text = before + words + closing;
  chat.turns.push_back({before.size(), before.size() + words.size(), chat.text.size()});
  return chat;
}

TEST_CASE("chat: the words and the end token, not what follows it") {
  const Tokenizer t = make_tokenizer();
  const SampleBuilder builder(t);
  const Sample s = builder.from_chat(one_turn("<|im_start|>assistant\n", "ab", "<|im_end|>\n"));
  CHECK(trained_text(s, t) == "ab<|im_end|>");
  CHECK(s.ids == t.encode("<|im_start|>assistant\nab<|im_end|>\n", false));
  CHECK(s.ids.back() == '\n');
  CHECK(s.trained_count() == 3);
}

TEST_CASE("chat: white space before the end token leads to it and is trained on") {
  const Tokenizer t = make_tokenizer();
  const Sample s = SampleBuilder(t).from_chat(one_turn("A: ", "ab", " </s>\n"));
  CHECK(trained_text(s, t) == "ab </s>");
}

TEST_CASE("chat: a template that ends the last answer with no token at all gets eos") {
  const Tokenizer t = make_tokenizer();
  const SampleBuilder builder(t);
  const Sample s = builder.from_chat(one_turn("A: ", "ab", "\n"));
  CHECK(trained_text(s, t) == "ab\n</s>");
  CHECK(s.ids.back() == kEos);
  // In the middle of a conversation nothing is put in.
  ChatText middle = one_turn("A: ", "ab", "\n");
  middle.text += "B: c\n";
  const Sample m = builder.from_chat(middle);
  CHECK(trained_text(m, t) == "ab");
  CHECK(m.ids == t.encode(middle.text, false));
  CHECK_THROWS_AS(
      SampleBuilder(make_tokenizer({.eos = "", .pad = ""})).from_chat(one_turn("A", "b", "")),
      Error);
}

TEST_CASE("chat: an end token that takes in the white space before it") {
  const Tokenizer t = make_tokenizer({.eos_strips = true});
  const Sample s = SampleBuilder(t).from_chat(one_turn("A: ", "ab ", "</s>\n"));
  CHECK(s.ids == std::vector<int32_t>{'A', ':', ' ', 'a', 'b', kEos, '\n'});
  CHECK(trained_text(s, t) == "ab</s>");
}

TEST_CASE("chat: a special token that only begins in the closing text is the next turn's") {
  const Tokenizer t = make_tokenizer();
  ChatText chat = one_turn("A", "b", "<|im_");  // what <|im_start|> and <|im_end|> begin with
  chat.text += "start|>c";
  CHECK(trained_text(SampleBuilder(t).from_chat(chat), t) == "b");
}

TEST_CASE("chat: a BOS in the text is one token, and none is added") {
  const Tokenizer t = make_tokenizer({.adds_bos = true});
  const Sample s = SampleBuilder(t).from_chat(one_turn("<s>A", "b", "</s>"));
  CHECK(s.ids == std::vector<int32_t>{kBos, 'A', 'b', kEos});
  const Sample none = SampleBuilder(t).from_chat(one_turn("A", "b", "</s>"));
  CHECK(none.ids == std::vector<int32_t>{'A', 'b', kEos});
}

TEST_CASE("chat: marks of the template are taken as they are") {
  const Tokenizer t = make_tokenizer();
  ChatText chat = one_turn("A", "bc", "</s>\n");
  chat.marked_by_template = true;
  CHECK(trained_text(SampleBuilder(t).from_chat(chat), t) == "bc");
}

TEST_CASE("chat: a character of several tokens is trained on as a whole") {
  const Tokenizer t = make_tokenizer();
  const Sample s =
      SampleBuilder(t).from_chat(one_turn("\xE9\x97\xAE", "\xE7\xAD\x94", "<|im_end|>"));
  CHECK(s.trained == std::vector<uint8_t>{0, 0, 0, 1, 1, 1, 1});
}

TEST_CASE("plain: BOS by the tokenizer's rule, eos after every answer, also where pad is eos") {
  const Tokenizer t = make_tokenizer({.adds_bos = true, .eos = "<|im_end|>", .pad = "<|im_end|>"});
  REQUIRE(t.pad_id() == t.eos_id());
  const Sample s = SampleBuilder(t).from_plain({{"P:", "a"}, {"Q:", "bc"}});
  CHECK(s.ids == std::vector<int32_t>{kBos, 'P', ':', 'a', kEnd, 'Q', ':', 'b', 'c', kEnd});
  CHECK(trained_text(s, t) == "a<|im_end|>|bc<|im_end|>");
}

Sample counted(size_t prompt, size_t answer, bool bos) {
  Sample s;
  if (bos) s.ids.push_back(kBos);
  for (size_t i = 0; i < prompt; ++i) s.ids.push_back(static_cast<int32_t>(i));
  s.trained.assign(s.ids.size(), 0);
  for (size_t i = 0; i < answer; ++i) {
    s.ids.push_back(static_cast<int32_t>(100 + i));
    s.trained.push_back(1);
  }
  return s;
}

TEST_CASE("cutting: the prompt's beginning first, then the answer's; the end is kept") {
  const Tokenizer plain = make_tokenizer();
  const SampleBuilder builder(plain);
  DatasetCounts counts;
  Sample fits = counted(3, 3, false);
  builder.cut(fits, 6, counts);
  CHECK(fits.ids.size() == 6);
  CHECK(counts.prompts_cut + counts.answers_cut == 0);
  Sample prompt = counted(3, 3, false);
  builder.cut(prompt, 4, counts);
  CHECK(prompt.ids == std::vector<int32_t>{2, 100, 101, 102});
  CHECK(prompt.trained == std::vector<uint8_t>{0, 1, 1, 1});
  CHECK(counts.prompts_cut == 1);
  CHECK(counts.answers_cut == 0);
  Sample answer = counted(3, 3, false);
  builder.cut(answer, 2, counts);
  CHECK(answer.ids == std::vector<int32_t>{101, 102});
  CHECK(answer.trained == std::vector<uint8_t>{0, 1});  // nothing comes before the first
  CHECK(counts.prompts_cut == 1);
  CHECK(counts.answers_cut == 1);
}

TEST_CASE("cutting keeps the BOS that the tokenizer puts first") {
  const Tokenizer t = make_tokenizer({.adds_bos = true});
  const SampleBuilder builder(t);
  DatasetCounts counts;
  Sample s = counted(3, 3, true);
  builder.cut(s, 5, counts);
  CHECK(s.ids == std::vector<int32_t>{kBos, 2, 100, 101, 102});
  Sample answer = counted(3, 3, true);
  builder.cut(answer, 3, counts);
  CHECK(answer.ids == std::vector<int32_t>{kBos, 101, 102});
  CHECK(answer.trained == std::vector<uint8_t>{0, 1, 1});
  CHECK(counts.answers_cut == 1);
  // A text that lacks it is not given one.
  Sample without = counted(3, 3, false);
  builder.cut(without, 2, counts);
  CHECK(without.ids == std::vector<int32_t>{101, 102});
}

TEST_CASE("everything: all tokens but the first, and BOS") {
  const Tokenizer t = make_tokenizer({.adds_bos = true});
  Sample s = counted(2, 1, true);
  SampleBuilder(t).train_on_everything(s);
  CHECK(s.trained == std::vector<uint8_t>{0, 1, 1, 1});
  const Tokenizer bare = make_tokenizer();
  Sample b = counted(2, 1, false);
  SampleBuilder(bare).train_on_everything(b);
  CHECK(b.trained == std::vector<uint8_t>{0, 1, 1});
}

}  // namespace
}  // namespace loongforge::data
