// Tokens to a syntax tree. Thread-safety: pure function.
#pragma once

#include <string_view>

#include "data/jinja/ast.h"

namespace loongforge::data::jinja {

// Throws SyntaxFault (lexer.h) naming the construct and its line.
Template parse_template(std::string_view source);

}  // namespace loongforge::data::jinja
