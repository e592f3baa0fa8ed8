// Oracles: the Unicode standard's tables and its examples of ill-formed text.
#include "support/unicode.h"

#include <doctest/doctest.h>

#include <string>

namespace loongforge::support {
namespace {

std::string utf8(uint32_t c) {
  std::string text;
  append_utf8(text, c);
  return text;
}

TEST_CASE("every code point is valid and decodes to itself, every surrogate is not") {
  for (uint32_t c = 0; c <= 0x10FFFF; c += c < 0x3000 ? 1 : 37) {
    const std::string text = utf8(c);
    if (c >= 0xD800 && c <= 0xDFFF) {
      CHECK(find_invalid_utf8(text) == 0);
      continue;
    }
    CHECK(find_invalid_utf8(text) == kUtf8Valid);
    int length = 0;
    CHECK(decode_utf8(text.data(), &length) == c);
    CHECK(static_cast<size_t>(length) == text.size());
  }
}

TEST_CASE("ill-formed parts become one replacement each, as the standard recommends") {
  const std::string r = "\xEF\xBF\xBD";
  // The table "U+FFFD for Truncated Sequences" and its neighbours in chapter 3 of the standard.
  CHECK(utf8_lossy("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41") == r + r + r + r + r + r + r + r + "A");
  CHECK(utf8_lossy("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41") == r + r + r + r + r + r + r + r + "A");
  CHECK(utf8_lossy("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42") ==
        r + r + r + r + r + "A" + r + r + "B");
  CHECK(utf8_lossy("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41") == r + r + r + r + "A");
  CHECK(find_invalid_utf8("abcdefghijk\xC0") == 11);
  CHECK(find_invalid_utf8("\xF5\x80\x80\x80") == 0);
}

TEST_CASE("an unfinished character at the end is counted") {
  CHECK(incomplete_utf8_tail("a") == 0);
  CHECK(incomplete_utf8_tail("a\xE4") == 1);
  CHECK(incomplete_utf8_tail("a\xE4\xB8") == 2);
  CHECK(incomplete_utf8_tail("a\xE4\xB8\xAD") == 0);
  CHECK(incomplete_utf8_tail("\xF0\x9F\x98") == 3);
  CHECK(incomplete_utf8_tail("\xC0") == 0);      // never a character
  CHECK(incomplete_utf8_tail("\xE0\x80") == 0);  // overlong: nothing can finish it
  CHECK(incomplete_utf8_tail("") == 0);
}

TEST_CASE("normalisation of known examples") {
  CHECK(normalize("e\xCC\x81", NormalForm::kNfc) == "\xC3\xA9");
  CHECK(normalize("\xC3\xA9", NormalForm::kNfd) == "e\xCC\x81");
  CHECK(normalize("\xEF\xAC\x81", NormalForm::kNfkc) == "fi");
  CHECK(normalize("\xEF\xAC\x81", NormalForm::kNfc) == "\xEF\xAC\x81");
  CHECK(normalize("\xE2\x84\xAB", NormalForm::kNfc) == "\xC3\x85");  // Angstrom sign
  CHECK(normalize("\xE1\x84\x80\xE1\x85\xA1", NormalForm::kNfc) == "\xEA\xB0\x80");  // Hangul
}

TEST_CASE("the quick check never calls a text normalised that is not") {
  CHECK(is_surely_nfc("plain \xE9\xBE\x99\xE8\x8A\xAF"));
  for (uint32_t c = 0; c <= 0x2FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    if (!is_surely_nfc(utf8(c))) continue;
    // Alone, and after letters it might join or be reordered with.
    for (const char* before : {"", "a", "\xEA\xB0\x80", "\xE3\x81\x8B"}) {
      const std::string text = before + utf8(c);
      if (is_surely_nfc(text)) CHECK_MESSAGE(normalize(text, NormalForm::kNfc) == text, c);
    }
  }
}

TEST_CASE("properties of known characters") {
  CHECK(is_letter(0x4E2D));
  CHECK_FALSE(is_letter('1'));
  CHECK(is_numeric(0xBD));    // one half
  CHECK(is_numeric(0x2167));  // Roman numeral eight
  CHECK_FALSE(is_decimal(0xBD));
  CHECK(is_decimal(0x663));  // Arabic-Indic three
  CHECK(is_white_space(0x3000));
  CHECK(is_white_space(0x85));
  CHECK_FALSE(is_white_space(0x200B));
  CHECK(is_word('_'));
  CHECK(is_word(0x301));
  CHECK_FALSE(is_word('-'));
  CHECK(is_printable(0x4E2D));
  CHECK_FALSE(is_printable(0x200B));
  CHECK_FALSE(is_printable(0xA0));
  CHECK_FALSE(is_printable(0xE000));
}

TEST_CASE("case mapping as Python's") {
  CHECK(to_upper("stra\xC3\x9F"
                 "e") == "STRASSE");
  CHECK(to_lower("\xC3\x80\xC3\x89") == "\xC3\xA0\xC3\xA9");
  CHECK(to_lower("\xCE\x91\xCE\xA3") == "\xCE\xB1\xCF\x82");  // a final sigma
  CHECK(to_lower("\xC4\xB0") == "i\xCC\x87");
  CHECK(to_upper("\xEF\xAC\x81") == "FI");
  CHECK(case_fold("STRA\xC3\x9F"
                  "E") == "strasse");
  CHECK(count_code_points("a\xE4\xB8\xAD\xF0\x9F\x98\x80") == 3);
}

}  // namespace
}  // namespace loongforge::support
