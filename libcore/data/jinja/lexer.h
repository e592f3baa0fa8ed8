// Template text to tokens, with the whitespace rules of trim_blocks and lstrip_blocks applied.
// Thread-safety: pure function.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace loongforge::data::jinja {

enum class TokenKind {
  kData,           // text between tags
  kVariableBegin,  // {{
  kVariableEnd,
  kBlockBegin,  // {%
  kBlockEnd,
  kName,
  kString,   // text: the value, escapes undone
  kInteger,  // text: digits as written, without underscores
  kFloat,
  kOperator,  // text: the operator
  kEnd,
};

struct Token {
  TokenKind kind;
  int line;
  std::string text;
};

// A syntax fault with its line; the caller adds the file.
struct SyntaxFault {
  int line;
  std::string message, hint;
};
[[noreturn]] void syntax_fault(int line, std::string message, std::string hint = {});

// Ends with one kEnd token. Throws SyntaxFault.
std::vector<Token> tokenize(std::string_view source);

}  // namespace loongforge::data::jinja
