// UTF-8 and Unicode properties. The adapter to utf8proc: its header stands in unicode.cpp only.
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/api.h"

namespace loongforge::support {

inline constexpr size_t kUtf8Valid = static_cast<size_t>(-1);

// kUtf8Valid, or the offset of the first byte that does not belong to well-formed UTF-8 (overlong
// forms, surrogates and code points above U+10FFFF are not).
LF_API size_t find_invalid_utf8(std::string_view text);

// Every maximal ill-formed part becomes one U+FFFD, as the Unicode standard recommends and Python
// and Rust do.
LF_API std::string utf8_lossy(std::string_view bytes);

// Bytes at the end of text that begin a character without finishing it (0 to 3): what a streaming
// decoder holds back.
LF_API size_t incomplete_utf8_tail(std::string_view text);

// The code point at text[pos]; *length is its size in bytes. REQUIRES: valid UTF-8, pos < size.
inline uint32_t decode_utf8(const char* p, int* length) {
  const auto* s = reinterpret_cast<const unsigned char*>(p);
  if (s[0] < 0x80) return *length = 1, s[0];
  if (s[0] < 0xE0) return *length = 2, (s[0] & 0x1Fu) << 6 | (s[1] & 0x3Fu);
  if (s[0] < 0xF0) return *length = 3, (s[0] & 0x0Fu) << 12 | (s[1] & 0x3Fu) << 6 | (s[2] & 0x3Fu);
  return *length = 4,
         (s[0] & 0x07u) << 18 | (s[1] & 0x3Fu) << 12 | (s[2] & 0x3Fu) << 6 | (s[3] & 0x3Fu);
}
LF_API void append_utf8(std::string& out, uint32_t code_point);
LF_API size_t count_code_points(std::string_view text);

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
// REQUIRES: valid UTF-8.
LF_API std::string normalize(std::string_view text, NormalForm form);
// True only when text is in NFC for certain (quick, may say false for a text that is).
LF_API bool is_surely_nfc(std::string_view text);

// General categories, by code point.
LF_API bool is_letter(uint32_t c);       // L*
LF_API bool is_numeric(uint32_t c);      // N*: what Rust's char::is_numeric says
LF_API bool is_decimal(uint32_t c);      // Nd
LF_API bool is_white_space(uint32_t c);  // the property White_Space
LF_API bool is_word(
    uint32_t c);  // \w of the Rust regex crate: Alphabetic-like letters, marks, Nd, Pc, joiners
LF_API bool is_printable(uint32_t c);  // Python's str.isprintable
LF_API bool is_upper(uint32_t c);      // Lu
LF_API bool is_lower(uint32_t c);      // Ll
LF_API bool is_title(uint32_t c);      // Lt
LF_API bool is_mark(uint32_t c);       // M*
// The end of the grapheme cluster (what a reader sees as one character) that begins at text[at].
// REQUIRES: valid UTF-8, at < size.
LF_API size_t grapheme_end(std::string_view text, size_t at);

// Simple case mappings plus the unconditional expansions of SpecialCasing (sharp s, ligatures), as
// Python's str methods.
LF_API std::string to_upper(std::string_view text);
LF_API std::string to_lower(std::string_view text);
LF_API void append_upper(std::string& out, uint32_t c);
LF_API void append_lower(std::string& out, uint32_t c);
LF_API void append_title(std::string& out, uint32_t c);
LF_API std::string case_fold(std::string_view text);

}  // namespace loongforge::support
