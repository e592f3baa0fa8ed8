// Oracle: the table inside a model that SentencePiece made (nmt_nfkc). Whole texts through it:
// tokenizer_spm_test.cpp.
#include "data/chars_map.h"

#include <random>

#include "data_floor/golden.h"

namespace loongforge::data {
namespace {

using test::has;

// precompiled_charsmap: field 2 of field 3 of the model; the longest run of bytes in it.
std::string table() {
  const std::string model = read_text(test::golden("spm_unigram.model"));
  constexpr size_t kSize = 240007;  // what the reference reader says
  const std::string head = {0x12, static_cast<char>(0x87), static_cast<char>(0xD3), 0x0E};
  const size_t at = model.find(head);
  REQUIRE(at != std::string::npos);
  return model.substr(at + head.size(), kSize);
}

TEST_CASE("replacements of nmt_nfkc") {
  const CharsMap map = CharsMap::parse(table(), "m");
  CHECK(map.find("\xEF\xAC\x81") == std::optional<std::string_view>("fi"));  // the ligature
  CHECK(map.find("\xE2\x91\xA0 x") == std::optional<std::string_view>("1"));
  CHECK(map.find("\t") == std::optional<std::string_view>(" "));
  CHECK_FALSE(map.find("a").has_value());
  CHECK_FALSE(map.find("").has_value());
  CHECK_FALSE(map.find(std::string_view("\0a", 2)).has_value());
}

TEST_CASE("a broken table is refused, or no look-up leaves it") {
  const std::string good = table();
  const auto fault = [](std::string_view bytes) {
    return std::string(test::error_of([&] { CharsMap::parse(bytes, "m"); }).what());
  };
  CHECK(has(fault(""), "too short"));
  CHECK(has(fault("\xFF\xFF\xFF\x7F"), "does not fit"));
  CHECK(has(fault(std::string_view("\3\0\0\0abc", 7)), "does not fit"));
  CHECK(has(fault(std::string_view(good).substr(0, good.size() - 1)), "no replacement"));
  std::mt19937 random(5);
  int refused = 0;
  for (int round = 0; round < 150; ++round) {
    std::string bad = good;
    for (int i = 0; i < 3; ++i) bad[4 + random() % 60000] = static_cast<char>(random());
    try {
      const CharsMap map = CharsMap::parse(bad, "m");
      for (int n = 0; n < 200; ++n) {
        std::string text;
        for (int i = 0; i < 4; ++i) text += static_cast<char>(random());
        if (const auto found = map.find(text)) CHECK(found->size() < good.size());
      }
    } catch (const Error& e) {
      CHECK(has(e.message(), "precompiled_charsmap is broken"));
      ++refused;
    }
  }
  CHECK(refused > 10);
}

}  // namespace
}  // namespace loongforge::data
