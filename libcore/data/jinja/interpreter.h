// Runs a template's tree over a context. One object per rendering; not thread-safe.
// Invariants: recursion is bounded (kMaxDepth), and so are steps and produced text (Budget);
// nothing but the given values, and the clock through strftime_now, can be reached.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/jinja/ast.h"
#include "data/jinja/value.h"

namespace loongforge::data::jinja {

// Names and values of a block, over those of the block around it.
class Scope {
 public:
  explicit Scope(std::shared_ptr<Scope> parent) : parent_(std::move(parent)) {}
  const Value* find(std::string_view name) const;
  void set(const std::string& name, Value value);
  void clear() { values_.clear(); }

 private:
  std::shared_ptr<Scope> parent_;
  std::vector<std::pair<std::string, Value>> values_;
};
using ScopePtr = std::shared_ptr<Scope>;

class Namespace;

class Interpreter {
 public:
  // REQUIRES: context is a dict; tree outlives the interpreter.
  Interpreter(const Template& tree, const Value& context, std::optional<std::time_t> now);
  ~Interpreter();

  void run();  // throws Fault; line() says where
  int line() const { return line_; }
  std::string& output() { return *out_; }
  const std::vector<std::pair<size_t, size_t>>& generation_spans() const { return spans_; }

  // What filters, tests, methods and objects need.
  Budget& budget() { return budget_; }
  std::time_t now() const { return now_.has_value() ? *now_ : std::time(nullptr); }
  Value call(const Value& callee, Args& args);
  Value attribute(const Value& of, const std::string& name);  // a.b
  Value item(const Value& of, const Value& key);              // a[b]
  Value filter(const std::string& name, const Value& input, Args& args);
  bool test(const std::string& name, const Value& input, Args& args);
  std::string text(const Value& v) { return to_text(v, budget_); }
  Values items(const Value& v) { return items_of(v, budget_); }
  std::shared_ptr<Namespace> make_namespace();
  // A macro's or call block's body with arguments bound.
  Value call_macro(const Stmt& macro, const std::string& name, const ScopePtr& closure, Args& args);
  // The body of a recursive loop over further items.
  Value call_loop(const Stmt& loop, const ScopePtr& scope, const Value& iterable, int depth);

 private:
  class Deeper;
  enum class Flow { kNext, kBreak, kContinue };

  Flow run_block(const Block& block);
  Flow run_statement(const Stmt& stmt);
  Flow run_if(const Stmt& stmt);
  Flow run_for(const Stmt& stmt, const Value& iterable, int depth);
  void run_generation(const Stmt& stmt);
  void run_with(const Stmt& stmt);
  std::string capture(const Block& block);
  void assign(const Expr& target, const Value& value);
  void write(std::string_view text);

  Value eval(const Expr& e);
  Value eval_inner(const Expr& e);
  Value eval_literal(const Expr& e);
  Value eval_compare(const Expr& e);
  Value eval_slice(const Value& of, const Expr& slice);
  Value eval_call(const Expr& e);
  Value eval_filter(const Expr& e, const Value* innermost);
  Args eval_arguments(const Arguments& arguments);

  const Template& tree_;
  std::optional<std::time_t> now_;
  Budget budget_;
  ScopePtr scope_;
  std::string top_;           // the rendering's text
  std::string* out_ = &top_;  // where text goes now
  std::vector<std::pair<size_t, size_t>> spans_;
  int line_ = 1, depth_ = 0;
  // What may hold itself: emptied at the end so that it is freed.
  std::vector<std::shared_ptr<Namespace>> namespaces_;
  std::vector<ScopePtr> captured_;
};

// Python operators (operators.cpp).
Value binary_operation(std::string_view op, const Value& a, const Value& b, Budget& budget);
Value negate(const Value& v);
// a[start:stop:step] of a string, list or tuple; parts may be null.
Value slice_of(const Value& of, const Value* start, const Value* stop, const Value* step,
               Budget& budget);
// Python's printf-style and format-method templates (format.cpp).
std::string percent_format(const std::string& format, const Value& values,
                           Interpreter& interpreter);
std::string brace_format(const std::string& format, const Args& args, Interpreter& interpreter);

// Tables of built-in things; null when there is none of that name.
using FilterFunction = Value (*)(Interpreter&, const Value& input, Args& args);
using TestFunction = bool (*)(Interpreter&, const Value& input, Args& args);
using MethodFunction = Value (*)(Interpreter&, const Value& self, Args& args);
struct NamedFilter {
  std::string_view name;
  FilterFunction function;
};
struct NamedMethod {
  std::string_view name;
  MethodFunction function;  // null: exists in Python, but templates may not use it
};
FilterFunction find_filter(std::string_view name);
FilterFunction find_text_filter(std::string_view name);
FilterFunction find_select_filter(std::string_view name);
TestFunction find_test(std::string_view name);
const NamedMethod* find_string_method(std::string_view name);
const NamedMethod* find_container_method(const Value& container, std::string_view name);
Value make_bound_method(const Value& self, const NamedMethod& method);
Value make_macro(const Stmt& stmt, std::string name, ScopePtr closure);
void add_globals(Scope& scope);

class Namespace : public Object {
 public:
  std::string type_name() const override { return "Namespace"; }
  std::string repr() const override { return "<Namespace>"; }
  std::optional<Value> attribute(std::string_view name) override;
  void set(std::string_view name, Value value);
  void clear() { values_.clear(); }

 private:
  std::vector<std::pair<std::string, Value>> values_;
};

class Loop : public Object, public std::enable_shared_from_this<Loop> {
 public:
  Loop(const Stmt& stmt, ScopePtr scope, std::shared_ptr<const Values> items, int depth)
      : stmt_(stmt), scope_(std::move(scope)), items_(std::move(items)), depth_(depth) {}
  void move_to(size_t index) { index_ = index; }
  void finish() { seen_.reset(); }  // what changed() keeps may hold the loop itself
  std::string type_name() const override { return "LoopContext"; }
  std::string repr() const override;
  bool callable() const override { return stmt_.recursive; }
  Value call(Interpreter& interpreter, Args& args) override;
  std::optional<Value> attribute(std::string_view name) override;

 private:
  static Value changed(Interpreter& interpreter, const Value& self, Args& args);
  static Value cycle(Interpreter& interpreter, const Value& self, Args& args);

  const Stmt& stmt_;
  ScopePtr scope_;
  std::shared_ptr<const Values> items_;
  size_t index_ = 0;
  int depth_;
  std::optional<Values> seen_;  // what changed() saw last
};

}  // namespace loongforge::data::jinja
