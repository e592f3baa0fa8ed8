#include "data/jinja/parser.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>

#include "data/jinja/lexer.h"
#include "data/jinja/parser_base.h"

namespace loongforge::data::jinja {
namespace {

using Names = std::initializer_list<std::string_view>;

class Parser : public ExpressionParser {
 public:
  explicit Parser(std::string_view source) : ExpressionParser(tokenize(source)) {}

  Template run() {
    Template made;
    made.body = block({}, "template");
    made.has_generation = has_generation_;
    return made;
  }

 private:
  std::unique_ptr<Stmt> make(StmtKind kind, int line) {
    auto stmt = std::make_unique<Stmt>();
    stmt->kind = kind;
    stmt->line = line;
    return stmt;
  }

  // Statements up to a block tag with one of the names, whose name is left as the current token. No
  // names: to the end.
  Block block(Names ends, std::string_view what) {
    Depth depth(*this);
    int opened = current().line;
    Block body;
    while (current().kind != TokenKind::kEnd) {
      Token token = current();
      next();
      if (token.kind == TokenKind::kData) {
        auto text = make(StmtKind::kText, token.line);
        text->text = std::move(token.text);
        body.push_back(std::move(text));
      } else if (token.kind == TokenKind::kVariableBegin) {
        auto output = make(StmtKind::kOutput, token.line);
        output->exprs.push_back(tuple(true, {}, false));
        expect(TokenKind::kVariableEnd, "}}");
        body.push_back(std::move(output));
      } else {
        for (std::string_view end : ends)
          if (is_name(end)) return body;
        body.push_back(statement());
        expect(TokenKind::kBlockEnd, "%}");
      }
    }
    if (ends.size() != 0) syntax_fault(opened, "{% " + std::string(what) + " %} is never closed");
    return body;
  }

  // The body of a tag: its end, then statements up to the closing name, which is consumed.
  Block body_until(std::string_view end, std::string_view what) {
    skip_operator(":");
    expect(TokenKind::kBlockEnd, "%}");
    Block body = block({end}, what);
    next();
    return body;
  }

  std::unique_ptr<Stmt> statement() {
    Token token = expect(TokenKind::kName, "a statement");
    int line = token.line;
    const std::string& name = token.text;
    if (name == "if") return if_statement(line);
    if (name == "for") return for_statement(line);
    if (name == "set") return set_statement(line);
    if (name == "macro") return macro_statement(line);
    if (name == "call") return call_statement(line);
    if (name == "with") return with_statement(line);
    if (name == "print") return print_statement(line);
    if (name == "filter") {
      auto stmt = make(StmtKind::kFilterBlock, line);
      stmt->filter = filter(nullptr, true);
      stmt->bodies.push_back(body_until("endfilter", name));
      return stmt;
    }
    if (name == "generation") {
      auto stmt = make(StmtKind::kGeneration, line);
      stmt->bodies.push_back(body_until("endgeneration", name));
      has_generation_ = true;
      return stmt;
    }
    if (name == "break" || name == "continue") {
      if (loops_ == 0) syntax_fault(line, "{% " + name + " %} stands outside a loop");
      return make(name == "break" ? StmtKind::kBreak : StmtKind::kContinue, line);
    }
    for (std::string_view known :
         {"block", "extends", "include", "import", "from", "autoescape", "do", "trans"})
      if (name == known)
        syntax_fault(line, "{% " + name + " %} is not supported in chat templates");
    syntax_fault(line, "unknown or misplaced tag {% " + name + " %}");
  }

  std::unique_ptr<Stmt> if_statement(int line) {
    auto stmt = make(StmtKind::kIf, line);
    while (true) {
      stmt->exprs.push_back(tuple(false, {}, false));
      skip_operator(":");
      expect(TokenKind::kBlockEnd, "%}");
      stmt->bodies.push_back(block({"elif", "else", "endif"}, "if"));
      Token end = current();
      next();
      if (end.text == "elif") continue;
      if (end.text == "else") stmt->bodies.push_back(body_until("endif", "if"));
      return stmt;
    }
  }

  std::unique_ptr<Stmt> for_statement(int line) {
    auto stmt = make(StmtKind::kFor, line);
    stmt->targets.push_back(target({"in"}, false));
    if (!skip_name("in")) syntax_fault(current().line, "{% for %} lacks 'in'");
    stmt->iterable = tuple(false, {"recursive"}, false);
    if (skip_name("if")) stmt->condition = expression();
    stmt->recursive = skip_name("recursive");
    skip_operator(":");
    expect(TokenKind::kBlockEnd, "%}");
    ++loops_;
    stmt->bodies.push_back(block({"endfor", "else"}, "for"));
    --loops_;
    Token end = current();
    next();
    if (end.text == "else") stmt->bodies.push_back(body_until("endfor", "for"));
    return stmt;
  }

  std::unique_ptr<Stmt> set_statement(int line) {
    auto stmt = make(StmtKind::kSet, line);
    stmt->targets.push_back(target({}, true));
    if (skip_operator("=")) {
      stmt->exprs.push_back(tuple(true, {}, false));
      return stmt;
    }
    stmt->kind = StmtKind::kSetBlock;
    if (is_operator("|")) stmt->filter = filter(nullptr, false);
    stmt->bodies.push_back(body_until("endset", "set"));
    return stmt;
  }

  // (a, b=1) of a macro or call block.
  void signature(Stmt& stmt) {
    expect_operator("(");
    while (!is_operator(")")) {
      if (!stmt.parameters.empty()) expect_operator(",");
      Parameter parameter;
      Token name = expect(TokenKind::kName, "a parameter's name");
      parameter.name = name.text;
      if (skip_operator("=")) {
        parameter.otherwise = expression();
      } else if (!stmt.parameters.empty() && stmt.parameters.back().otherwise != nullptr) {
        syntax_fault(name.line,
                     "parameter '" + name.text + "' without a default follows one with a default");
      }
      stmt.parameters.push_back(std::move(parameter));
    }
    next();
  }

  // The body of a macro or call block: loops outside do not reach in, and what it names decides
  // what it takes.
  void routine_body(Stmt& stmt, std::string_view end, std::string_view what) {
    int loops = std::exchange(loops_, 0);
    bool varargs = std::exchange(saw_varargs_, false), kwargs = std::exchange(saw_kwargs_, false);
    stmt.bodies.push_back(body_until(end, what));
    stmt.uses_varargs = std::exchange(saw_varargs_, varargs);
    stmt.uses_kwargs = std::exchange(saw_kwargs_, kwargs);
    loops_ = loops;
  }

  std::unique_ptr<Stmt> macro_statement(int line) {
    auto stmt = make(StmtKind::kMacro, line);
    stmt->text = expect(TokenKind::kName, "the macro's name").text;
    signature(*stmt);
    routine_body(*stmt, "endmacro", "macro");
    return stmt;
  }

  std::unique_ptr<Stmt> call_statement(int line) {
    auto stmt = make(StmtKind::kCallBlock, line);
    if (is_operator("(")) signature(*stmt);
    ExprPtr call = expression();
    if (call->kind != ExprKind::kCall) syntax_fault(line, "{% call %} needs a call");
    stmt->exprs.push_back(std::move(call));
    routine_body(*stmt, "endcall", "call");
    return stmt;
  }

  std::unique_ptr<Stmt> with_statement(int line) {
    auto stmt = make(StmtKind::kWith, line);
    while (current().kind != TokenKind::kBlockEnd) {
      if (!stmt->targets.empty()) expect_operator(",");
      stmt->targets.push_back(target({}, false));
      expect_operator("=");
      stmt->exprs.push_back(expression());
    }
    stmt->bodies.push_back(body_until("endwith", "with"));
    return stmt;
  }

  std::unique_ptr<Stmt> print_statement(int line) {
    auto stmt = make(StmtKind::kOutput, line);
    while (current().kind != TokenKind::kBlockEnd) {
      if (!stmt->exprs.empty()) expect_operator(",");
      stmt->exprs.push_back(expression());
    }
    return stmt;
  }

  int loops_ = 0;
  bool has_generation_ = false;
};

}  // namespace

Template parse_template(std::string_view source) { return Parser(source).run(); }

}  // namespace loongforge::data::jinja
