#include "support/unicode.h"

#include <utf8proc.h>

#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace loongforge::support {
namespace {

// Length of the well-formed character at s (n bytes left), or 0. *bad: length of the maximal
// ill-formed part.
int well_formed(const unsigned char* s, size_t n, int* bad) {
  *bad = 1;
  unsigned char c = s[0];
  if (c < 0x80) return 1;
  if (c < 0xC2 || c > 0xF4) return 0;
  int length = c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
  // The second byte's range is narrower after four lead bytes: no overlong forms, surrogates or
  // values above U+10FFFF.
  unsigned char low = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
  unsigned char high = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
  for (int i = 1; i < length; ++i) {
    if (static_cast<size_t>(i) >= n || s[i] < low || s[i] > high) return *bad = i, 0;
    low = 0x80;
    high = 0xBF;
  }
  return length;
}

size_t skip_ascii(const char* p, size_t n) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t word;
    std::memcpy(&word, p + i, 8);
    if ((word & 0x8080808080808080u) != 0) break;
  }
  while (i < n && static_cast<unsigned char>(p[i]) < 0x80) ++i;
  return i;
}

bool is_ascii(std::string_view text) { return skip_ascii(text.data(), text.size()) == text.size(); }

utf8proc_category_t category(uint32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

struct Expansion {
  uint32_t from;
  uint32_t upper[3], title[3];
};
constexpr Expansion kExpansions[] = {
    {0xDF, {'S', 'S', 0}, {'S', 's', 0}},
    {0x149, {0x2BC, 'N', 0}, {0x2BC, 'N', 0}},
    {0x1F0, {'J', 0x30C, 0}, {'J', 0x30C, 0}},
    {0x390, {0x399, 0x308, 0x301}, {0x399, 0x308, 0x301}},
    {0x3B0, {0x3A5, 0x308, 0x301}, {0x3A5, 0x308, 0x301}},
    {0x587, {0x535, 0x552, 0}, {0x535, 0x582, 0}},
    {0x1E96, {'H', 0x331, 0}, {'H', 0x331, 0}},
    {0x1E97, {'T', 0x308, 0}, {'T', 0x308, 0}},
    {0x1E98, {'W', 0x30A, 0}, {'W', 0x30A, 0}},
    {0x1E99, {'Y', 0x30A, 0}, {'Y', 0x30A, 0}},
    {0x1E9A, {'A', 0x2BE, 0}, {'A', 0x2BE, 0}},
    {0xFB00, {'F', 'F', 0}, {'F', 'f', 0}},
    {0xFB01, {'F', 'I', 0}, {'F', 'i', 0}},
    {0xFB02, {'F', 'L', 0}, {'F', 'l', 0}},
    {0xFB03, {'F', 'F', 'I'}, {'F', 'f', 'i'}},
    {0xFB04, {'F', 'F', 'L'}, {'F', 'f', 'l'}},
    {0xFB05, {'S', 'T', 0}, {'S', 't', 0}},
    {0xFB06, {'S', 'T', 0}, {'S', 't', 0}},
};

const Expansion* expansion(uint32_t c) {
  if (c < 0xDF) return nullptr;
  for (const Expansion& e : kExpansions)
    if (e.from == c) return &e;
  return nullptr;
}

void append_all(std::string& out, const uint32_t (&codes)[3]) {
  for (uint32_t c : codes)
    if (c != 0) append_utf8(out, c);
}

std::string map_utf8(std::string_view text, int options) {
  utf8proc_uint8_t* mapped = nullptr;
  utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                       static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                                       static_cast<utf8proc_option_t>(options));
  if (size < 0) throw_bad_data({}, std::string("Unicode normalisation: ") + utf8proc_errmsg(size));
  std::string out(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
  std::free(mapped);
  return out;
}

// Code points that NFC leaves alone whatever stands beside them: none has a combining class,
// composes with what precedes it, or has a canonical decomposition that is not recomposed.
bool nfc_inert(uint32_t c) {
  return c < 0x300 || (c >= 0x3400 && c <= 0x9FFF) || (c >= 0x3000 && c <= 0x3029) ||
         (c >= 0x3030 && c <= 0x3098) || (c >= 0x309B && c <= 0x33FF) ||
         (c >= 0x2010 && c <= 0x205F) || (c >= 0xAC00 && c <= 0xD7A3) ||
         (c >= 0xFF00 && c <= 0xFFEF) || (c >= 0x1F300 && c <= 0x1FAFF) ||
         (c >= 0x2500 && c <= 0x27BF) || (c >= 0x400 && c <= 0x482) ||
         (c >= 0x20000 && c <= 0x2A6DF);
}

}  // namespace

size_t find_invalid_utf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    i += skip_ascii(text.data() + i, text.size() - i);
    while (i < text.size() && static_cast<unsigned char>(text[i]) >= 0x80) {
      int bad;
      int length = well_formed(reinterpret_cast<const unsigned char*>(text.data()) + i,
                               text.size() - i, &bad);
      if (length == 0) return i;
      i += static_cast<size_t>(length);
    }
  }
  return kUtf8Valid;
}

std::string utf8_lossy(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (size_t i = 0; i < bytes.size();) {
    int bad;
    int length = well_formed(reinterpret_cast<const unsigned char*>(bytes.data()) + i,
                             bytes.size() - i, &bad);
    if (length > 0) {
      out.append(bytes, i, static_cast<size_t>(length));
      i += static_cast<size_t>(length);
    } else {
      out += "\xEF\xBF\xBD";
      i += static_cast<size_t>(bad);
    }
  }
  return out;
}

size_t incomplete_utf8_tail(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    auto c = static_cast<unsigned char>(text[text.size() - back]);
    if (c < 0x80) return 0;
    if (c < 0xC0) continue;
    int bad;
    const auto* s = reinterpret_cast<const unsigned char*>(text.data()) + text.size() - back;
    // Ill-formed up to its very end: more bytes may finish it.
    return well_formed(s, back, &bad) == 0 && static_cast<size_t>(bad) == back && c >= 0xC2 &&
                   c <= 0xF4
               ? back
               : 0;
  }
  return 0;
}

void append_utf8(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

size_t count_code_points(std::string_view text) {
  size_t n = 0;
  for (char c : text) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return n;
}

std::string normalize(std::string_view text, NormalForm form) {
  if (is_ascii(text)) return std::string(text);
  int options = UTF8PROC_STABLE;
  bool compose = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  options |= compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::kNfkc || form == NormalForm::kNfkd) options |= UTF8PROC_COMPAT;
  return map_utf8(text, options);
}

bool is_surely_nfc(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    i += skip_ascii(text.data() + i, text.size() - i);
    while (i < text.size() && static_cast<unsigned char>(text[i]) >= 0x80) {
      int length;
      if (!nfc_inert(decode_utf8(text.data() + i, &length))) return false;
      i += static_cast<size_t>(length);
    }
  }
  return true;
}

bool is_letter(uint32_t c) {
  auto k = category(c);
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}
bool is_numeric(uint32_t c) {
  auto k = category(c);
  return k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO;
}
bool is_decimal(uint32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }
bool is_white_space(uint32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  if (c == 0x85) return true;
  auto k = category(c);
  return k >= UTF8PROC_CATEGORY_ZS && k <= UTF8PROC_CATEGORY_ZP;
}
bool is_word(uint32_t c) {
  auto k = category(c);
  bool enclosed_letter = (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
                         (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
  return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_ME) || k == UTF8PROC_CATEGORY_ND ||
         k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_PC || c == 0x200C || c == 0x200D ||
         enclosed_letter;
}
bool is_printable(uint32_t c) {
  if (c < 0x80) return c >= 0x20 && c != 0x7F;
  auto k = category(c);
  return k != UTF8PROC_CATEGORY_CN && (k < UTF8PROC_CATEGORY_ZS || k > UTF8PROC_CATEGORY_CO);
}
bool is_upper(uint32_t c) { return category(c) == UTF8PROC_CATEGORY_LU; }
bool is_lower(uint32_t c) { return category(c) == UTF8PROC_CATEGORY_LL; }
bool is_title(uint32_t c) { return category(c) == UTF8PROC_CATEGORY_LT; }
bool is_mark(uint32_t c) {
  auto k = category(c);
  return k >= UTF8PROC_CATEGORY_MN && k <= UTF8PROC_CATEGORY_ME;
}

size_t grapheme_end(std::string_view text, size_t at) {
  int length;
  auto left = static_cast<utf8proc_int32_t>(decode_utf8(text.data() + at, &length));
  at += static_cast<size_t>(length);
  for (utf8proc_int32_t state = 0; at < text.size(); at += static_cast<size_t>(length)) {
    auto right = static_cast<utf8proc_int32_t>(decode_utf8(text.data() + at, &length));
    if (utf8proc_grapheme_break_stateful(left, right, &state)) break;
    left = right;
  }
  return at;
}

void append_upper(std::string& out, uint32_t c) {
  if (const Expansion* e = expansion(c)) return append_all(out, e->upper);
  append_utf8(out, static_cast<uint32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
}
void append_lower(std::string& out, uint32_t c) {
  if (c == 0x130) {
    out += "i\xCC\x87";
    return;
  }
  append_utf8(out, static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}
void append_title(std::string& out, uint32_t c) {
  if (const Expansion* e = expansion(c)) return append_all(out, e->title);
  append_utf8(out, static_cast<uint32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
}

std::string to_upper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    int length;
    append_upper(out, decode_utf8(text.data() + i, &length));
    i += static_cast<size_t>(length);
  }
  return out;
}

std::string to_lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool after_letter = false;
  for (size_t i = 0; i < text.size();) {
    int length, next_length;
    uint32_t c = decode_utf8(text.data() + i, &length);
    i += static_cast<size_t>(length);
    bool before_letter = i < text.size() && is_letter(decode_utf8(text.data() + i, &next_length));
    if (c == 0x3A3 && after_letter && !before_letter) {
      append_utf8(out, 0x3C2);  // the final form of sigma
    } else {
      append_lower(out, c);
    }
    after_letter = is_letter(c);
  }
  return out;
}

std::string case_fold(std::string_view text) {
  return map_utf8(text, UTF8PROC_CASEFOLD | UTF8PROC_STABLE);
}

}  // namespace loongforge::support
