// Filters that look into the items of a sequence: map, select, sort, group and the like.
#include <algorithm>

#include "data/jinja/arguments.h"
#include "data/jinja/interpreter.h"
#include "data/jinja/strings.h"
#include "support/unicode.h"

namespace loongforge::data::jinja {
namespace {

// "a.b.0": keys, with numbers where digits stand.
Values attribute_path(const Value& attribute) {
  if (!attribute.is_string()) return {attribute};
  Values path;
  for (std::string_view part : split_by(attribute.string(), ".", -1, false)) {
    bool digits = !part.empty() && std::all_of(part.begin(), part.end(),
                                               [](char c) { return c >= '0' && c <= '9'; });
    if (digits) {
      auto number = parse_int(part, 10);
      path.emplace_back(*number);
    } else {
      path.emplace_back(part);
    }
  }
  return path;
}

// What an item is taken for: one of its attributes, or itself; strings in lower case unless case
// counts.
class Key {
 public:
  Key(Interpreter& interpreter, const Value* attribute, bool case_sensitive,
      const Value* otherwise = nullptr)
      : interpreter_(interpreter), case_sensitive_(case_sensitive), otherwise_(otherwise) {
    if (attribute != nullptr && !attribute->is_none()) path_ = attribute_path(*attribute);
  }

  Value operator()(Value item) const {
    for (const Value& part : path_) {
      item = interpreter_.item(item, part);
      if (item.is_undefined() && otherwise_ != nullptr && !otherwise_->is_none())
        item = *otherwise_;
    }
    return item.is_string() && !case_sensitive_ ? Value(support::to_lower(item.string())) : item;
  }

 private:
  Interpreter& interpreter_;
  bool case_sensitive_;
  const Value* otherwise_;
  Values path_;
};

struct Row {
  Value key, item;
};

std::vector<Row> rows_of(Interpreter& interpreter, const Value& input, const Key& key) {
  std::vector<Row> rows;
  for (Value& item : interpreter.items(input)) {
    Value k = key(item);
    rows.push_back({std::move(k), std::move(item)});
  }
  return rows;
}

void sort_rows(Interpreter& interpreter, std::vector<Row>& rows, bool reverse) {
  Budget& budget = interpreter.budget();
  std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
    return reverse ? compare(b.key, a.key, budget) < 0 : compare(a.key, b.key, budget) < 0;
  });
}

Value sort_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters p(args, "filter sort", {"reverse", "case_sensitive", "attribute"});
  bool reverse = p.boolean(0, false), sensitive = p.boolean(1, false);
  std::vector<Row> rows;
  if (p.given(2) && p.get(2)->is_string() && p.get(2)->string().find(',') != std::string::npos) {
    // Several attributes: compared one after the other.
    for (Value& item : interpreter.items(input)) {
      Values keys;
      for (std::string_view part : split_by(p.get(2)->string(), ",", -1, false)) {
        Value name(part);
        keys.push_back(Key(interpreter, &name, sensitive)(item));
      }
      rows.push_back({make_list(std::move(keys)), std::move(item)});
    }
  } else {
    rows = rows_of(interpreter, input, Key(interpreter, p.get(2), sensitive));
  }
  sort_rows(interpreter, rows, reverse);
  Values items;
  for (Row& row : rows) items.push_back(std::move(row.item));
  return make_list(std::move(items));
}

Value unique_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters p(args, "filter unique", {"case_sensitive", "attribute"});
  Values items, seen;
  for (Row& row : rows_of(interpreter, input, Key(interpreter, p.get(1), p.boolean(0, false)))) {
    bool known = std::any_of(seen.begin(), seen.end(), [&](const Value& v) {
      return equal(v, row.key, interpreter.budget());
    });
    if (known) continue;
    seen.push_back(std::move(row.key));
    items.push_back(std::move(row.item));
  }
  return make_list(std::move(items), ListKind::kGenerator, "do_unique");
}

Value extreme(Interpreter& interpreter, const Value& input, Args& args, const char* name,
              int wanted) {
  Parameters p(args, name, {"case_sensitive", "attribute"});
  std::vector<Row> rows =
      rows_of(interpreter, input, Key(interpreter, p.get(1), p.boolean(0, false)));
  if (rows.empty()) return Value::undefined("the sequence is empty");
  size_t best = 0;
  for (size_t i = 1; i < rows.size(); ++i)
    if (compare(rows[i].key, rows[best].key, interpreter.budget()) == wanted) best = i;
  return rows[best].item;
}

Value min_filter(Interpreter& interpreter, const Value& input, Args& args) {
  return extreme(interpreter, input, args, "filter min", -1);
}

Value max_filter(Interpreter& interpreter, const Value& input, Args& args) {
  return extreme(interpreter, input, args, "filter max", 1);
}

Value sum_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters p(args, "filter sum", {"attribute", "start"});
  Value total = p.get(1) != nullptr ? *p.get(1) : Value(0);
  Key key(interpreter, p.get(0), true);
  for (Value& item : interpreter.items(input))
    total = binary_operation("+", total, key(std::move(item)), interpreter.budget());
  return total;
}

Value join_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters p(args, "filter join", {"d", "attribute"});
  std::string separator = p.get(0) != nullptr ? interpreter.text(*p.get(0)) : std::string();
  Key key(interpreter, p.get(1), true);
  std::string text;
  bool first = true;
  for (Value& item : interpreter.items(input)) {
    if (!first) text += separator;
    first = false;
    text += interpreter.text(key(std::move(item)));
    interpreter.budget().text(separator.size());
  }
  return Value(std::move(text));
}

Value groupby_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters p(args, "filter groupby", {"attribute", "default", "case_sensitive"});
  bool sensitive = p.boolean(2, false);
  std::vector<Row> rows =
      rows_of(interpreter, input, Key(interpreter, &p.require(0), sensitive, p.get(1)));
  sort_rows(interpreter, rows, false);
  Key spelled(interpreter, &p.require(0), true, p.get(1));
  Values groups;
  for (size_t i = 0; i < rows.size();) {
    size_t j = i;
    Values items;
    for (; j < rows.size() && equal(rows[i].key, rows[j].key, interpreter.budget()); ++j)
      items.push_back(rows[j].item);
    groups.push_back(make_named_tuple({spelled(rows[i].item), make_list(std::move(items))},
                                      {"grouper", "list"}));
    i = j;
  }
  return make_list(std::move(groups));
}

Value map_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Values mapped;
  bool by_attribute = args.positional.empty() && !args.named.empty() &&
                      std::any_of(args.named.begin(), args.named.end(),
                                  [](const auto& a) { return a.first == "attribute"; });
  if (by_attribute) {
    Parameters p(args, "filter map", {"attribute", "default"});
    Key key(interpreter, p.get(0), true, p.get(1));
    for (Value& item : interpreter.items(input)) mapped.push_back(key(std::move(item)));
  } else {
    if (args.positional.empty() || !args.positional[0].is_string())
      fault("filter map needs a filter's name or attribute=");
    std::string name = args.positional[0].string();
    Args rest;
    rest.positional.assign(args.positional.begin() + 1, args.positional.end());
    rest.named = args.named;
    for (const Value& item : interpreter.items(input))
      mapped.push_back(interpreter.filter(name, item, rest));
  }
  return make_list(std::move(mapped), ListKind::kGenerator, "sync_do_map");
}

// select, reject (first: 0) and selectattr, rejectattr (first: 1): items whose test, or truth, is
// as wanted.
Value select_by(Interpreter& interpreter, const Value& input, Args& args, size_t first, bool wanted,
                const char* what) {
  if (args.positional.size() < first)
    fault(std::string("filter ") + what + " needs an attribute's name");
  Key key(interpreter, first == 1 ? &args.positional[0] : nullptr, true);
  bool tested = args.positional.size() > first;
  std::string test;
  Args rest;
  if (tested) {
    if (!args.positional[first].is_string())
      fault(std::string("filter ") + what + " needs a test's name");
    test = args.positional[first].string();
    rest.positional.assign(args.positional.begin() + static_cast<ptrdiff_t>(first) + 1,
                           args.positional.end());
    rest.named = args.named;
  }
  Values kept;
  for (Value& item : interpreter.items(input)) {
    Value subject = key(item);
    bool holds = tested ? interpreter.test(test, subject, rest) : truthy(subject);
    if (holds == wanted) kept.push_back(std::move(item));
  }
  return make_list(std::move(kept), ListKind::kGenerator, "select_or_reject");
}

constexpr NamedFilter kFilters[] = {
    {"groupby", groupby_filter},
    {"join", join_filter},
    {"map", map_filter},
    {"max", max_filter},
    {"min", min_filter},
    {"sort", sort_filter},
    {"sum", sum_filter},
    {"unique", unique_filter},
    {"select",
     [](Interpreter& i, const Value& v, Args& a) { return select_by(i, v, a, 0, true, "select"); }},
    {"reject", [](Interpreter& i, const Value& v,
                  Args& a) { return select_by(i, v, a, 0, false, "reject"); }},
    {"selectattr", [](Interpreter& i, const Value& v,
                      Args& a) { return select_by(i, v, a, 1, true, "selectattr"); }},
    {"rejectattr", [](Interpreter& i, const Value& v,
                      Args& a) { return select_by(i, v, a, 1, false, "rejectattr"); }},
};

}  // namespace

FilterFunction find_select_filter(std::string_view name) {
  for (const NamedFilter& filter : kFilters)
    if (filter.name == name) return filter.function;
  return nullptr;
}

}  // namespace loongforge::data::jinja
