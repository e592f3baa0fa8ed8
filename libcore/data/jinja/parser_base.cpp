#include "data/jinja/parser_base.h"

#include <charconv>

namespace loongforge::data::jinja {
namespace {

constexpr int kMaxDepth = 200;
// Chains (a.b.c..., x|f|g..., a+b+c...) make high trees without recursion in the parser.
constexpr int kMaxHeight = 600;

constexpr const char* kComparisons[] = {"==", "!=", "<", "<=", ">", ">="};

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kEnd:
      return "the end of the template";
    case TokenKind::kBlockEnd:
      return "'%}'";
    case TokenKind::kVariableEnd:
      return "'}}'";
    case TokenKind::kString:
      return "string '" + token.text.substr(0, 40) + "'";
    default:
      return "'" + token.text.substr(0, 40) + "'";
  }
}

}  // namespace

ExpressionParser::Depth::Depth(ExpressionParser& parser) : parser_(parser) {
  if (++parser.depth_ > kMaxDepth)
    syntax_fault(parser.current().line,
                 "constructs nest more than " + std::to_string(kMaxDepth) + " deep");
}

bool ExpressionParser::skip_name(std::string_view name) {
  if (!is_name(name)) return false;
  next();
  return true;
}

bool ExpressionParser::skip_operator(std::string_view op) {
  if (!is_operator(op)) return false;
  next();
  return true;
}

void ExpressionParser::unexpected(std::string_view wanted) const {
  syntax_fault(current().line,
               "expected " + std::string(wanted) + ", found " + describe(current()));
}

Token ExpressionParser::expect(TokenKind kind, std::string_view what) {
  if (current().kind != kind) unexpected(what);
  Token token = current();
  next();
  return token;
}

void ExpressionParser::expect_operator(std::string_view op) {
  if (!skip_operator(op)) unexpected("'" + std::string(op) + "'");
}

ExprPtr ExpressionParser::make(ExprKind kind, int line) const {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->line = line;
  return expr;
}

ExprPtr ExpressionParser::finish(ExprPtr expr) const {
  int highest = 0;
  auto look = [&](const ExprPtr& kid) {
    if (kid != nullptr && kid->height > highest) highest = kid->height;
  };
  for (const ExprPtr& kid : expr->kids) look(kid);
  for (const ExprPtr& kid : expr->arguments.positional) look(kid);
  for (const auto& named : expr->arguments.named) look(named.second);
  look(expr->arguments.rest);
  look(expr->arguments.rest_named);
  expr->height = highest + 1;
  if (expr->height > kMaxHeight)
    syntax_fault(expr->line,
                 "an expression nests more than " + std::to_string(kMaxHeight) + " deep");
  return expr;
}

ExprPtr ExpressionParser::binary(ExprPtr left, std::string op, ExprPtr right, int line) const {
  ExprPtr expr = make(ExprKind::kBinary, line);
  expr->name = std::move(op);
  expr->kids.push_back(std::move(left));
  expr->kids.push_back(std::move(right));
  return finish(std::move(expr));
}

ExprPtr ExpressionParser::expression(bool with_condition) {
  Depth depth(*this);
  ExprPtr value = either();
  while (with_condition && is_name("if")) {
    int line = current().line;
    next();
    ExprPtr expr = make(ExprKind::kCondition, line);
    expr->kids.push_back(either());
    expr->kids.push_back(std::move(value));
    expr->kids.push_back(skip_name("else") ? expression() : nullptr);
    value = finish(std::move(expr));
  }
  return value;
}

ExprPtr ExpressionParser::either() {
  ExprPtr left = both();
  if (!is_name("or")) return left;
  ExprPtr expr = make(ExprKind::kOr, current().line);
  expr->kids.push_back(std::move(left));
  while (skip_name("or")) expr->kids.push_back(both());
  return finish(std::move(expr));
}

ExprPtr ExpressionParser::both() {
  ExprPtr left = negation();
  if (!is_name("and")) return left;
  ExprPtr expr = make(ExprKind::kAnd, current().line);
  expr->kids.push_back(std::move(left));
  while (skip_name("and")) expr->kids.push_back(negation());
  return finish(std::move(expr));
}

ExprPtr ExpressionParser::negation() {
  if (!is_name("not")) return comparison();
  Depth depth(*this);
  ExprPtr expr = make(ExprKind::kNot, current().line);
  next();
  expr->kids.push_back(negation());
  return finish(std::move(expr));
}

ExprPtr ExpressionParser::comparison() {
  ExprPtr first = sum();
  ExprPtr expr;
  while (true) {
    std::string op;
    for (const char* known : kComparisons)
      if (is_operator(known)) op = known;
    if (is_name("in")) op = "in";
    if (is_name("not") && ahead().kind == TokenKind::kName && ahead().text == "in") op = "not in";
    if (op.empty()) break;
    if (expr == nullptr) {
      expr = make(ExprKind::kCompare, current().line);
      expr->kids.push_back(std::move(first));
    }
    next();
    if (op == "not in") next();
    expr->ops.push_back(std::move(op));
    expr->kids.push_back(sum());
  }
  return expr != nullptr ? finish(std::move(expr)) : std::move(first);
}

ExprPtr ExpressionParser::sum() {
  ExprPtr left = concatenation();
  while (is_operator("+") || is_operator("-")) {
    Token op = current();
    next();
    left = binary(std::move(left), op.text, concatenation(), op.line);
  }
  return left;
}

ExprPtr ExpressionParser::concatenation() {
  ExprPtr first = product();
  if (!is_operator("~")) return first;
  ExprPtr expr = make(ExprKind::kConcat, current().line);
  expr->kids.push_back(std::move(first));
  while (skip_operator("~")) expr->kids.push_back(product());
  return finish(std::move(expr));
}

ExprPtr ExpressionParser::product() {
  ExprPtr left = power();
  while (is_operator("*") || is_operator("/") || is_operator("//") || is_operator("%")) {
    Token op = current();
    next();
    left = binary(std::move(left), op.text, power(), op.line);
  }
  return left;
}

ExprPtr ExpressionParser::power() {
  ExprPtr left = unary(true);
  while (is_operator("**")) {
    int line = current().line;
    next();
    left = binary(std::move(left), "**", unary(true), line);
  }
  return left;
}

ExprPtr ExpressionParser::unary(bool with_filter) {
  Depth depth(*this);
  ExprPtr node;
  if (is_operator("-") || is_operator("+")) {
    node = make(is_operator("-") ? ExprKind::kNegate : ExprKind::kPlus, current().line);
    next();
    node->kids.push_back(unary(false));
    node = finish(std::move(node));
  } else {
    node = primary();
  }
  node = postfix(std::move(node));
  return with_filter ? filters_and_tests(std::move(node)) : std::move(node);
}

Value ExpressionParser::integer_value(const Token& token) const {
  std::string_view digits = token.text;
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0' && digits[1] > '9') {
    char kind = static_cast<char>(digits[1] | 0x20);
    base = kind == 'x' ? 16 : kind == 'o' ? 8 : 2;
    digits.remove_prefix(2);
  }
  int64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  bool leading_zero = base == 10 && digits.size() > 1 && digits[0] == '0' && value != 0;
  if (error != std::errc() || end != digits.data() + digits.size() || leading_zero)
    syntax_fault(token.line, "'" + token.text + "' is no integer of 64 bits");
  return Value(value);
}

ExprPtr ExpressionParser::primary() {
  Token token = current();
  ExprPtr node = make(ExprKind::kConst, token.line);
  switch (token.kind) {
    case TokenKind::kName:
      next();
      if (token.text == "true" || token.text == "True" || token.text == "false" ||
          token.text == "False") {
        node->constant = Value(token.text[0] == 't' || token.text[0] == 'T');
      } else if (token.text != "none" && token.text != "None") {
        node->kind = ExprKind::kName;
        node->name = token.text;
        saw_varargs_ = saw_varargs_ || token.text == "varargs";
        saw_kwargs_ = saw_kwargs_ || token.text == "kwargs";
      }
      return node;
    case TokenKind::kString: {
      std::string text;
      for (; current().kind == TokenKind::kString; next()) text += current().text;
      node->constant = Value(std::move(text));
      return node;
    }
    case TokenKind::kInteger:
      next();
      node->constant = integer_value(token);
      return node;
    case TokenKind::kFloat: {
      next();
      double value = 0;
      std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
      node->constant = Value(value);
      return node;
    }
    default:
      break;
  }
  if (skip_operator("(")) {
    node = tuple(true, {}, true);
    expect_operator(")");
    return node;
  }
  if (is_operator("[")) return list_literal();
  if (is_operator("{")) return dict_literal();
  unexpected("an expression");
}

ExprPtr ExpressionParser::list_literal() {
  ExprPtr list = make(ExprKind::kList, current().line);
  next();
  while (!is_operator("]")) {
    if (!list->kids.empty()) expect_operator(",");
    if (is_operator("]")) break;
    list->kids.push_back(expression());
  }
  next();
  return finish(std::move(list));
}

ExprPtr ExpressionParser::dict_literal() {
  ExprPtr dict = make(ExprKind::kDict, current().line);
  next();
  while (!is_operator("}")) {
    if (!dict->kids.empty()) expect_operator(",");
    if (is_operator("}")) break;
    dict->kids.push_back(expression());
    expect_operator(":");
    dict->kids.push_back(expression());
  }
  next();
  return finish(std::move(dict));
}

bool ExpressionParser::tuple_ends(EndNames ends) const {
  if (current().kind == TokenKind::kVariableEnd || current().kind == TokenKind::kBlockEnd ||
      is_operator(")"))
    return true;
  for (std::string_view name : ends)
    if (is_name(name)) return true;
  return false;
}

ExprPtr ExpressionParser::tuple(bool with_condition, EndNames ends, bool in_parentheses) {
  int line = current().line;
  std::vector<ExprPtr> items;
  bool commas = false;
  while (!tuple_ends(ends)) {
    items.push_back(expression(with_condition));
    if (!skip_operator(",")) break;
    commas = true;
  }
  if (!commas && items.size() == 1) return std::move(items[0]);
  if (items.empty() && !in_parentheses) unexpected("an expression");
  ExprPtr expr = make(ExprKind::kTuple, line);
  expr->kids = std::move(items);
  return finish(std::move(expr));
}

void ExpressionParser::require_assignable(const Expr& target) const {
  if (target.kind == ExprKind::kTuple || target.kind == ExprKind::kList) {
    for (const ExprPtr& kid : target.kids) require_assignable(*kid);
  } else if (target.kind != ExprKind::kName && target.kind != ExprKind::kNamespaceTarget) {
    syntax_fault(target.line, "a value is assigned to something that is no name");
  }
}

ExprPtr ExpressionParser::simple_target(bool with_namespace) {
  if (with_namespace && current().kind == TokenKind::kName &&
      ahead().kind == TokenKind::kOperator && ahead().text == ".") {
    ExprPtr expr = make(ExprKind::kNamespaceTarget, current().line);
    expr->name = current().text;
    next();
    next();
    expr->attribute = expect(TokenKind::kName, "an attribute").text;
    return expr;
  }
  return primary();
}

ExprPtr ExpressionParser::target(EndNames ends, bool with_namespace) {
  int line = current().line;
  ExprPtr made = simple_target(with_namespace);
  if (is_operator(",")) {
    ExprPtr all = make(ExprKind::kTuple, line);
    all->kids.push_back(std::move(made));
    while (skip_operator(",") && !tuple_ends(ends))
      all->kids.push_back(simple_target(with_namespace));
    made = finish(std::move(all));
  }
  require_assignable(*made);
  return made;
}

ExprPtr ExpressionParser::postfix(ExprPtr node) {
  while (true) {
    if (is_operator(".") || is_operator("[")) {
      node = subscript(std::move(node));
    } else if (is_operator("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExprPtr ExpressionParser::filters_and_tests(ExprPtr node) {
  while (true) {
    if (is_operator("|")) {
      node = filter(std::move(node), false);
    } else if (is_name("is")) {
      node = test(std::move(node));
    } else if (is_operator("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExprPtr ExpressionParser::subscript(ExprPtr node) {
  int line = current().line;
  ExprPtr expr = make(ExprKind::kItem, line);
  if (skip_operator(".")) {
    Token name = current();
    next();
    if (name.kind == TokenKind::kName) {
      expr->kind = ExprKind::kAttribute;
      expr->name = name.text;
      expr->kids.push_back(std::move(node));
      return finish(std::move(expr));
    }
    if (name.kind != TokenKind::kInteger)
      syntax_fault(name.line, "expected a name or number after '.'");
    expr->kids.push_back(std::move(node));
    expr->kids.push_back(make(ExprKind::kConst, line));
    expr->kids[1]->constant = integer_value(name);
    return finish(std::move(expr));
  }
  expect_operator("[");
  expr->kids.push_back(std::move(node));
  ExprPtr index = subscript_index();
  if (is_operator(",")) {
    ExprPtr all = make(ExprKind::kTuple, line);
    all->kids.push_back(std::move(index));
    while (skip_operator(",") && !is_operator("]")) all->kids.push_back(subscript_index());
    index = finish(std::move(all));
  }
  expect_operator("]");
  expr->kids.push_back(std::move(index));
  return finish(std::move(expr));
}

ExprPtr ExpressionParser::subscript_index() {
  int line = current().line;
  ExprPtr start = is_operator(":") ? nullptr : expression();
  if (!is_operator(":")) return start;
  ExprPtr slice = make(ExprKind::kSlice, line);
  slice->kids.push_back(std::move(start));
  for (int part = 0; part < 2; ++part) {
    bool there = skip_operator(":") && !is_operator(":") && !is_operator("]") && !is_operator(",");
    slice->kids.push_back(there ? expression() : nullptr);
  }
  return finish(std::move(slice));
}

Arguments ExpressionParser::arguments() {
  Arguments made;
  int line = current().line;
  expect_operator("(");
  auto require = [&](bool fine) {
    if (!fine) syntax_fault(line, "arguments stand in an order that a call does not have");
  };
  for (bool first = true; !is_operator(")"); first = false) {
    if (!first) {
      expect_operator(",");
      if (is_operator(")")) break;
    }
    if (skip_operator("*")) {
      require(made.rest == nullptr && made.rest_named == nullptr);
      made.rest = expression();
    } else if (skip_operator("**")) {
      require(made.rest_named == nullptr);
      made.rest_named = expression();
    } else if (current().kind == TokenKind::kName && ahead().kind == TokenKind::kOperator &&
               ahead().text == "=") {
      require(made.rest_named == nullptr);
      std::string name = current().text;
      next();
      next();
      made.named.emplace_back(std::move(name), expression());
    } else {
      require(made.rest == nullptr && made.rest_named == nullptr && made.named.empty());
      made.positional.push_back(expression());
    }
  }
  next();
  return made;
}

ExprPtr ExpressionParser::call(ExprPtr node) {
  ExprPtr expr = make(ExprKind::kCall, current().line);
  expr->kids.push_back(std::move(node));
  expr->arguments = arguments();
  return finish(std::move(expr));
}

ExprPtr ExpressionParser::filter(ExprPtr input, bool already_named) {
  for (; already_named || is_operator("|"); already_named = false) {
    if (!already_named) next();
    Token name = expect(TokenKind::kName, "a filter's name");
    ExprPtr expr = make(ExprKind::kFilter, name.line);
    expr->name = name.text;
    while (skip_operator(".")) expr->name += "." + expect(TokenKind::kName, "a filter's name").text;
    if (input != nullptr) expr->kids.push_back(std::move(input));
    if (is_operator("(")) expr->arguments = arguments();
    input = finish(std::move(expr));
  }
  return input;
}

ExprPtr ExpressionParser::test(ExprPtr node) {
  int line = current().line;
  next();  // "is"
  bool negated = skip_name("not");
  ExprPtr expr = make(ExprKind::kTest, line);
  expr->name = expect(TokenKind::kName, "a test's name").text;
  while (skip_operator(".")) expr->name += "." + expect(TokenKind::kName, "a test's name").text;
  expr->kids.push_back(std::move(node));
  const Token& token = current();
  bool literal = token.kind == TokenKind::kString || token.kind == TokenKind::kInteger ||
                 token.kind == TokenKind::kFloat || is_operator("[") || is_operator("{");
  bool name = token.kind == TokenKind::kName && token.text != "else" && token.text != "or" &&
              token.text != "and";
  if (is_operator("(")) {
    expr->arguments = arguments();
  } else if (literal || name) {
    if (is_name("is")) syntax_fault(token.line, "tests cannot be chained with 'is'");
    expr->arguments.positional.push_back(postfix(primary()));
  }
  expr = finish(std::move(expr));
  if (!negated) return expr;
  ExprPtr inverse = make(ExprKind::kNot, line);
  inverse->kids.push_back(std::move(expr));
  return finish(std::move(inverse));
}

}  // namespace loongforge::data::jinja
