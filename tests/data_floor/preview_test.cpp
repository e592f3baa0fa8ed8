#include <doctest/doctest.h>

#include "data_floor/small_tokenizer.h"

namespace loongforge::data {
namespace {

Sample sample() {
  Sample s;
  s.line = 12;
  // <|im_start|>q<new line>, two bytes of a character, ESC; trained on: a and the end token
  s.ids = {test::kStart, 'q', '\n', 0xC3, 0xA4, 0x1b, 'a', test::kEnd, '\n'};
  s.trained = {0, 0, 0, 0, 0, 0, 1, 1, 0};
  return s;
}

TEST_CASE("a preview marks what is trained on") {
  const Tokenizer t = test::make_tokenizer();
  CHECK(preview(sample(), t, false, "f line 12") ==
        "f line 12: 9 tokens, 2 trained on\n<|im_start|>q\n\xC3\xA4\\x1b[[a<|im_end|>]]\n");
  CHECK(preview(sample(), t, true, "f line 12") ==
        "f line 12: 9 tokens, 2 trained on\n<|im_start|>q\n\xC3\xA4\\x1b\x1b[1;32ma<|im_end|>"
        "\x1b[0m\n");
}

TEST_CASE("a mark that reaches the end is closed, also after half a character") {
  const Tokenizer t = test::make_tokenizer();
  Sample s = sample();
  s.ids = {'q', 'a', 0xC3};
  s.trained = {0, 1, 1};
  CHECK(preview(s, t, false, "f line 12") ==
        "f line 12: 3 tokens, 2 trained on\nq[[a\xEF\xBF\xBD]]\n");
}

TEST_CASE("a preview as JSON: its parts, and which of them are learnt") {
  CHECK(
      preview_json(sample(), test::make_tokenizer()).dump() ==
      "{\"tokens\":9,\"trained_tokens\":2,\"parts\":[{\"text\":\"<|im_start|>q\\n\xC3\xA4\\\\x1b\","
      "\"trained\":false},{\"text\":\"a<|im_end|>\",\"trained\":true},{\"text\":\"\\n\","
      "\"trained\":false}]}");
}

}  // namespace
}  // namespace loongforge::data
