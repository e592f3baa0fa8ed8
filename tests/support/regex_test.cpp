// Oracles: the published patterns on texts whose pieces are known, and the Unicode property
// White_Space.
#include "support/regex.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "support/unicode.h"

namespace loongforge::support {
namespace {

std::vector<std::string> pieces(const char* pattern, const std::string& text) {
  const Regex regex(pattern, "t");
  Regex::Matcher matcher;
  std::vector<std::string> found;
  size_t at = 0, begin, end;
  while (at < text.size() && regex.find(matcher, text, at, &begin, &end)) {
    found.push_back(text.substr(begin, end - begin));
    at = end > begin ? end : end + 1;
  }
  return found;
}

bool matches(const char* pattern, uint32_t c) {
  std::string text;
  append_utf8(text, c);
  return pieces(pattern, text).size() == 1;
}

TEST_CASE("GPT-2's pattern cuts as published") {
  const char* gpt2 =
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
  using V = std::vector<std::string>;
  CHECK(pieces(gpt2, "Hello world's  end") == V{"Hello", " world", "'s", " ", " end"});
  CHECK(pieces(gpt2, "x=12 \n\n") == V{"x", "=", "12", " \n\n"});
  CHECK(pieces(gpt2, "\xE4\xB8\xAD\xE6\x96\x87!") == V{"\xE4\xB8\xAD\xE6\x96\x87", "!"});
}

TEST_CASE("white space is the Unicode property, U+180E is none") {
  for (uint32_t c = 0; c < 0x3100; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    CHECK_MESSAGE(matches(R"(\s)", c) == is_white_space(c), c);
    CHECK_MESSAGE(matches(R"(\S)", c) == !is_white_space(c), c);
    CHECK_MESSAGE(matches(R"([\s])", c) == is_white_space(c), c);
  }
  CHECK_FALSE(matches(R"(\s)", 0x180E));
}

TEST_CASE("Oniguruma's spellings are translated") {
  CHECK(pattern_for_pcre2(R"(\h+)", "t") == "[0-9A-Fa-f]+");
  CHECK(pattern_for_pcre2(R"([^\s\p{L}])", "t") == R"([^\t-\r\x{85}\p{Z}\p{L}])");
  CHECK(pattern_for_pcre2(R"(\u4e2d[]a])", "t") == R"(\x{4e2d}[]a])");
  CHECK(pattern_for_pcre2(R"(\\s)", "t") == R"(\\s)");
  CHECK(pattern_for_pcre2(R"((?i:a)(?<n>b)[[:alpha:]])", "t") == R"((?i:a)(?<n>b)[[:alpha:]])");
}

TEST_CASE("what cannot be translated or compiled is named") {
  for (const char* pattern :
       {"(a", "[a", R"([a&&b])", "[a[b]]", "(?m:a)", R"([\W])", "a\\", R"(\u12)"}) {
    CAPTURE(pattern);
    try {
      Regex regex(pattern, "tokenizer.json");
      FAIL("compiled");
    } catch (const Error& e) {
      CHECK(e.where() == "tokenizer.json");
      CHECK(e.message().find("regular expression '" + std::string(pattern)) == 0);
    }
  }
}

TEST_CASE("a pattern that explodes ends in an error") {
  const Regex regex("(a+)+$", "t");
  Regex::Matcher matcher;
  size_t begin, end;
  CHECK_THROWS_AS(regex.find(matcher, std::string(64, 'a') + "b", 0, &begin, &end), Error);
}

TEST_CASE("a match of a long text does not run out of stack") {
  CHECK(pieces(R"((?:\p{L}|\p{N})+)", std::string(300000, 'a')).size() == 1);
}

}  // namespace
}  // namespace loongforge::support
