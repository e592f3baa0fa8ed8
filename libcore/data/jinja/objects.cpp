// Values with identity: namespaces, loops, macros, functions, cyclers; and the global names.
#include <ctime>

#include "data/jinja/arguments.h"
#include "data/jinja/interpreter.h"

namespace loongforge::data::jinja {
namespace {

constexpr int64_t kMaxRange = 100000;  // as in the sandbox of the reference

class Function : public Object {
 public:
  using Body = Value (*)(Interpreter&, Args&);
  Function(std::string name, Body body) : name_(std::move(name)), body_(body) {}
  std::string type_name() const override { return "function"; }
  std::string repr() const override { return "<function " + name_ + ">"; }
  bool callable() const override { return true; }
  Value call(Interpreter& interpreter, Args& args) override { return body_(interpreter, args); }

 private:
  std::string name_;
  Body body_;
};

class BoundMethod : public Object {
 public:
  BoundMethod(Value self, const NamedMethod& method) : self_(std::move(self)), method_(method) {}
  std::string type_name() const override { return "builtin_function_or_method"; }
  std::string repr() const override {
    return "<built-in method " + std::string(method_.name) + " of " + self_.type_name() +
           " object>";
  }
  int nesting() const override { return self_.nesting() + 1; }
  bool callable() const override { return true; }
  Value call(Interpreter& interpreter, Args& args) override {
    return method_.function(interpreter, self_, args);
  }

 private:
  Value self_;
  NamedMethod method_;
};

class Macro : public Object {
 public:
  Macro(const Stmt& stmt, std::string name, ScopePtr closure)
      : stmt_(stmt), name_(std::move(name)), closure_(std::move(closure)) {}
  std::string type_name() const override { return "Macro"; }
  std::string repr() const override { return "<Macro '" + name_ + "'>"; }
  bool callable() const override { return true; }
  Value call(Interpreter& interpreter, Args& args) override {
    return interpreter.call_macro(stmt_, name_, closure_, args);
  }
  std::optional<Value> attribute(std::string_view name) override {
    if (name == "name") return Value(name_);
    if (name == "catch_varargs") return Value(stmt_.uses_varargs);
    if (name == "catch_kwargs") return Value(stmt_.uses_kwargs);
    if (name != "arguments") return std::nullopt;
    Values names;
    for (const Parameter& p : stmt_.parameters) names.emplace_back(p.name);
    return make_tuple(std::move(names));
  }

 private:
  const Stmt& stmt_;
  std::string name_;
  ScopePtr closure_;
};

class Cycler : public Object, public std::enable_shared_from_this<Cycler> {
 public:
  explicit Cycler(Values items) : list_(make_list(std::move(items))) {}
  std::string type_name() const override { return "Cycler"; }
  std::string repr() const override { return "<Cycler>"; }
  int nesting() const override { return list_.nesting() + 1; }
  std::optional<Value> attribute(std::string_view name) override;

 private:
  static Value next(Interpreter& interpreter, const Value& self, Args& args);
  static Value reset(Interpreter& interpreter, const Value& self, Args& args);
  const Value& current() const { return list_.list().items[at_]; }

  Value list_;
  size_t at_ = 0;
};

class Joiner : public Object {
 public:
  explicit Joiner(std::string separator) : separator_(std::move(separator)) {}
  std::string type_name() const override { return "Joiner"; }
  std::string repr() const override { return "<Joiner>"; }
  bool callable() const override { return true; }
  Value call(Interpreter&, Args& args) override {
    Parameters(args, "joiner", {});
    return Value(std::exchange(used_, true) ? separator_ : std::string());
  }

 private:
  std::string separator_;
  bool used_ = false;
};

Value make_range(Interpreter& interpreter, Args& args) {
  if (args.positional.empty() || args.positional.size() > 3 || !args.named.empty())
    fault("range takes 1 to 3 integers");
  int64_t parts[3] = {0, 0, 1};
  for (size_t i = 0; i < args.positional.size(); ++i) {
    if (!args.positional[i].is_integral())
      fault("range takes integers, not " + args.positional[i].type_name());
    parts[i] = args.positional[i].integer();
  }
  if (args.positional.size() == 1) std::swap(parts[0], parts[1]);
  auto [from, to, by] = std::tuple(parts[0], parts[1], parts[2]);
  if (by == 0) fault("range's step cannot be zero");
  std::string label = "range(" + std::to_string(from) + ", " + std::to_string(to) +
                      (by == 1 ? "" : ", " + std::to_string(by)) + ")";
  Values items;
  for (int64_t i = from; by > 0 ? i < to : i > to;) {
    if (static_cast<int64_t>(items.size()) >= kMaxRange)
      fault("a range of more than " + std::to_string(kMaxRange) + " numbers");
    items.emplace_back(i);
    if (__builtin_add_overflow(i, by, &i)) break;
  }
  interpreter.budget().work(items.size());
  return make_list(std::move(items), ListKind::kRange, std::move(label));
}

// The members of dict(...), namespace(...): a mapping or pairs, then names.
Members members_of(Interpreter& interpreter, Args& args, const char* what) {
  Members members;
  if (args.positional.size() > 1) fault(std::string(what) + " takes one mapping and names");
  if (!args.positional.empty()) {
    const Value& source = args.positional[0];
    if (source.is_dict()) {
      members = source.dict().items;
    } else {
      for (const Value& pair : interpreter.items(source)) {
        Values both = interpreter.items(pair);
        if (both.size() != 2) fault(std::string(what) + " needs pairs of key and value");
        members.emplace_back(both[0], both[1]);
      }
    }
  }
  for (auto& [name, value] : args.named) members.emplace_back(Value(name), value);
  interpreter.budget().work(members.size() * members.size() / 8 + 1);
  return members;
}

Value make_namespace_value(Interpreter& interpreter, Args& args) {
  auto space = interpreter.make_namespace();
  for (auto& [key, value] : members_of(interpreter, args, "namespace")) {
    if (!key.is_string()) fault("namespace needs names");
    space->set(key.string(), value);
  }
  return Value(std::shared_ptr<Object>(space));
}

Value raise_exception(Interpreter& interpreter, Args& args) {
  Parameters p(args, "raise_exception", {"message"});
  fault(interpreter.text(p.require(0)));
}

Value strftime_now(Interpreter& interpreter, Args& args) {
  Parameters p(args, "strftime_now", {"format"});
  std::string format = p.require(0).is_string() ? p.require(0).string() : p.text(0, "");
  if (format.empty()) return Value("");
  std::time_t now = interpreter.now();
  std::tm local{};
  localtime_r(&now, &local);
  std::string text(format.size() * 32 + 64, '\0');
  text.resize(std::strftime(text.data(), text.size(), format.c_str(), &local));
  return Value(std::move(text));
}

}  // namespace

std::optional<Value> Namespace::attribute(std::string_view name) {
  for (const auto& [known, value] : values_)
    if (known == name) return value;
  return std::nullopt;
}

void Namespace::set(std::string_view name, Value value) {
  for (auto& [known, old] : values_) {
    if (known != name) continue;
    old = std::move(value);
    return;
  }
  values_.emplace_back(std::string(name), std::move(value));
}

std::optional<Value> Cycler::attribute(std::string_view name) {
  static constexpr NamedMethod kNext{"next", &Cycler::next}, kReset{"reset", &Cycler::reset};
  if (name == "current") return current();
  if (name != "next" && name != "reset") return std::nullopt;
  Value self{std::shared_ptr<Object>(shared_from_this())};
  return make_bound_method(self, name == "next" ? kNext : kReset);
}

Value Cycler::next(Interpreter&, const Value& self, Args& args) {
  Parameters(args, "cycler.next", {});
  auto& cycler = static_cast<Cycler&>(self.object());
  Value value = cycler.current();
  cycler.at_ = (cycler.at_ + 1) % cycler.list_.list().items.size();
  return value;
}

Value Cycler::reset(Interpreter&, const Value& self, Args& args) {
  Parameters(args, "cycler.reset", {});
  static_cast<Cycler&>(self.object()).at_ = 0;
  return Value();
}

std::string Loop::repr() const {
  return "<LoopContext " + std::to_string(index_ + 1) + "/" + std::to_string(items_->size()) + ">";
}

Value Loop::call(Interpreter& interpreter, Args& args) {
  if (!stmt_.recursive) fault("the loop is not marked as recursive");
  Parameters p(args, "loop", {"iterable"});
  return interpreter.call_loop(stmt_, scope_, p.require(0), depth_ + 1);
}

std::optional<Value> Loop::attribute(std::string_view name) {
  size_t n = items_->size();
  if (name == "index") return Value(index_ + 1);
  if (name == "index0") return Value(index_);
  if (name == "revindex") return Value(n - index_);
  if (name == "revindex0") return Value(n - index_ - 1);
  if (name == "first") return Value(index_ == 0);
  if (name == "last") return Value(index_ + 1 == n);
  if (name == "length") return Value(n);
  if (name == "depth") return Value(depth_ + 1);
  if (name == "depth0") return Value(depth_);
  if (name == "previtem")
    return index_ > 0 ? (*items_)[index_ - 1] : Value::undefined("there is no previous item");
  if (name == "nextitem")
    return index_ + 1 < n ? (*items_)[index_ + 1] : Value::undefined("there is no next item");
  static constexpr NamedMethod kChanged{"changed", &Loop::changed}, kCycle{"cycle", &Loop::cycle};
  Value self{std::shared_ptr<Object>(shared_from_this())};
  if (name == "changed") return make_bound_method(self, kChanged);
  if (name == "cycle") return make_bound_method(self, kCycle);
  return std::nullopt;
}

Value Loop::changed(Interpreter& interpreter, const Value& self, Args& args) {
  auto& loop = static_cast<Loop&>(self.object());
  bool same = loop.seen_.has_value() && loop.seen_->size() == args.positional.size();
  for (size_t i = 0; same && i < args.positional.size(); ++i)
    same = equal((*loop.seen_)[i], args.positional[i], interpreter.budget());
  if (!same) loop.seen_ = args.positional;
  return Value(!same);
}

Value Loop::cycle(Interpreter&, const Value& self, Args& args) {
  if (args.positional.empty()) fault("loop.cycle needs something to cycle through");
  return args.positional[static_cast<Loop&>(self.object()).index_ % args.positional.size()];
}

Value make_bound_method(const Value& self, const NamedMethod& method) {
  return Value(std::shared_ptr<Object>(std::make_shared<BoundMethod>(self, method)));
}

Value make_macro(const Stmt& stmt, std::string name, ScopePtr closure) {
  return Value(
      std::shared_ptr<Object>(std::make_shared<Macro>(stmt, std::move(name), std::move(closure))));
}

void add_globals(Scope& scope) {
  auto add = [&](const char* name, Function::Body body) {
    scope.set(name, Value(std::shared_ptr<Object>(std::make_shared<Function>(name, body))));
  };
  add("range", make_range);
  add("namespace", make_namespace_value);
  add("raise_exception", raise_exception);
  add("strftime_now", strftime_now);
  add("dict", [](Interpreter& interpreter, Args& args) {
    return make_dict(members_of(interpreter, args, "dict"));
  });
  add("joiner", [](Interpreter&, Args& args) {
    Parameters p(args, "joiner", {"sep"});
    return Value(std::shared_ptr<Object>(std::make_shared<Joiner>(p.text(0, ", "))));
  });
  add("cycler", [](Interpreter&, Args& args) {
    if (args.positional.empty()) fault("cycler needs something to cycle through");
    return Value(std::shared_ptr<Object>(std::make_shared<Cycler>(args.positional)));
  });
}

}  // namespace loongforge::data::jinja
