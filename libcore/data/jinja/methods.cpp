// Methods of strings, lists, tuples and dicts.
#include <algorithm>

#include "data/jinja/arguments.h"
#include "data/jinja/interpreter.h"
#include "data/jinja/strings.h"
#include "support/unicode.h"

namespace loongforge::data::jinja {
namespace {

const std::string& text_of(const Value& self) { return self.string(); }

uint32_t code_of(std::string_view c) {
  int length;
  return support::decode_utf8(c.data(), &length);
}

Value strip_side(Interpreter& interpreter, const Value& self, Args& args, bool left, bool right) {
  Parameters p(args, "strip", {"chars"});
  std::string chars = p.text(0, "");
  std::string_view kept = strip(text_of(self), p.given(0) ? &chars : nullptr, left, right);
  interpreter.budget().text(kept.size());
  return Value(kept);
}

Value split_side(Interpreter& interpreter, const Value& self, Args& args, bool from_right) {
  Parameters p(args, "split", {"sep", "maxsplit"});
  int64_t limit = p.integer(1, -1);
  std::string separator = p.text(0, "");
  interpreter.budget().text(text_of(self).size());
  interpreter.budget().work(text_of(self).size() / 8);
  Values parts;
  for (std::string_view part : p.given(0) ? split_by(text_of(self), separator, limit, from_right)
                                          : split_space(text_of(self), limit, from_right))
    parts.emplace_back(part);
  return make_list(std::move(parts));
}

Value splitlines(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters p(args, "splitlines", {"keepends"});
  interpreter.budget().text(text_of(self).size());
  Values lines;
  for (std::string_view line : split_lines(text_of(self), p.boolean(0, false)))
    lines.emplace_back(line);
  return make_list(std::move(lines));
}

// The part of a string that start and end arguments leave, in bytes; begin is where it starts.
std::string_view window(const std::string& text, const Parameters& p, size_t* begin,
                        int64_t* first_index) {
  *begin = 0;
  *first_index = 0;
  if (!p.given(1) && !p.given(2)) return text;
  std::vector<std::string_view> all = characters(text);
  auto size = static_cast<int64_t>(all.size());
  auto clamp = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
  int64_t from = clamp(p.integer(1, 0)), to = clamp(p.integer(2, size));
  auto offset = [&](int64_t i) {
    return i == size ? text.size()
                     : static_cast<size_t>(all[static_cast<size_t>(i)].data() - text.data());
  };
  *begin = offset(from);
  *first_index = from;
  return to <= from ? std::string_view()
                    : std::string_view(text).substr(*begin, offset(to) - *begin);
}

Value affix(const Value& self, Args& args, const char* name, bool at_start) {
  Parameters p(args, name, {"prefix", "start", "end"});
  size_t begin;
  int64_t index;
  std::string_view text = window(text_of(self), p, &begin, &index);
  const Value& wanted = p.require(0);
  Values options = wanted.is_list() && wanted.list().kind == ListKind::kTuple ? wanted.list().items
                                                                              : Values{wanted};
  for (const Value& option : options) {
    if (!option.is_string())
      fault(std::string(name) + " needs a string or a tuple of strings, not " + option.type_name());
    if (at_start ? text.starts_with(option.string()) : text.ends_with(option.string()))
      return Value(true);
  }
  return Value(false);
}

Value find_in(const Value& self, Args& args, const char* name, bool last, bool must) {
  Parameters p(args, name, {"sub", "start", "end"});
  p.require(0);
  size_t begin;
  int64_t index;
  std::string_view text = window(text_of(self), p, &begin, &index);
  std::string wanted = p.text(0, "");
  size_t at = last ? text.rfind(wanted) : text.find(wanted);
  if (at == std::string_view::npos && must) fault("substring not found");
  if (at == std::string_view::npos) return Value(-1);
  return Value(index + static_cast<int64_t>(support::count_code_points(text.substr(0, at))));
}

Value count_in(Interpreter&, const Value& self, Args& args) {
  Parameters p(args, "count", {"sub", "start", "end"});
  p.require(0);
  size_t begin;
  int64_t index;
  std::string_view text = window(text_of(self), p, &begin, &index);
  std::string wanted = p.text(0, "");
  if (wanted.empty()) return Value(support::count_code_points(text) + 1);
  size_t n = 0;
  for (size_t at = text.find(wanted); at != std::string_view::npos;
       at = text.find(wanted, at + wanted.size()))
    ++n;
  return Value(n);
}

Value replace_method(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters p(args, "replace", {"old", "new", "count"});
  p.require(0);
  p.require(1);
  std::string from = p.text(0, ""), to = p.text(1, "");
  const std::string& text = text_of(self);
  interpreter.budget().text(text.size() +
                            (text.size() / std::max<size_t>(from.size(), 1) + 1) * to.size());
  return Value(replace_all(text, from, to, p.integer(2, -1)));
}

Value join_method(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters p(args, "join", {"iterable"});
  std::string text;
  bool first = true;
  for (const Value& item : interpreter.items(p.require(0))) {
    if (!item.is_string()) fault("join needs strings, not " + item.type_name());
    if (!first) text += text_of(self);
    first = false;
    text += item.string();
    interpreter.budget().text(item.string().size() + text_of(self).size());
  }
  return Value(std::move(text));
}

Value partition_side(const Value& self, Args& args, bool last) {
  Parameters p(args, "partition", {"sep"});
  p.require(0);
  std::string separator = p.text(0, "");
  if (separator.empty()) fault("partition needs a separator that is not empty");
  std::string_view text = text_of(self);
  size_t at = last ? text.rfind(separator) : text.find(separator);
  if (at == std::string_view::npos)
    return last ? make_tuple({Value(""), Value(""), self})
                : make_tuple({self, Value(""), Value("")});
  return make_tuple(
      {Value(text.substr(0, at)), Value(separator), Value(text.substr(at + separator.size()))});
}

Value pad_method(Interpreter& interpreter, const Value& self, Args& args, char where) {
  Parameters p(args, "this method", {"width", "fillchar"});
  p.require(0);
  std::string made = pad(text_of(self), p.integer(0, 0), p.text(1, " "), where);
  interpreter.budget().text(made.size());
  return Value(std::move(made));
}

Value zfill(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters p(args, "zfill", {"width"});
  p.require(0);
  const std::string& text = text_of(self);
  size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  std::string made = text.substr(0, sign) +
                     pad(text.substr(sign), p.integer(0, 0) - static_cast<int64_t>(sign), "0", '>');
  interpreter.budget().text(made.size());
  return Value(std::move(made));
}

Value swapcase(Interpreter&, const Value& self, Args&) {
  std::string out;
  for (std::string_view c : characters(text_of(self)))
    support::is_upper(code_of(c)) ? support::append_lower(out, code_of(c))
                                  : support::append_upper(out, code_of(c));
  return Value(std::move(out));
}

Value remove_affix(const Value& self, Args& args, bool prefix) {
  Parameters p(args, prefix ? "removeprefix" : "removesuffix", {"affix"});
  p.require(0);
  std::string part = p.text(0, "");
  std::string_view text = text_of(self);
  if (prefix && text.starts_with(part)) text.remove_prefix(part.size());
  if (!prefix && text.ends_with(part)) text.remove_suffix(part.size());
  return Value(text);
}

// is...(): not empty, and every character is of the kind.
Value all_of(const Value& self, bool (*kind)(uint32_t)) {
  std::vector<std::string_view> all = characters(text_of(self));
  return Value(!all.empty() && std::all_of(all.begin(), all.end(),
                                           [&](std::string_view c) { return kind(code_of(c)); }));
}

Value is_case(Interpreter& interpreter, const Value& self, const char* name) {
  Args none;
  return Value(find_test(name)(interpreter, self, none));
}

Value format_method(Interpreter& interpreter, const Value& self, Args& args) {
  return Value(brace_format(text_of(self), args, interpreter));
}

using I = Interpreter;
using V = Value;

constexpr NamedMethod kStringMethods[] = {
    {"strip", [](I& i, const V& s, Args& a) { return strip_side(i, s, a, true, true); }},
    {"lstrip", [](I& i, const V& s, Args& a) { return strip_side(i, s, a, true, false); }},
    {"rstrip", [](I& i, const V& s, Args& a) { return strip_side(i, s, a, false, true); }},
    {"split", [](I& i, const V& s, Args& a) { return split_side(i, s, a, false); }},
    {"rsplit", [](I& i, const V& s, Args& a) { return split_side(i, s, a, true); }},
    {"splitlines", splitlines},
    {"startswith", [](I&, const V& s, Args& a) { return affix(s, a, "startswith", true); }},
    {"endswith", [](I&, const V& s, Args& a) { return affix(s, a, "endswith", false); }},
    {"find", [](I&, const V& s, Args& a) { return find_in(s, a, "find", false, false); }},
    {"rfind", [](I&, const V& s, Args& a) { return find_in(s, a, "rfind", true, false); }},
    {"index", [](I&, const V& s, Args& a) { return find_in(s, a, "index", false, true); }},
    {"rindex", [](I&, const V& s, Args& a) { return find_in(s, a, "rindex", true, true); }},
    {"count", count_in},
    {"replace", replace_method},
    {"join", join_method},
    {"upper", [](I& i, const V& s, Args& a) { return find_text_filter("upper")(i, s, a); }},
    {"lower", [](I& i, const V& s, Args& a) { return find_text_filter("lower")(i, s, a); }},
    {"capitalize",
     [](I& i, const V& s, Args& a) { return find_text_filter("capitalize")(i, s, a); }},
    {"title", [](I&, const V& s, Args&) { return V(title_case(text_of(s))); }},
    {"casefold", [](I&, const V& s, Args&) { return V(support::case_fold(text_of(s))); }},
    {"swapcase", swapcase},
    {"partition", [](I&, const V& s, Args& a) { return partition_side(s, a, false); }},
    {"rpartition", [](I&, const V& s, Args& a) { return partition_side(s, a, true); }},
    {"center", [](I& i, const V& s, Args& a) { return pad_method(i, s, a, '^'); }},
    {"ljust", [](I& i, const V& s, Args& a) { return pad_method(i, s, a, '<'); }},
    {"rjust", [](I& i, const V& s, Args& a) { return pad_method(i, s, a, '>'); }},
    {"zfill", zfill},
    {"removeprefix", [](I&, const V& s, Args& a) { return remove_affix(s, a, true); }},
    {"removesuffix", [](I&, const V& s, Args& a) { return remove_affix(s, a, false); }},
    {"format", format_method},
    {"isdigit", [](I&, const V& s, Args&) { return all_of(s, support::is_decimal); }},
    {"isdecimal", [](I&, const V& s, Args&) { return all_of(s, support::is_decimal); }},
    {"isnumeric", [](I&, const V& s, Args&) { return all_of(s, support::is_numeric); }},
    {"isalpha", [](I&, const V& s, Args&) { return all_of(s, support::is_letter); }},
    {"isalnum",
     [](I&, const V& s, Args&) {
       return all_of(s, [](uint32_t c) { return support::is_letter(c) || support::is_numeric(c); });
     }},
    {"isspace",
     [](I&, const V& s, Args&) {
       return all_of(
           s, [](uint32_t c) { return support::is_white_space(c) || (c >= 0x1C && c <= 0x1F); });
     }},
    {"isascii",
     [](I&, const V& s, Args&) {
       return V(text_of(s).empty() || all_of(s, [](uint32_t c) { return c < 0x80; }).boolean());
     }},
    {"islower", [](I& i, const V& s, Args&) { return is_case(i, s, "lower"); }},
    {"isupper", [](I& i, const V& s, Args&) { return is_case(i, s, "upper"); }},
};

Value list_index(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters p(args, "index", {"value"});
  const Values& items = self.list().items;
  for (size_t i = 0; i < items.size(); ++i)
    if (equal(items[i], p.require(0), interpreter.budget())) return Value(i);
  fault("the value is not in the list");
}

Value list_count(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters p(args, "count", {"value"});
  size_t n = 0;
  for (const Value& item : self.list().items) n += equal(item, p.require(0), interpreter.budget());
  return Value(n);
}

Value same(Interpreter&, const Value& self, Args& args) {
  Parameters(args, "copy", {});
  return self;  // values do not change
}

Value dict_view(Interpreter& interpreter, const Value& self, Args& args, const char* label,
                bool keys, bool values) {
  Parameters(args, label, {});
  Values items;
  interpreter.budget().work(self.dict().items.size());
  for (const auto& [key, value] : self.dict().items)
    items.push_back(keys && values ? make_tuple({key, value}) : keys ? key : value);
  return make_list(std::move(items), ListKind::kView, label);
}

Value dict_get(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters p(args, "get", {"key", "default"});
  interpreter.budget().work(self.dict().items.size() / 8);
  const Value* value = self.dict().find(p.require(0));
  if (value != nullptr) return *value;
  return p.get(1) != nullptr ? *p.get(1) : Value();
}

constexpr NamedMethod kListMethods[] = {
    {"index", list_index}, {"count", list_count}, {"copy", same},     {"append", nullptr},
    {"extend", nullptr},   {"insert", nullptr},   {"pop", nullptr},   {"remove", nullptr},
    {"reverse", nullptr},  {"sort", nullptr},     {"clear", nullptr},
};

constexpr NamedMethod kDictMethods[] = {
    {"get", dict_get},
    {"items",
     [](I& i, const V& s, Args& a) { return dict_view(i, s, a, "dict_items", true, true); }},
    {"keys",
     [](I& i, const V& s, Args& a) { return dict_view(i, s, a, "dict_keys", true, false); }},
    {"values",
     [](I& i, const V& s, Args& a) { return dict_view(i, s, a, "dict_values", false, true); }},
    {"copy", same},
    {"clear", nullptr},
    {"pop", nullptr},
    {"popitem", nullptr},
    {"setdefault", nullptr},
    {"update", nullptr},
    {"fromkeys", nullptr},
};

template <size_t N>
const NamedMethod* find_method(const NamedMethod (&table)[N], std::string_view name) {
  for (const NamedMethod& method : table)
    if (method.name == name) return &method;
  return nullptr;
}

}  // namespace

const NamedMethod* find_string_method(std::string_view name) {
  return find_method(kStringMethods, name);
}

const NamedMethod* find_container_method(const Value& container, std::string_view name) {
  if (container.is_dict()) return find_method(kDictMethods, name);
  if (container.list().kind >= ListKind::kView) return nullptr;
  const NamedMethod* method = find_method(kListMethods, name);
  bool list = container.list().kind == ListKind::kList;
  return method != nullptr && (list || name == "index" || name == "count") ? method : nullptr;
}

}  // namespace loongforge::data::jinja
