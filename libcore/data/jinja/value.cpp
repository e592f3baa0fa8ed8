#include "data/jinja/value.h"

#include <algorithm>
#include <cmath>

#include "support/unicode.h"

namespace loongforge::data::jinja {
namespace {

using support::Json;

constexpr uint64_t kMaxSteps = 20'000'000;
constexpr uint64_t kMaxBytes = uint64_t{256} << 20;

int checked_nesting(int deepest) {
  if (deepest + 1 > kMaxNesting)
    fault("values nest more than " + std::to_string(kMaxNesting) + " deep");
  return deepest + 1;
}

// Exact: an int64 against a double without rounding the integer.
int compare_int_double(int64_t i, double d) {
  if (std::isnan(d)) return 2;
  if (d >= 9223372036854775808.0) return -1;
  if (d < -9223372036854775808.0) return 1;
  auto whole = static_cast<int64_t>(d);
  if (i != whole) return i < whole ? -1 : 1;
  double rest = d - static_cast<double>(whole);
  return rest > 0 ? -1 : rest < 0 ? 1 : 0;
}

int compare_numbers(const Value& a, const Value& b) {
  if (a.is_float() && b.is_float()) {
    double x = a.number(), y = b.number();
    return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
  }
  if (b.is_float()) return compare_int_double(a.integer(), b.number());
  if (a.is_float()) {
    int c = compare_int_double(b.integer(), a.number());
    return c == 2 ? 2 : -c;
  }
  int64_t x = a.integer(), y = b.integer();
  return x < y ? -1 : x > y;
}

bool equal_lists(const ListData& a, const ListData& b, Budget& budget) {
  if (&a == &b) return true;
  if (a.kind != b.kind || a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i)
    if (!equal(a.items[i], b.items[i], budget)) return false;
  return true;
}

bool equal_dicts(const DictData& a, const DictData& b, Budget& budget) {
  if (&a == &b) return true;
  if (a.items.size() != b.items.size()) return false;
  for (const auto& [key, value] : a.items) {
    budget.work(b.items.size());
    const Value* other = b.find(key);
    if (other == nullptr || !equal(value, *other, budget)) return false;
  }
  return true;
}

// Keys: hashable values only, so neither lists nor dicts (a tuple's items are compared one level
// deep).
bool equal_keys(const Value& a, const Value& b) {
  if (a.is_string() || b.is_string())
    return a.is_string() && b.is_string() && a.string() == b.string();
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.is_list() && b.is_list()) {
    const Values &x = a.list().items, &y = b.list().items;
    if (x.size() != y.size()) return false;
    for (size_t i = 0; i < x.size(); ++i)
      if (!equal_keys(x[i], y[i])) return false;
    return true;
  }
  return a.same_as(b);
}

void require_hashable(const Value& key) {
  if (key.is_dict() || (key.is_list() && key.list().kind == ListKind::kList))
    fault("a " + key.type_name() + " cannot be a key");
  if (key.is_list())
    for (const Value& item : key.list().items) require_hashable(item);
}

}  // namespace

void fault(std::string message, std::string hint) {
  throw Fault{std::move(message), std::move(hint)};
}

void Budget::work(uint64_t steps) {
  steps_ += steps;
  if (steps_ > kMaxSteps) fault("the template does not come to an end within its step limit");
}

void Budget::text(uint64_t bytes) {
  bytes_ += bytes;
  if (bytes_ > kMaxBytes)
    fault("the template makes too much text (" + std::to_string(kMaxBytes >> 20) + " MB)");
}

Value Value::undefined(std::string why) {
  Value v;
  v.v_ = Undefined{std::make_shared<const std::string>(std::move(why))};
  return v;
}

Value Value::from_json(const Json& json) {
  if (json.is_null()) return Value();
  if (json.is_bool()) return Value(json.as_bool());
  if (json.is_int()) return Value(json.as_int());
  if (json.is_double()) return Value(json.as_double());
  if (json.is_string()) return Value(json.as_string());
  if (json.is_array()) {
    Values items;
    items.reserve(json.as_array().size());
    for (const Json& item : json.as_array()) items.push_back(from_json(item));
    return make_list(std::move(items));
  }
  auto dict = std::make_shared<DictData>();
  int deepest = 0;
  dict->items.reserve(json.as_object().size());
  for (const auto& [key, value] : json.as_object()) {
    dict->items.emplace_back(Value(key), from_json(value));
    deepest = std::max(deepest, dict->items.back().second.nesting());
  }
  dict->nesting = checked_nesting(deepest);
  return Value(std::shared_ptr<const DictData>(std::move(dict)));
}

std::string Value::type_name() const {
  if (is_none()) return "NoneType";
  if (is_undefined()) return "Undefined";
  if (is_bool()) return "bool";
  if (is_int()) return "int";
  if (is_float()) return "float";
  if (is_string()) return "str";
  if (is_dict()) return "dict";
  if (is_object()) return object().type_name();
  switch (list().kind) {
    case ListKind::kTuple:
      return "tuple";
    case ListKind::kRange:
      return "range";
    case ListKind::kView:
      return list().label;
    case ListKind::kGenerator:
      return "generator";
    default:
      return "list";
  }
}

int Value::nesting() const {
  if (is_list()) return list().nesting;
  if (is_dict()) return dict().nesting;
  return is_object() ? object().nesting() : 0;
}

bool Value::same_as(const Value& other) const {
  if (v_.index() != other.v_.index()) return false;
  if (is_none()) return true;
  if (is_bool()) return boolean() == other.boolean();
  if (is_int()) return integer() == other.integer();
  if (is_float()) return number() == other.number();
  if (is_string())
    return string() == other.string();  // short strings and literals are shared in Python
  if (is_list()) return list_ptr() == other.list_ptr();
  if (is_dict()) return &dict() == &other.dict();
  if (is_object()) return object_ptr() == other.object_ptr();
  return std::get<Undefined>(v_).why == std::get<Undefined>(other.v_).why;
}

Value make_list(Values items, ListKind kind, std::string label) {
  auto list = std::make_shared<ListData>();
  int deepest = 0;
  for (const Value& item : items) deepest = std::max(deepest, item.nesting());
  list->nesting = checked_nesting(deepest);
  list->kind = kind;
  list->items = std::move(items);
  list->label = std::move(label);
  return Value(std::shared_ptr<const ListData>(std::move(list)));
}

Value make_named_tuple(Values items, std::vector<std::string> names) {
  Value made = make_tuple(std::move(items));
  auto list = std::make_shared<ListData>(made.list());
  list->names = std::move(names);
  return Value(std::shared_ptr<const ListData>(std::move(list)));
}

Value make_dict(Members items) {
  auto dict = std::make_shared<DictData>();
  int deepest = 0;
  for (auto& [key, value] : items) {
    require_hashable(key);
    deepest = std::max({deepest, value.nesting(), key.nesting()});
    if (const Value* known = dict->find(key)) {
      *const_cast<Value*>(known) = std::move(value);
    } else {
      dict->items.emplace_back(std::move(key), std::move(value));
    }
  }
  dict->nesting = checked_nesting(deepest);
  return Value(std::shared_ptr<const DictData>(std::move(dict)));
}

const Value* DictData::find(const Value& key) const {
  if (key.is_string()) return find_key(key.string());
  for (const auto& [known, value] : items)
    if (equal_keys(known, key)) return &value;
  return nullptr;
}

const Value* DictData::find_key(std::string_view key) const {
  for (const auto& [known, value] : items)
    if (known.is_string() && known.string() == key) return &value;
  return nullptr;
}

Value Object::call(Interpreter&, Args&) { fault("'" + type_name() + "' object is not callable"); }
std::optional<Value> Object::attribute(std::string_view) { return std::nullopt; }

bool truthy(const Value& v) {
  if (v.is_none() || v.is_undefined()) return false;
  if (v.is_bool()) return v.boolean();
  if (v.is_int()) return v.integer() != 0;
  if (v.is_float()) return v.number() != 0;
  if (v.is_string()) return !v.string().empty();
  if (v.is_list()) return v.list().kind == ListKind::kGenerator || !v.list().items.empty();
  return v.is_object() || !v.dict().items.empty();
}

bool equal(const Value& a, const Value& b, Budget& budget) {
  budget.work(1);
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.is_string() && b.is_string()) {
    budget.work(std::min(a.string().size(), b.string().size()) / 64);
    return a.string() == b.string();
  }
  if (a.is_list() && b.is_list()) return equal_lists(a.list(), b.list(), budget);
  if (a.is_dict() && b.is_dict()) return equal_dicts(a.dict(), b.dict(), budget);
  if (a.is_undefined() && b.is_undefined()) return true;
  return a.same_as(b);
}

int compare(const Value& a, const Value& b, Budget& budget) {
  budget.work(1);
  if (a.is_number() && b.is_number()) return compare_numbers(a, b);
  if (a.is_string() && b.is_string()) {
    budget.work(std::min(a.string().size(), b.string().size()) / 64);
    int c = a.string().compare(b.string());  // byte order of UTF-8 is code point order
    return c < 0 ? -1 : c > 0;
  }
  if (a.is_list() && b.is_list() && a.list().kind == b.list().kind &&
      a.list().kind <= ListKind::kTuple) {
    const Values &x = a.list().items, &y = b.list().items;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
      if (!equal(x[i], y[i], budget)) return compare(x[i], y[i], budget);
    return x.size() < y.size() ? -1 : x.size() > y.size();
  }
  for (const Value* v : {&a, &b})
    if (v->is_undefined()) fault(v->why_undefined());
  fault("'" + a.type_name() + "' and '" + b.type_name() + "' cannot be ordered");
}

bool contains(const Value& container, const Value& item, Budget& budget) {
  if (container.is_string()) {
    if (!item.is_string()) fault("'in' a string needs a string, not " + item.type_name());
    budget.work(container.string().size() / 64 + 1);
    return container.string().find(item.string()) != std::string::npos;
  }
  if (container.is_dict()) {
    budget.work(container.dict().items.size() / 8 + 1);
    require_hashable(item);
    return container.dict().find(item) != nullptr;
  }
  for (const Value& candidate : items_of(container, budget))
    if (equal(candidate, item, budget)) return true;
  return false;
}

Values items_of(const Value& v, Budget& budget) {
  Values items;
  if (v.is_undefined()) return items;
  if (v.is_list()) {
    const ListData& list = v.list();
    budget.work(list.items.size());
    if (list.kind != ListKind::kGenerator) return list.items;
    items.assign(list.items.begin() + static_cast<ptrdiff_t>(list.position), list.items.end());
    list.position = list.items.size();
    return items;
  }
  if (v.is_dict()) {
    budget.work(v.dict().items.size());
    for (const auto& member : v.dict().items) items.push_back(member.first);
    return items;
  }
  if (v.is_string()) {
    budget.work(v.string().size());
    for (std::string_view c : characters(v.string())) items.emplace_back(c);
    return items;
  }
  fault("'" + v.type_name() + "' object is not iterable");
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> all;
  all.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    int length;
    support::decode_utf8(text.data() + i, &length);
    all.push_back(text.substr(i, static_cast<size_t>(length)));
    i += static_cast<size_t>(length);
  }
  return all;
}

size_t length_of(const Value& v) {
  if (v.is_undefined()) return 0;
  if (v.is_string()) return support::count_code_points(v.string());
  if (v.is_list() && v.list().kind != ListKind::kGenerator) return v.list().items.size();
  if (v.is_dict()) return v.dict().items.size();
  fault("object of type '" + v.type_name() + "' has no length");
}

}  // namespace loongforge::data::jinja
