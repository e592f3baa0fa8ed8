// The interpreter's expressions: names, literals, calls, attributes and subscripts.
#include "data/jinja/interpreter.h"

namespace loongforge::data::jinja {
namespace {

constexpr int kMaxExpressionDepth = 900;

}  // namespace

Value Interpreter::eval(const Expr& e) {
  if (++depth_ > kMaxExpressionDepth) fault("the template recurses too deep");
  budget_.work(1);
  line_ = e.line;
  Value v = eval_inner(e);
  --depth_;
  return v;
}

Value Interpreter::eval_inner(const Expr& e) {
  switch (e.kind) {
    case ExprKind::kConst:
      return e.constant;
    case ExprKind::kName: {
      const Value* value = scope_->find(e.name);
      return value != nullptr ? *value : Value::undefined("'" + e.name + "' is undefined");
    }
    case ExprKind::kTuple:
    case ExprKind::kList:
    case ExprKind::kDict:
      return eval_literal(e);
    case ExprKind::kAttribute: {
      Value of = eval(*e.kids[0]);
      line_ = e.line;
      return attribute(of, e.name);
    }
    case ExprKind::kItem: {
      Value of = eval(*e.kids[0]);
      if (e.kids[1]->kind == ExprKind::kSlice) return eval_slice(of, *e.kids[1]);
      Value key = eval(*e.kids[1]);
      line_ = e.line;
      return item(of, key);
    }
    case ExprKind::kSlice:
      fault("a slice stands among several subscripts");
    case ExprKind::kCall:
      return eval_call(e);
    case ExprKind::kFilter:
      return eval_filter(e, nullptr);
    case ExprKind::kTest: {
      Value input = eval(*e.kids[0]);
      Args args = eval_arguments(e.arguments);
      line_ = e.line;
      return Value(test(e.name, input, args));
    }
    case ExprKind::kCondition:
      if (truthy(eval(*e.kids[0]))) return eval(*e.kids[1]);
      if (e.kids[2] != nullptr) return eval(*e.kids[2]);
      return Value::undefined("an inline if without else had a false condition");
    case ExprKind::kAnd:
    case ExprKind::kOr: {
      Value value;
      for (const ExprPtr& kid : e.kids) {
        value = eval(*kid);
        if (truthy(value) == (e.kind == ExprKind::kOr)) break;
      }
      return value;
    }
    case ExprKind::kNot:
      return Value(!truthy(eval(*e.kids[0])));
    case ExprKind::kNegate:
    case ExprKind::kPlus: {
      Value value = eval(*e.kids[0]);
      line_ = e.line;
      Value negated = negate(value);  // also checks that it is a number
      return e.kind == ExprKind::kNegate ? negated : negate(negated);
    }
    case ExprKind::kCompare:
      return eval_compare(e);
    case ExprKind::kBinary: {
      Value a = eval(*e.kids[0]);
      Value b = eval(*e.kids[1]);
      line_ = e.line;
      if (e.name == "%" && a.is_string()) return Value(percent_format(a.string(), b, *this));
      return binary_operation(e.name, a, b, budget_);
    }
    case ExprKind::kConcat: {
      std::string joined;
      for (const ExprPtr& kid : e.kids) joined += to_text(eval(*kid), budget_);
      return Value(std::move(joined));
    }
    case ExprKind::kNamespaceTarget:
      break;
  }
  fault("an assignment stands where a value is needed");
}

Value Interpreter::eval_literal(const Expr& e) {
  if (e.kind == ExprKind::kDict) {
    Members members;
    for (size_t i = 0; i + 1 < e.kids.size(); i += 2) {
      Value key = eval(*e.kids[i]);
      members.emplace_back(std::move(key), eval(*e.kids[i + 1]));
    }
    return make_dict(std::move(members));
  }
  Values items;
  for (const ExprPtr& kid : e.kids) items.push_back(eval(*kid));
  return make_list(std::move(items),
                   e.kind == ExprKind::kTuple ? ListKind::kTuple : ListKind::kList);
}

Value Interpreter::eval_compare(const Expr& e) {
  Value left = eval(*e.kids[0]);
  for (size_t i = 0; i < e.ops.size(); ++i) {
    Value right = eval(*e.kids[i + 1]);
    line_ = e.line;
    const std::string& op = e.ops[i];
    bool holds;
    if (op == "==" || op == "!=") {
      holds = equal(left, right, budget_) == (op == "==");
    } else if (op == "in" || op == "not in") {
      holds = contains(right, left, budget_) == (op == "in");
    } else {
      int order = compare(left, right, budget_);
      holds = order != 2 && (op == "<"    ? order < 0
                             : op == "<=" ? order <= 0
                             : op == ">"  ? order > 0
                                          : order >= 0);
    }
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Value Interpreter::eval_slice(const Value& of, const Expr& slice) {
  Value parts[3];
  const Value* given[3] = {nullptr, nullptr, nullptr};
  for (size_t i = 0; i < 3; ++i) {
    if (slice.kids[i] == nullptr) continue;
    parts[i] = eval(*slice.kids[i]);
    if (!parts[i].is_none()) given[i] = &parts[i];
  }
  line_ = slice.line;
  return slice_of(of, given[0], given[1], given[2], budget_);
}

Args Interpreter::eval_arguments(const Arguments& arguments) {
  Args args;
  for (const ExprPtr& e : arguments.positional) args.positional.push_back(eval(*e));
  if (arguments.rest != nullptr)
    for (Value& v : items_of(eval(*arguments.rest), budget_))
      args.positional.push_back(std::move(v));
  for (const auto& [name, e] : arguments.named) args.named.emplace_back(name, eval(*e));
  if (arguments.rest_named != nullptr) {
    Value rest = eval(*arguments.rest_named);
    if (!rest.is_dict()) fault("** needs a dict, not " + rest.type_name());
    for (const auto& [key, value] : rest.dict().items) {
      if (!key.is_string()) fault("** needs a dict with names as keys");
      args.named.emplace_back(key.string(), value);
    }
  }
  return args;
}

Value Interpreter::eval_call(const Expr& e) {
  Value callee = eval(*e.kids[0]);
  Args args = eval_arguments(e.arguments);
  line_ = e.line;
  return call(callee, args);
}

Value Interpreter::eval_filter(const Expr& e, const Value* innermost) {
  Value input = e.kids.empty() ? *innermost
                               : (innermost != nullptr && e.kids[0]->kind == ExprKind::kFilter
                                      ? eval_filter(*e.kids[0], innermost)
                                      : eval(*e.kids[0]));
  Args args = eval_arguments(e.arguments);
  line_ = e.line;
  return filter(e.name, input, args);
}

Value Interpreter::call(const Value& callee, Args& args) {
  if (callee.is_undefined()) fault(callee.why_undefined());
  if (!callee.is_object()) fault("'" + callee.type_name() + "' object is not callable");
  budget_.work(1);
  auto keep = callee.object_ptr();
  return keep->call(*this, args);
}

Value Interpreter::attribute(const Value& of, const std::string& name) {
  if (of.is_undefined()) fault(of.why_undefined());
  // What the sandbox hides is undefined, so that it fails when used and not when looked at.
  if (name.starts_with("__"))
    return Value::undefined("attribute '" + name + "' is not allowed in templates");
  const NamedMethod* method = nullptr;
  if (of.is_string()) method = find_string_method(name);
  if (of.is_dict() || of.is_list()) method = find_container_method(of, name);
  if (method != nullptr && method->function != nullptr) return make_bound_method(of, *method);
  if (method != nullptr)
    return Value::undefined("method '" + name + "' of '" + of.type_name() +
                            "' is not allowed in templates");
  if (of.is_dict())
    if (const Value* value = of.dict().find_key(name)) return *value;
  if (of.is_list()) {
    const auto& names = of.list().names;
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] == name) return of.list().items[i];
  }
  if (of.is_object())
    if (auto value = of.object().attribute(name)) return *value;
  return Value::undefined("'" + of.type_name() + " object' has no attribute '" + name + "'");
}

Value Interpreter::item(const Value& of, const Value& key) {
  if (of.is_undefined()) fault(of.why_undefined());
  if (of.is_dict()) {
    budget_.work(of.dict().items.size() / 8);
    if (key.is_list() || key.is_dict()) {
      // Only tuples can be keys; anything else is simply not there.
      if (key.is_dict() || key.list().kind == ListKind::kList)
        return Value::undefined("'dict object' has no such element");
    }
    if (const Value* value = of.dict().find(key)) return *value;
  }
  if (key.is_string()) return attribute(of, key.string());
  if (key.is_integral() && (of.is_string() || of.is_list()) &&
      !(of.is_list() && of.list().kind >= ListKind::kView)) {
    auto size = static_cast<int64_t>(length_of(of));
    int64_t index = key.integer() < 0 ? key.integer() + size : key.integer();
    if (index >= 0 && index < size) {
      if (of.is_list()) return of.list().items[static_cast<size_t>(index)];
      const std::string& text = of.string();
      budget_.work(text.size() / 16);
      if (size == static_cast<int64_t>(text.size()))
        return Value(text.substr(static_cast<size_t>(index), 1));
      return Value(characters(text)[static_cast<size_t>(index)]);
    }
  }
  return Value::undefined("'" + of.type_name() + " object' has no element " + repr(key, budget_));
}

Value Interpreter::filter(const std::string& name, const Value& input, Args& args) {
  FilterFunction function = find_filter(name);
  if (function == nullptr) function = find_text_filter(name);
  if (function == nullptr) function = find_select_filter(name);
  if (function == nullptr) fault("filter '" + name + "' is not supported");
  budget_.work(1);
  return function(*this, input, args);
}

bool Interpreter::test(const std::string& name, const Value& input, Args& args) {
  TestFunction function = find_test(name);
  if (function == nullptr) fault("test 'is " + name + "' is not supported");
  return function(*this, input, args);
}

}  // namespace loongforge::data::jinja
