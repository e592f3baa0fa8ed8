#include "data/jinja/lexer.h"

#include <algorithm>

#include "support/unicode.h"

namespace loongforge::data::jinja {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// Line ends become \n; one at the very end is dropped.
std::string normalize_newlines(std::string_view source, bool drop_last) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (drop_last && !out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                           "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                           ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalize_newlines(source, true)) {}

  std::vector<Token> run() {
    while (pos_ < source_.size()) text_until_tag();
    add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  std::string_view rest(size_t at) const {
    return std::string_view(source_).substr(std::min(at, source_.size()));
  }
  bool looking_at(size_t at, std::string_view text) const { return rest(at).starts_with(text); }
  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, line_, std::move(text)}); }

  void advance(size_t to) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<ptrdiff_t>(pos_),
                                         source_.begin() + static_cast<ptrdiff_t>(to), '\n'));
    pos_ = to;
  }

  size_t space_end(size_t at) const {
    while (at < source_.size()) {
      int length;
      if (!support::is_white_space(support::decode_utf8(source_.data() + at, &length))) break;
      at += static_cast<size_t>(length);
    }
    return at;
  }

  static std::string_view strip_right(std::string_view text) {
    while (!text.empty()) {
      size_t last = text.size() - 1;
      while (last > 0 && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
      int length;
      if (!support::is_white_space(support::decode_utf8(text.data() + last, &length))) break;
      text = text.substr(0, last);
    }
    return text;
  }

  // The text before a tag at `open`, as its sign and lstrip_blocks leave it.
  std::string_view stripped(size_t open, char sign, bool variable) const {
    std::string_view text = std::string_view(source_).substr(pos_, open - pos_);
    if (sign == '-') return strip_right(text);
    if (sign == '+' || variable) return text;
    size_t newline = text.rfind('\n');
    bool own_line = newline != std::string_view::npos || pos_ == 0 || source_[pos_ - 1] == '\n';
    size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
    return own_line && strip_right(text.substr(line_start)).empty() ? text.substr(0, line_start)
                                                                    : text;
  }

  void emit_text(size_t open, char sign, bool variable) {
    std::string_view text = stripped(open, sign, variable);
    if (!text.empty()) add(TokenKind::kData, std::string(text));
  }

  char sign_at(size_t at) const {
    return at < source_.size() && (source_[at] == '-' || source_[at] == '+') ? source_[at] : '\0';
  }

  void text_until_tag() {
    size_t open = pos_;
    while ((open = source_.find('{', open)) != std::string::npos) {
      char next = open + 1 < source_.size() ? source_[open + 1] : '\0';
      if (next == '%' || next == '{' || next == '#') break;
      ++open;
    }
    if (open == std::string::npos) {
      add(TokenKind::kData, source_.substr(pos_));
      advance(source_.size());
      return;
    }
    char kind = source_[open + 1], sign = sign_at(open + 2);
    emit_text(open, sign, kind == '{');
    advance(open + 2 + (sign != '\0'));
    if (kind == '#') return comment();
    if (kind == '%' && raw_block()) return;
    add(kind == '{' ? TokenKind::kVariableBegin : TokenKind::kBlockBegin, "");
    inside_tag(kind == '{');
  }

  void comment() {
    size_t close = source_.find("#}", pos_);
    if (close == std::string::npos) syntax_fault(line_, "missing end of comment tag");
    char sign = close > pos_ ? source_[close - 1] : '\0';
    advance(close + 2);
    skip_after_block(sign);
  }

  // trim_blocks, or the sign of the closing tag.
  void skip_after_block(char sign) {
    if (sign == '-') {
      advance(space_end(pos_));
    } else if (sign != '+' && looking_at(pos_, "\n")) {
      advance(pos_ + 1);
    }
  }

  // After "{%": "raw" and its closing tag. True when this was a raw block, now consumed.
  bool raw_block() {
    size_t at = space_end(pos_);
    if (!looking_at(at, "raw")) return false;
    at = space_end(at + 3);
    bool dash = looking_at(at, "-%}");
    if (!dash && !looking_at(at, "%}")) return false;
    at += dash ? 3 : 2;
    advance(dash ? space_end(at) : at);
    for (size_t open = pos_; (open = source_.find("{%", open)) != std::string::npos; open += 2) {
      char sign = sign_at(open + 2);
      size_t word = space_end(open + 2 + (sign != '\0'));
      if (!looking_at(word, "endraw")) continue;
      size_t close = space_end(word + 6);
      char end_sign = sign_at(close);
      if (!looking_at(close + (end_sign != '\0'), "%}")) continue;
      emit_text(open, sign, false);
      advance(close + (end_sign != '\0') + 2);
      skip_after_block(end_sign);
      return true;
    }
    syntax_fault(line_, "missing end of raw block");
  }

  // True when the tag's end stands here; consumes it.
  bool tag_end(bool variable) {
    std::string_view close = variable ? "}}" : "%}";
    char sign = sign_at(pos_);
    if (variable && sign == '+') sign = '\0';
    if (!looking_at(pos_ + (sign != '\0'), close)) return false;
    add(variable ? TokenKind::kVariableEnd : TokenKind::kBlockEnd, "");
    advance(pos_ + (sign != '\0') + 2);
    if (!variable) {
      skip_after_block(sign);
    } else if (sign == '-') {
      advance(space_end(pos_));
    }
    return true;
  }

  void inside_tag(bool variable) {
    int opened_at = line_;
    std::string brackets;  // closing brackets still expected
    while (pos_ < source_.size()) {
      if (brackets.empty() && tag_end(variable)) return;
      size_t after = space_end(pos_);
      if (after > pos_) {
        advance(after);
        continue;
      }
      char c = source_[pos_];
      if (is_digit(c)) {
        number();
      } else if (c == '\'' || c == '"') {
        string(c);
      } else if (!name()) {
        operator_token(brackets);
      }
    }
    syntax_fault(opened_at, variable ? "{{ is never closed" : "{% is never closed");
  }

  bool name() {
    size_t at = pos_;
    while (at < source_.size()) {
      int length;
      uint32_t c = support::decode_utf8(source_.data() + at, &length);
      if (c != '_' && !support::is_word(c)) break;
      at += static_cast<size_t>(length);
    }
    if (at == pos_) return false;
    add(TokenKind::kName, source_.substr(pos_, at - pos_));
    advance(at);
    return true;
  }

  void operator_token(std::string& brackets) {
    for (std::string_view op : kOperators) {
      if (!looking_at(pos_, op)) continue;
      char c = op[0];
      if (c == '(' || c == '[' || c == '{') brackets += c == '(' ? ')' : c == '[' ? ']' : '}';
      if (c == ')' || c == ']' || c == '}') {
        if (brackets.empty() || brackets.back() != c)
          syntax_fault(line_, "unexpected '" + std::string(op) + "'");
        brackets.pop_back();
      }
      add(TokenKind::kOperator, std::string(op));
      advance(pos_ + op.size());
      return;
    }
    int length;
    support::decode_utf8(source_.data() + pos_, &length);
    syntax_fault(
        line_, "unexpected character '" + source_.substr(pos_, static_cast<size_t>(length)) + "'");
  }

  // Digits with single underscores between them, from `at`.
  size_t digits_end(size_t at, bool (*ok)(char)) const {
    while (
        at < source_.size() &&
        (ok(source_[at]) || (source_[at] == '_' && at + 1 < source_.size() && ok(source_[at + 1]))))
      ++at;
    return at;
  }

  void number() {
    size_t at = pos_;
    bool floating = false;
    if (source_[at] == '0' && at + 1 < source_.size() &&
        std::string_view("xXoObB").find(source_[at + 1]) != std::string_view::npos) {
      at = digits_end(at + 2, is_hex);
    } else {
      at = digits_end(at, is_digit);
      bool after_dot = pos_ > 0 && source_[pos_ - 1] == '.';  // a.0.1 is two subscripts
      if (!after_dot && at + 1 < source_.size() && source_[at] == '.' &&
          is_digit(source_[at + 1])) {
        at = digits_end(at + 1, is_digit);
        floating = true;
      }
      size_t power = at;
      if (!after_dot && power < source_.size() &&
          (source_[power] == 'e' || source_[power] == 'E')) {
        ++power;
        if (power < source_.size() && (source_[power] == '+' || source_[power] == '-')) ++power;
        if (power < source_.size() && is_digit(source_[power])) {
          at = digits_end(power, is_digit);
          floating = true;
        }
      }
    }
    std::string text = source_.substr(pos_, at - pos_);
    std::erase(text, '_');
    add(floating ? TokenKind::kFloat : TokenKind::kInteger, std::move(text));
    advance(at);
  }

  void string(char quote) {
    size_t at = pos_ + 1;
    while (at < source_.size() && source_[at] != quote) at += source_[at] == '\\' ? 2 : 1;
    if (at >= source_.size()) syntax_fault(line_, "a string is never closed");
    add(TokenKind::kString, unescape(std::string_view(source_).substr(pos_ + 1, at - pos_ - 1)));
    advance(at + 1);
  }

  std::string unescape(std::string_view text) const {
    constexpr std::string_view kFrom = "\\'\"abfnrtv", kTo = "\\'\"\a\b\f\n\r\t\v";
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\') {
        out += text[i];
        continue;
      }
      char c = text[++i];  // string() made sure that something follows
      size_t simple = kFrom.find(c);
      if (simple != std::string_view::npos) {
        out += kTo[simple];
      } else if (c == 'x' || c == 'u' || c == 'U') {
        size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        append_code(out, text.substr(i + 1, digits), digits, 16);
        i += digits;
      } else if (c >= '0' && c <= '7') {
        size_t n = 1;
        while (n < 3 && i + n < text.size() && text[i + n] >= '0' && text[i + n] <= '7') ++n;
        append_code(out, text.substr(i, n), n, 8);
        i += n - 1;
      } else if (c == 'N') {
        syntax_fault(line_, "\\N{...} in a string is not supported");
      } else if (c != '\n') {  // a backslash at a line's end joins the lines
        out += '\\';
        out += c;
      }
    }
    return out;
  }

  void append_code(std::string& out, std::string_view digits, size_t want, int base) const {
    bool good = digits.size() == want && std::all_of(digits.begin(), digits.end(), is_hex);
    uint32_t code =
        good ? static_cast<uint32_t>(std::stoul(std::string(digits), nullptr, base)) : 0;
    if (!good || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
      syntax_fault(line_, "a string has a bad escape '\\" + std::string(digits) + "'");
    support::append_utf8(out, code);
  }

  std::string source_;
  size_t pos_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

void syntax_fault(int line, std::string message, std::string hint) {
  throw SyntaxFault{line, std::move(message), std::move(hint)};
}

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace loongforge::data::jinja
