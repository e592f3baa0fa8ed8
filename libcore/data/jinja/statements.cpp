// The interpreter's statements and scopes. A Fault ends the rendering, so nothing is restored on
// its way.
#include <algorithm>

#include "data/jinja/interpreter.h"

namespace loongforge::data::jinja {
namespace {

constexpr int kMaxDepth = 900;
constexpr size_t kMaxNamespaces = 10000;

}  // namespace

class Interpreter::Deeper {
 public:
  explicit Deeper(Interpreter& interpreter) : interpreter_(interpreter) {
    if (++interpreter.depth_ > kMaxDepth) fault("the template recurses too deep");
    interpreter.budget_.work(1);
  }
  ~Deeper() { --interpreter_.depth_; }

 private:
  Interpreter& interpreter_;
};

const Value* Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent_.get())
    for (const auto& [known, value] : scope->values_)
      if (known == name) return &value;
  return nullptr;
}

void Scope::set(const std::string& name, Value value) {
  for (auto& [known, old] : values_) {
    if (known != name) continue;
    old = std::move(value);
    return;
  }
  values_.emplace_back(name, std::move(value));
}

Interpreter::Interpreter(const Template& tree, const Value& context, std::optional<std::time_t> now)
    : tree_(tree), now_(now) {
  auto globals = std::make_shared<Scope>(nullptr);
  add_globals(*globals);
  scope_ = std::make_shared<Scope>(globals);
  for (const auto& [name, value] : context.dict().items) scope_->set(name.string(), value);
}

Interpreter::~Interpreter() {
  for (const auto& space : namespaces_) space->clear();
  for (const auto& scope : captured_) scope->clear();
}

void Interpreter::run() { run_block(tree_.body); }

void Interpreter::write(std::string_view text) {
  budget_.text(text.size());
  *out_ += text;
}

std::shared_ptr<Namespace> Interpreter::make_namespace() {
  if (namespaces_.size() >= kMaxNamespaces) fault("the template makes too many namespaces");
  namespaces_.push_back(std::make_shared<Namespace>());
  return namespaces_.back();
}

Interpreter::Flow Interpreter::run_block(const Block& block) {
  Deeper deeper(*this);
  for (const auto& stmt : block)
    if (Flow flow = run_statement(*stmt); flow != Flow::kNext) return flow;
  return Flow::kNext;
}

// Runs a block in a scope of its own, its text kept apart.
std::string Interpreter::capture(const Block& block) {
  std::string text;
  std::string* outer = std::exchange(out_, &text);
  ScopePtr scope = std::exchange(scope_, std::make_shared<Scope>(scope_));
  run_block(block);
  out_ = outer;
  scope_ = scope;
  return text;
}

Interpreter::Flow Interpreter::run_statement(const Stmt& stmt) {
  line_ = stmt.line;
  budget_.work(1);
  switch (stmt.kind) {
    case StmtKind::kText:
      write(stmt.text);
      return Flow::kNext;
    case StmtKind::kOutput:
      for (const ExprPtr& e : stmt.exprs) write(to_text(eval(*e), budget_));
      return Flow::kNext;
    case StmtKind::kIf:
      return run_if(stmt);
    case StmtKind::kFor:
      return run_for(stmt, eval(*stmt.iterable), 0);
    case StmtKind::kSet:
      assign(*stmt.targets[0], eval(*stmt.exprs[0]));
      return Flow::kNext;
    case StmtKind::kSetBlock: {
      Value text(capture(stmt.bodies[0]));
      line_ = stmt.line;
      assign(*stmt.targets[0], stmt.filter == nullptr ? text : eval_filter(*stmt.filter, &text));
      return Flow::kNext;
    }
    case StmtKind::kMacro:
      captured_.push_back(scope_);
      scope_->set(stmt.text, make_macro(stmt, stmt.text, scope_));
      return Flow::kNext;
    case StmtKind::kCallBlock: {
      const Expr& call_expr = *stmt.exprs[0];
      Value callee = eval(*call_expr.kids[0]);
      Args args = eval_arguments(call_expr.arguments);
      captured_.push_back(scope_);
      args.named.emplace_back("caller", make_macro(stmt, "caller", scope_));
      line_ = stmt.line;
      write(to_text(call(callee, args), budget_));
      return Flow::kNext;
    }
    case StmtKind::kFilterBlock: {
      Value text(capture(stmt.bodies[0]));
      line_ = stmt.line;
      write(to_text(eval_filter(*stmt.filter, &text), budget_));
      return Flow::kNext;
    }
    case StmtKind::kWith:
      run_with(stmt);
      return Flow::kNext;
    case StmtKind::kGeneration:
      run_generation(stmt);
      return Flow::kNext;
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run_if(const Stmt& stmt) {
  for (size_t i = 0; i < stmt.exprs.size(); ++i)
    if (truthy(eval(*stmt.exprs[i]))) return run_block(stmt.bodies[i]);
  return stmt.bodies.size() > stmt.exprs.size() ? run_block(stmt.bodies.back()) : Flow::kNext;
}

Interpreter::Flow Interpreter::run_for(const Stmt& stmt, const Value& iterable, int depth) {
  Deeper deeper(*this);
  line_ = stmt.line;
  Values all = items_of(iterable, budget_);
  ScopePtr outer = scope_;
  if (stmt.condition != nullptr) {
    Values kept;
    for (Value& item : all) {
      scope_ = std::make_shared<Scope>(outer);
      assign(*stmt.targets[0], item);
      if (truthy(eval(*stmt.condition))) kept.push_back(std::move(item));
    }
    all = std::move(kept);
  }
  auto items = std::make_shared<const Values>(std::move(all));
  auto loop = std::make_shared<Loop>(stmt, outer, items, depth);
  for (size_t i = 0; i < items->size(); ++i) {
    scope_ = std::make_shared<Scope>(outer);
    loop->move_to(i);
    scope_->set("loop", Value(std::shared_ptr<Object>(loop)));
    assign(*stmt.targets[0], (*items)[i]);
    if (run_block(stmt.bodies[0]) == Flow::kBreak) break;
  }
  loop->finish();
  scope_ = outer;
  if (items->empty() && stmt.bodies.size() > 1) {
    // The else branch has a scope of its own as well; break and continue in it belong to the loop
    // around.
    scope_ = std::make_shared<Scope>(outer);
    Flow flow = run_block(stmt.bodies[1]);
    scope_ = outer;
    return flow;
  }
  return Flow::kNext;
}

Value Interpreter::call_loop(const Stmt& loop, const ScopePtr& scope, const Value& iterable,
                             int depth) {
  std::string text;
  std::string* outer = std::exchange(out_, &text);
  ScopePtr before = std::exchange(scope_, scope);
  run_for(loop, iterable, depth);
  out_ = outer;
  scope_ = before;
  return Value(std::move(text));
}

void Interpreter::run_with(const Stmt& stmt) {
  ScopePtr outer = scope_;
  auto inner = std::make_shared<Scope>(outer);
  // Values see the names around the block, not each other.
  Values values;
  for (const ExprPtr& e : stmt.exprs) values.push_back(eval(*e));
  scope_ = inner;
  for (size_t i = 0; i < values.size(); ++i) assign(*stmt.targets[i], values[i]);
  run_block(stmt.bodies[0]);
  scope_ = outer;
}

void Interpreter::run_generation(const Stmt& stmt) {
  if (out_ != &top_)
    fault("{% generation %} inside a macro, call, set or filter block is not supported",
          "its text's place in the rendering is not known");
  std::string text = capture(stmt.bodies[0]);
  size_t begin = top_.size();
  top_ += text;
  spans_.emplace_back(begin, top_.size());
}

void Interpreter::assign(const Expr& target, const Value& value) {
  switch (target.kind) {
    case ExprKind::kName:
      scope_->set(target.name, value);
      return;
    case ExprKind::kNamespaceTarget: {
      const Value* holder = scope_->find(target.name);
      auto* space = holder != nullptr && holder->is_object()
                        ? dynamic_cast<Namespace*>(&holder->object())
                        : nullptr;
      line_ = target.line;
      if (space == nullptr)
        fault("'" + target.name + "' is no namespace, so its attributes cannot be set");
      space->set(target.attribute, value);
      return;
    }
    default: {
      line_ = target.line;
      Values items = items_of(value, budget_);
      if (items.size() != target.kids.size())
        fault(std::to_string(items.size()) + " values cannot be unpacked into " +
              std::to_string(target.kids.size()) + " names");
      for (size_t i = 0; i < items.size(); ++i) assign(*target.kids[i], items[i]);
    }
  }
}

Value Interpreter::call_macro(const Stmt& macro, const std::string& name, const ScopePtr& closure,
                              Args& args) {
  Deeper deeper(*this);
  ScopePtr before = scope_;
  auto scope = std::make_shared<Scope>(closure);
  size_t count = macro.parameters.size();
  std::vector<bool> bound(count, false);
  for (size_t i = 0; i < std::min(count, args.positional.size()); ++i) {
    scope->set(macro.parameters[i].name, args.positional[i]);
    bound[i] = true;
  }
  if (args.positional.size() > count && !macro.uses_varargs)
    fault("macro '" + name + "' takes not more than " + std::to_string(count) + " arguments");
  Values varargs;
  for (size_t i = count; i < args.positional.size(); ++i) varargs.push_back(args.positional[i]);
  Members kwargs;
  Value caller = Value::undefined("no caller is defined");
  for (auto& [key, value] : args.named) {
    auto at = std::find_if(macro.parameters.begin(), macro.parameters.end(),
                           [&](const Parameter& p) { return p.name == key; });
    auto index = static_cast<size_t>(at - macro.parameters.begin());
    if (index < count) {
      if (bound[index]) fault("macro '" + name + "' got its argument '" + key + "' twice");
      bound[index] = true;
      scope->set(key, value);
    } else if (key == "caller") {
      caller = value;
    } else if (macro.uses_kwargs) {
      kwargs.emplace_back(Value(key), value);
    } else {
      fault("macro '" + name + "' takes no keyword argument '" + key + "'");
    }
  }
  scope->set("caller", caller);
  if (macro.uses_varargs) scope->set("varargs", make_tuple(std::move(varargs)));
  if (macro.uses_kwargs) scope->set("kwargs", make_dict(std::move(kwargs)));
  scope_ = scope;
  for (size_t i = 0; i < count; ++i) {
    const Parameter& p = macro.parameters[i];
    if (bound[i]) continue;
    scope->set(p.name, p.otherwise != nullptr
                           ? eval(*p.otherwise)
                           : Value::undefined("parameter '" + p.name + "' was not provided"));
  }
  std::string text = capture(macro.bodies[0]);
  scope_ = before;
  return Value(std::move(text));
}

}  // namespace loongforge::data::jinja
