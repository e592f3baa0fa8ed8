// Values as text: str(), repr() and JSON, spelled as Python spells them.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "data/jinja/value.h"
#include "support/unicode.h"

namespace loongforge::data::jinja {
namespace {

void append_hex(std::string& out, const char* prefix, uint32_t c, int digits) {
  char buffer[16];
  std::snprintf(buffer, sizeof buffer, "%s%0*x", prefix, digits, static_cast<unsigned>(c));
  out += buffer;
}

class Printer {
 public:
  explicit Printer(Budget& budget) : budget_(budget) {}

  std::string out;

  void print(const Value& v) {
    budget_.work(1);
    size_t before = out.size();
    if (v.is_none()) {
      out += "None";
    } else if (v.is_undefined()) {
      out += "Undefined";
    } else if (v.is_bool()) {
      out += v.boolean() ? "True" : "False";
    } else if (v.is_int()) {
      out += std::to_string(v.integer());
    } else if (v.is_float()) {
      out += float_repr(v.number());
    } else if (v.is_string()) {
      budget_.work(v.string().size() / 16);
      out += string_repr(v.string());
    } else if (v.is_object()) {
      out += v.object().repr();
    } else if (v.is_dict()) {
      return print_dict(v.dict());  // counts itself
    } else {
      return print_list(v.list());
    }
    budget_.text(out.size() - before);
  }

 private:
  void print_items(const Values& items) {
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += ", ";
      print(items[i]);
    }
  }

  void print_list(const ListData& list) {
    switch (list.kind) {
      case ListKind::kRange:
        out += list.label;
        return;
      case ListKind::kGenerator:
        out += "<generator object " + list.label + ">";
        return;
      case ListKind::kView:
        out += list.label + "([";
        print_items(list.items);
        out += "])";
        return;
      case ListKind::kTuple:
        out += '(';
        print_items(list.items);
        out += list.items.size() == 1 ? ",)" : ")";
        return;
      case ListKind::kList:
        out += '[';
        print_items(list.items);
        out += ']';
    }
  }

  void print_dict(const DictData& dict) {
    out += '{';
    for (size_t i = 0; i < dict.items.size(); ++i) {
      if (i > 0) out += ", ";
      print(dict.items[i].first);
      out += ": ";
      print(dict.items[i].second);
    }
    out += '}';
  }

  Budget& budget_;
};

class JsonPrinter {
 public:
  JsonPrinter(const JsonStyle& style, Budget& budget) : style_(style), budget_(budget) {}

  std::string out;

  void print(const Value& v, int level) {
    budget_.work(1);
    size_t before = out.size();
    if (v.is_none()) {
      out += "null";
    } else if (v.is_bool()) {
      out += v.boolean() ? "true" : "false";
    } else if (v.is_int()) {
      out += std::to_string(v.integer());
    } else if (v.is_float()) {
      print_float(v.number());
    } else if (v.is_string()) {
      print_string(v.string());
    } else if (v.is_list() && v.list().kind <= ListKind::kTuple) {
      return print_list(v.list(), level);
    } else if (v.is_dict()) {
      return print_dict(v.dict(), level);
    } else {
      fault("Object of type " + v.type_name() + " is not JSON serializable");
    }
    budget_.text(out.size() - before);
  }

 private:
  void print_float(double d) {
    out += std::isnan(d)   ? "NaN"
           : std::isinf(d) ? (d < 0 ? "-Infinity" : "Infinity")
                           : float_repr(d);
  }

  void print_string(std::string_view s) {
    budget_.work(s.size() / 16);
    out += '"';
    for (size_t i = 0; i < s.size();) {
      int length;
      uint32_t c = support::decode_utf8(s.data() + i, &length);
      if (c == '"' || c == '\\') {
        out += '\\';
        out += static_cast<char>(c);
      } else if (c < 0x20) {
        print_control(c);
      } else if (c < 0x7F || !style_.ensure_ascii) {
        out.append(s, i, static_cast<size_t>(length));
      } else if (c < 0x10000) {
        append_hex(out, "\\u", c, 4);
      } else {
        append_hex(out, "\\u", 0xD800 + ((c - 0x10000) >> 10), 4);
        append_hex(out, "\\u", 0xDC00 + ((c - 0x10000) & 0x3FF), 4);
      }
      i += static_cast<size_t>(length);
    }
    out += '"';
  }

  void print_control(uint32_t c) {
    constexpr std::string_view kFrom = "\b\t\n\f\r", kTo = "btnfr";
    size_t at = kFrom.find(static_cast<char>(c));
    if (at == std::string_view::npos) return append_hex(out, "\\u", c, 4);
    out += '\\';
    out += kTo[at];
  }

  void new_line(int level) {
    if (!style_.pretty) return;
    out += '\n';
    for (int i = 0; i < level; ++i) out += style_.indent;
    budget_.text(1 + static_cast<uint64_t>(level) * style_.indent.size());
  }

  // Python drops the space of its item separator where a line break follows.
  void separate() { out += style_.item_separator; }

  void print_list(const ListData& list, int level) {
    if (list.items.empty()) {
      out += "[]";
      return;
    }
    out += '[';
    for (size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) separate();
      new_line(level + 1);
      print(list.items[i], level + 1);
    }
    new_line(level);
    out += ']';
  }

  void print_key(const Value& key) {
    if (key.is_string()) return print_string(key.string());
    if (!key.is_none() && !key.is_number())
      fault("a key of type " + key.type_name() + " cannot be written as JSON");
    out += '"';
    print(key, 0);
    out += '"';
  }

  void print_dict(const DictData& dict, int level) {
    if (dict.items.empty()) {
      out += "{}";
      return;
    }
    std::vector<const std::pair<Value, Value>*> members;
    for (const auto& member : dict.items) members.push_back(&member);
    if (style_.sort_keys)
      std::stable_sort(members.begin(), members.end(),
                       [&](auto* a, auto* b) { return compare(a->first, b->first, budget_) < 0; });
    out += '{';
    for (size_t i = 0; i < members.size(); ++i) {
      if (i > 0) separate();
      new_line(level + 1);
      print_key(members[i]->first);
      out += style_.key_separator;
      print(members[i]->second, level + 1);
    }
    new_line(level);
    out += '}';
  }

  const JsonStyle& style_;
  Budget& budget_;
};

}  // namespace

std::string float_repr(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  char buffer[40];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::scientific).ptr;
  std::string_view text(buffer, static_cast<size_t>(end - buffer));
  std::string sign, digits;
  if (text[0] == '-') {
    sign = "-";
    text.remove_prefix(1);
  }
  size_t e = text.find('e');
  for (char c : text.substr(0, e))
    if (c != '.') digits += c;
  int exponent = 0;
  std::string_view power = text.substr(e + 1);
  if (power[0] == '+') power.remove_prefix(1);
  std::from_chars(power.data(), power.data() + power.size(), exponent);
  if (exponent < -4 || exponent >= 16) {
    std::string out = sign + digits.substr(0, 1);
    if (digits.size() > 1) out += "." + digits.substr(1);
    char tail[16];
    std::snprintf(tail, sizeof tail, "e%c%02d", exponent < 0 ? '-' : '+', std::abs(exponent));
    return out + tail;
  }
  if (exponent < 0)
    return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string string_repr(std::string_view s) {
  char quote =
      s.find('\'') != std::string_view::npos && s.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t i = 0; i < s.size();) {
    int length;
    uint32_t c = support::decode_utf8(s.data() + i, &length);
    if (c == static_cast<uint32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (support::is_printable(c)) {
      out.append(s, i, static_cast<size_t>(length));
    } else if (c < 0x100) {
      append_hex(out, "\\x", c, 2);
    } else if (c < 0x10000) {
      append_hex(out, "\\u", c, 4);
    } else {
      append_hex(out, "\\U", c, 8);
    }
    i += static_cast<size_t>(length);
  }
  return out + quote;
}

std::string repr(const Value& v, Budget& budget) {
  Printer printer(budget);
  printer.print(v);
  return std::move(printer.out);
}

std::string to_text(const Value& v, Budget& budget) {
  if (v.is_string()) {
    budget.text(v.string().size());
    return v.string();
  }
  if (v.is_undefined()) return {};
  return repr(v, budget);
}

std::string to_json(const Value& v, const JsonStyle& style, Budget& budget) {
  JsonPrinter printer(style, budget);
  printer.print(v, 0);
  return std::move(printer.out);
}

}  // namespace loongforge::data::jinja
