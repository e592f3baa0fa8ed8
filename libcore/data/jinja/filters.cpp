// Filters on values of any kind: defaults, sequences, numbers, JSON.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "data/jinja/arguments.h"
#include "data/jinja/interpreter.h"
#include "data/jinja/strings.h"

namespace loongforge::data::jinja {
namespace {

Value default_filter(Interpreter&, const Value& input, Args& args) {
  Parameters p(args, "filter default", {"default_value", "boolean"});
  bool missing = input.is_undefined() || (p.boolean(1, false) && !truthy(input));
  if (!missing) return input;
  return p.get(0) != nullptr ? *p.get(0) : Value("");
}

Value length_filter(Interpreter&, const Value& input, Args& args) {
  Parameters(args, "filter length", {});
  return Value(length_of(input));
}

Value first_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters(args, "filter first", {});
  if (input.is_list() && input.list().kind == ListKind::kGenerator) {
    const ListData& list = input.list();
    if (list.position < list.items.size()) return list.items[list.position++];
    return Value::undefined("the sequence has no first item");
  }
  Values items = interpreter.items(input);
  return items.empty() ? Value::undefined("the sequence has no first item") : items.front();
}

Value last_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters(args, "filter last", {});
  if (input.is_list() && input.list().kind == ListKind::kGenerator)
    fault("'generator' object is not reversible");
  Values items = interpreter.items(input);
  return items.empty() ? Value::undefined("the sequence has no last item") : items.back();
}

Value list_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters(args, "filter list", {});
  return make_list(interpreter.items(input));
}

Value items_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters(args, "filter items", {});
  Values pairs;
  if (!input.is_undefined()) {
    if (!input.is_dict()) fault("filter items needs a mapping, not " + input.type_name());
    interpreter.budget().work(input.dict().items.size());
    for (const auto& [key, value] : input.dict().items) pairs.push_back(make_tuple({key, value}));
  }
  return make_list(std::move(pairs), ListKind::kGenerator, "do_items");
}

Value reverse_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters(args, "filter reverse", {});
  Values items = interpreter.items(input);
  std::reverse(items.begin(), items.end());
  if (!input.is_string()) return make_list(std::move(items), ListKind::kGenerator, "reverse");
  std::string text;
  for (const Value& c : items) text += c.string();
  return Value(std::move(text));
}

Value int_filter(Interpreter&, const Value& input, Args& args) {
  Parameters p(args, "filter int", {"default", "base"});
  Value otherwise = p.get(0) != nullptr ? *p.get(0) : Value(0);
  double number = 0;
  if (input.is_integral()) return Value(input.integer());
  if (input.is_float()) {
    number = input.number();
  } else if (input.is_string()) {
    if (auto whole = parse_int(input.string(), static_cast<int>(p.integer(1, 10))))
      return Value(*whole);
    auto parsed = parse_float(input.string());
    if (!parsed.has_value()) return otherwise;
    number = *parsed;
  } else {
    return otherwise;
  }
  if (!(std::fabs(number) < 9.2e18)) {
    if (std::isnan(number) || std::isinf(number)) return otherwise;
    fault("an integer leaves the range of 64 bits");
  }
  return Value(static_cast<int64_t>(number));
}

Value float_filter(Interpreter&, const Value& input, Args& args) {
  Parameters p(args, "filter float", {"default"});
  if (input.is_number()) return Value(input.number());
  if (input.is_string())
    if (auto parsed = parse_float(input.string())) return Value(*parsed);
  return p.get(0) != nullptr ? *p.get(0) : Value(0.0);
}

Value abs_filter(Interpreter&, const Value& input, Args& args) {
  Parameters(args, "filter abs", {});
  if (!input.is_number()) fault("filter abs needs a number, not " + input.type_name());
  if (input.is_float()) return Value(std::fabs(input.number()));
  return input.integer() < 0 ? negate(input) : Value(input.integer());
}

// round() of Python: correct decimal rounding, halves to even.
double round_to(double value, int64_t precision) {
  if (!std::isfinite(value) || precision > 300) return value;
  if (precision < 0) {
    double scale = std::pow(10.0, static_cast<double>(-precision));
    return std::nearbyint(value / scale) * scale;
  }
  char buffer[700];
  std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(precision), value);
  return std::strtod(buffer, nullptr);
}

Value round_filter(Interpreter&, const Value& input, Args& args) {
  Parameters p(args, "filter round", {"precision", "method"});
  std::string method = p.text(1, "common");
  int64_t precision = p.integer(0, 0);
  if (!input.is_number()) fault("filter round needs a number, not " + input.type_name());
  if (precision < -300)
    fault("filter round: a precision of " + std::to_string(precision) + " is too little");
  if (method == "common") {
    if (input.is_integral() && precision >= 0) return Value(input.integer());
    double rounded = round_to(input.number(), precision);
    return input.is_integral() ? Value(static_cast<int64_t>(rounded)) : Value(rounded);
  }
  if (method != "ceil" && method != "floor")
    fault("filter round: method must be common, ceil or floor");
  double scale = std::pow(10.0, static_cast<double>(precision)), scaled = input.number() * scale;
  return Value((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

Value dictsort_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters p(args, "filter dictsort", {"case_sensitive", "by", "reverse"});
  if (!input.is_dict()) fault("filter dictsort needs a mapping, not " + input.type_name());
  std::string by = p.text(1, "key");
  if (by != "key" && by != "value") fault("filter dictsort sorts by key or value");
  bool sensitive = p.boolean(0, false), reverse = p.boolean(2, false);
  Args lower;
  auto key_of = [&](const std::pair<Value, Value>& member) {
    const Value& key = by == "key" ? member.first : member.second;
    return key.is_string() && !sensitive ? find_text_filter("lower")(interpreter, key, lower) : key;
  };
  std::vector<std::pair<Value, const std::pair<Value, Value>*>> rows;
  for (const auto& member : input.dict().items) rows.emplace_back(key_of(member), &member);
  std::stable_sort(rows.begin(), rows.end(), [&](const auto& a, const auto& b) {
    return reverse ? compare(b.first, a.first, interpreter.budget()) < 0
                   : compare(a.first, b.first, interpreter.budget()) < 0;
  });
  Values pairs;
  for (const auto& row : rows) pairs.push_back(make_tuple({row.second->first, row.second->second}));
  return make_list(std::move(pairs));
}

Value batch_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters p(args, "filter batch", {"linecount", "fill_with"});
  p.require(0);
  int64_t count = p.integer(0, 1);
  if (count < 1 || count > 1'000'000) fault("filter batch needs a count of 1 to 1000000");
  Values rows, row;
  for (Value& item : interpreter.items(input)) {
    row.push_back(std::move(item));
    if (static_cast<int64_t>(row.size()) == count)
      rows.push_back(make_list(std::exchange(row, {})));
  }
  if (!row.empty()) {
    interpreter.budget().work(static_cast<uint64_t>(count));
    if (p.given(1)) row.resize(static_cast<size_t>(count), *p.get(1));
    rows.push_back(make_list(std::move(row)));
  }
  return make_list(std::move(rows), ListKind::kGenerator, "do_batch");
}

Value slice_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters p(args, "filter slice", {"slices", "fill_with"});
  p.require(0);
  int64_t slices = p.integer(0, 1);
  if (slices < 1 || slices > 1'000'000) fault("filter slice needs a number of 1 to 1000000");
  Values items = interpreter.items(input), rows;
  interpreter.budget().work(static_cast<uint64_t>(slices));
  auto n = static_cast<size_t>(slices);
  size_t each = items.size() / n, longer = items.size() % n, at = 0;
  for (size_t i = 0; i < n; ++i) {
    size_t take = each + (i < longer);
    Values row(items.begin() + static_cast<ptrdiff_t>(at),
               items.begin() + static_cast<ptrdiff_t>(at + take));
    at += take;
    if (p.given(1) && i >= longer) row.push_back(*p.get(1));
    rows.push_back(make_list(std::move(row)));
  }
  return make_list(std::move(rows), ListKind::kGenerator, "do_slice");
}

// As transformers defines it: json.dumps without ASCII escapes by default.
Value tojson_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters p(args, "filter tojson", {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = p.boolean(0, false);
  style.sort_keys = p.boolean(3, false);
  if (p.given(1)) {
    style.pretty = true;
    style.item_separator = ",";
    if (p.get(1)->is_string()) {
      style.indent = p.get(1)->string();
    } else {
      int64_t width = p.integer(1, 0);
      if (width > 1000)
        fault("filter tojson: an indent of " + std::to_string(width) + " is too much");
      style.indent.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
    }
  }
  if (p.given(2)) {
    Values pair = interpreter.items(*p.get(2));
    if (pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string())
      fault("filter tojson: separators are two strings");
    style.item_separator = pair[0].string();
    style.key_separator = pair[1].string();
  }
  return Value(to_json(input, style, interpreter.budget()));
}

Value string_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters(args, "filter string", {});
  return input.is_string() ? input : Value(interpreter.text(input));
}

// Only an attribute, never an element: methods, loop and namespace members.
Value attr_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters p(args, "filter attr", {"name"});
  std::string name = interpreter.text(p.require(0));
  if (input.is_dict() && find_container_method(input, name) == nullptr)
    return Value::undefined("'dict object' has no attribute '" + name + "'");
  return interpreter.attribute(input, name);
}

constexpr NamedFilter kFilters[] = {
    {"abs", abs_filter},           {"attr", attr_filter},     {"batch", batch_filter},
    {"count", length_filter},      {"d", default_filter},     {"default", default_filter},
    {"dictsort", dictsort_filter}, {"first", first_filter},   {"float", float_filter},
    {"int", int_filter},           {"items", items_filter},   {"last", last_filter},
    {"length", length_filter},     {"list", list_filter},     {"reverse", reverse_filter},
    {"round", round_filter},       {"safe", string_filter},   {"slice", slice_filter},
    {"string", string_filter},     {"tojson", tojson_filter},
};

}  // namespace

FilterFunction find_filter(std::string_view name) {
  for (const NamedFilter& filter : kFilters)
    if (filter.name == name) return filter.function;
  return nullptr;
}

}  // namespace loongforge::data::jinja
