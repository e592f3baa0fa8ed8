// Expressions of the template language, by recursive descent with Jinja's precedences. Base of the
// statement parser. Thread-safety: one object per parse.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/jinja/ast.h"
#include "data/jinja/lexer.h"

namespace loongforge::data::jinja {

class ExpressionParser {
 protected:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  // Bounds the recursion of parser and interpreter over nested constructs.
  class Depth {
   public:
    explicit Depth(ExpressionParser& parser);
    ~Depth() { --parser_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    ExpressionParser& parser_;
  };

  using EndNames = std::initializer_list<std::string_view>;

  const Token& current() const { return tokens_[pos_]; }
  const Token& ahead() const { return tokens_[pos_ + 1 < tokens_.size() ? pos_ + 1 : pos_]; }
  void next() {
    if (pos_ + 1 < tokens_.size()) ++pos_;
  }
  bool is_name(std::string_view name) const {
    return current().kind == TokenKind::kName && current().text == name;
  }
  bool is_operator(std::string_view op) const {
    return current().kind == TokenKind::kOperator && current().text == op;
  }
  bool skip_name(std::string_view name);
  bool skip_operator(std::string_view op);
  Token expect(TokenKind kind, std::string_view what);
  void expect_operator(std::string_view op);
  [[noreturn]] void unexpected(std::string_view wanted) const;

  ExprPtr expression(bool with_condition = true);
  // Expressions with commas between them make a tuple. ends: names that end it.
  ExprPtr tuple(bool with_condition, EndNames ends, bool in_parentheses);
  // What stands left of "=" or "in". with_namespace: ns.attribute too.
  ExprPtr target(EndNames ends, bool with_namespace);
  // "| name(...)" and those that follow; already_named: the first stands without its bar.
  ExprPtr filter(ExprPtr input, bool already_named);

  bool saw_varargs_ = false, saw_kwargs_ = false;  // names used since they were last cleared

 private:
  ExprPtr make(ExprKind kind, int line) const;
  // Call when all kids are in place.
  ExprPtr finish(ExprPtr expr) const;
  ExprPtr either();
  ExprPtr both();
  ExprPtr negation();
  ExprPtr comparison();
  ExprPtr sum();
  ExprPtr concatenation();
  ExprPtr product();
  ExprPtr power();
  ExprPtr unary(bool with_filter);
  ExprPtr primary();
  ExprPtr list_literal();
  ExprPtr dict_literal();
  ExprPtr postfix(ExprPtr node);
  ExprPtr filters_and_tests(ExprPtr node);
  ExprPtr subscript(ExprPtr node);
  ExprPtr subscript_index();
  ExprPtr test(ExprPtr node);
  ExprPtr call(ExprPtr node);
  Arguments arguments();
  ExprPtr binary(ExprPtr left, std::string op, ExprPtr right, int line) const;
  bool tuple_ends(EndNames ends) const;
  ExprPtr simple_target(bool with_namespace);
  void require_assignable(const Expr& target) const;
  Value integer_value(const Token& token) const;

  std::vector<Token> tokens_;
  size_t pos_ = 0;
  int depth_ = 0;
};

}  // namespace loongforge::data::jinja
