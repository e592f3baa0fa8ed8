// Python's two format languages: "%s" % values and "{}".format(values).
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "data/jinja/interpreter.h"
#include "data/jinja/strings.h"
#include "support/unicode.h"

namespace loongforge::data::jinja {
namespace {

constexpr int64_t kMaxWidth = 100000;
constexpr int64_t kMaxPrecision = 400;

struct Spec {
  std::string fill = " ";
  char align = '\0';  // < > ^ =
  char sign = '-';
  bool alternate = false, comma = false, underscore = false;
  int64_t width = 0, precision = -1;
  char type = '\0';
};

void check_size(int64_t width, int64_t precision) {
  if (width > kMaxWidth || precision > kMaxPrecision) fault("a format asks for too wide a field");
}

std::string group_digits(const std::string& digits, char separator, size_t each) {
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % each == 0) out += separator;
    out += digits[i];
  }
  return out;
}

// Digits without sign.
std::string integer_digits(uint64_t magnitude, const Spec& spec) {
  int base = spec.type == 'x' || spec.type == 'X' ? 16
             : spec.type == 'o'                   ? 8
             : spec.type == 'b'                   ? 2
                                                  : 10;
  std::string digits;
  do {
    digits += "0123456789abcdef"[magnitude % static_cast<uint64_t>(base)];
    magnitude /= static_cast<uint64_t>(base);
  } while (magnitude != 0);
  std::reverse(digits.begin(), digits.end());
  if (spec.comma || spec.underscore)
    digits = group_digits(digits, spec.comma ? ',' : '_', base == 10 ? 3 : 4);
  if (spec.type == 'X')
    std::transform(digits.begin(), digits.end(), digits.begin(),
                   [](char c) { return c >= 'a' ? static_cast<char>(c - 32) : c; });
  if (spec.alternate && base != 10) digits = std::string("0") + spec.type + digits;
  return digits;
}

std::string float_digits(double magnitude, const Spec& spec) {
  if (std::isinf(magnitude))
    return spec.type == 'F' || spec.type == 'E' || spec.type == 'G' ? "INF" : "inf";
  if (std::isnan(magnitude))
    return spec.type == 'F' || spec.type == 'E' || spec.type == 'G' ? "NAN" : "nan";
  if (spec.type == '\0' && spec.precision < 0) return float_repr(magnitude);
  char type = spec.type == '%' ? 'f' : spec.type == '\0' || spec.type == 'n' ? 'g' : spec.type;
  if (spec.type == '%') magnitude *= 100;
  char pattern[] = {'%', '.', '*', type, '\0'};
  int precision = static_cast<int>(spec.precision < 0 ? 6 : spec.precision);
  char buffer[1024];
  std::snprintf(buffer, sizeof buffer, pattern, precision, magnitude);
  std::string digits = buffer;
  if (spec.comma) {
    size_t point = std::min(digits.find_first_not_of("0123456789"), digits.size());
    digits = group_digits(digits.substr(0, point), ',', 3) + digits.substr(point);
  }
  return spec.type == '%' ? digits + "%" : digits;
}

std::string aligned(const std::string& sign, const std::string& body, const Spec& spec,
                    char default_align) {
  char align = spec.align != '\0' ? spec.align : default_align;
  if (align == '=') {
    auto width = spec.width - static_cast<int64_t>(sign.size());
    return sign + pad(body, width, spec.fill, '>');
  }
  std::string all = sign + body;
  auto length = static_cast<int64_t>(support::count_code_points(all));
  if (align != '^' || spec.width <= length)
    return pad(all, spec.width, spec.fill, align == '<' ? '<' : '>');
  // Unlike str.center, the odd blank goes right.
  int64_t left = (spec.width - length) / 2;
  return pad(pad(all, length + left, spec.fill, '>'), spec.width, spec.fill, '<');
}

std::string sign_of(bool negative, char sign) {
  return negative ? "-" : sign == '+' ? "+" : sign == ' ' ? " " : "";
}

std::string format_integer(int64_t value, const Spec& spec) {
  uint64_t magnitude = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  return aligned(sign_of(value < 0, spec.sign), integer_digits(magnitude, spec), spec, '>');
}

std::string format_float(double value, const Spec& spec) {
  return aligned(sign_of(std::signbit(value) && !std::isnan(value), spec.sign),
                 float_digits(std::fabs(value), spec), spec, '>');
}

std::string format_text(std::string text, const Spec& spec) {
  if (spec.precision >= 0) {
    std::vector<std::string_view> all = characters(text);
    std::string cut;
    for (size_t i = 0; i < std::min(all.size(), static_cast<size_t>(spec.precision)); ++i)
      cut += all[i];
    text = std::move(cut);
  }
  return aligned("", text, spec, '<');
}

int64_t read_number(std::string_view text, size_t& at) {
  int64_t n = -1;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    n = (n < 0 ? 0 : n) * 10 + (text[at] - '0');
    if (n > kMaxWidth) fault("a format asks for too wide a field");
  }
  return n;
}

// ---- "%..." ----

class Percent {
 public:
  Percent(std::string_view format, const Value& values, Interpreter& interpreter)
      : format_(format), values_(values), interpreter_(interpreter) {
    if (values.is_list() && values.list().kind == ListKind::kTuple) {
      arguments_ = values.list().items;
    } else {
      arguments_ = {values};
    }
  }

  std::string run() {
    std::string out;
    while (at_ < format_.size()) {
      char c = format_[at_++];
      out += c == '%' ? conversion() : std::string(1, c);
    }
    if (!mapped_ && next_ < arguments_.size() && !values_.is_dict())
      fault("not all values were used in a % format");
    interpreter_.budget().text(out.size());
    return out;
  }

 private:
  const Value& next() {
    if (next_ >= arguments_.size()) fault("not enough values for a % format");
    return arguments_[next_++];
  }

  const Value& subject(const std::optional<std::string>& name) {
    if (!name.has_value()) return next();
    if (!values_.is_dict()) fault("a % format with names needs a mapping");
    const Value* value = values_.dict().find_key(*name);
    if (value == nullptr) fault("a % format names '" + *name + "', which the mapping lacks");
    mapped_ = true;
    return *value;
  }

  std::string conversion() {
    std::optional<std::string> name;
    if (at_ < format_.size() && format_[at_] == '(') {
      size_t close = format_.find(')', at_);
      if (close == std::string_view::npos) fault("a % format has '(' without ')'");
      name = std::string(format_.substr(at_ + 1, close - at_ - 1));
      at_ = close + 1;
    }
    Spec spec;
    bool zero = false;
    for (; at_ < format_.size() &&
           std::string_view("-+ #0").find(format_[at_]) != std::string_view::npos;
         ++at_) {
      char flag = format_[at_];
      if (flag == '-') spec.align = '<';
      if (flag == '+' || (flag == ' ' && spec.sign != '+')) spec.sign = flag;
      spec.alternate = spec.alternate || flag == '#';
      zero = zero || flag == '0';
    }
    spec.width = std::max<int64_t>(read_number(format_, at_), 0);
    if (at_ < format_.size() && format_[at_] == '.') {
      ++at_;
      spec.precision = std::max<int64_t>(read_number(format_, at_), 0);
    }
    check_size(spec.width, spec.precision);
    if (at_ >= format_.size()) fault("a % format ends within a conversion");
    spec.type = format_[at_++];
    if (spec.type == '%') return "%";
    return convert(subject(name), spec, zero);
  }

  std::string convert(const Value& v, Spec spec, bool zero) {
    if (spec.type == 's' || spec.type == 'r' || spec.type == 'a') {
      std::string text = spec.type == 's' ? interpreter_.text(v) : repr(v, interpreter_.budget());
      char align = spec.align == '\0' ? '>' : spec.align;
      spec.align = align;
      return format_text(std::move(text), spec);
    }
    if (v.is_undefined()) fault(v.why_undefined());
    if (zero && spec.align == '\0') {
      spec.fill = "0";
      spec.align = '=';
    }
    if (std::string_view("dixXo").find(spec.type) != std::string_view::npos) {
      if (!v.is_number() || (v.is_float() && spec.type != 'd' && spec.type != 'i'))
        fault(std::string("%") + spec.type + " needs a number, not " + v.type_name());
      double number = v.number();
      if (v.is_float() && !(std::fabs(number) < 9.2e18))
        fault("a number leaves the range of 64 bits");
      return format_integer(v.is_float() ? static_cast<int64_t>(number) : v.integer(), spec);
    }
    if (std::string_view("fFeEgG").find(spec.type) != std::string_view::npos) {
      if (!v.is_number())
        fault(std::string("%") + spec.type + " needs a number, not " + v.type_name());
      return format_float(v.number(), spec);
    }
    fault(std::string("% conversion '") + spec.type + "' is not supported");
  }

  std::string_view format_;
  const Value& values_;
  Interpreter& interpreter_;
  Values arguments_;
  size_t at_ = 0, next_ = 0;
  bool mapped_ = false;
};

// ---- "{...}" ----

Spec parse_spec(std::string_view text) {
  Spec spec;
  size_t at = 0;
  auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  std::vector<std::string_view> all = characters(text.substr(0, 8));
  if (all.size() >= 2 && all[1].size() == 1 && is_align(all[1][0])) {
    spec.fill = std::string(all[0]);
    spec.align = all[1][0];
    at = all[0].size() + 1;
  } else if (!text.empty() && is_align(text[0])) {
    spec.align = text[0];
    at = 1;
  }
  auto take = [&](char c) { return at < text.size() && text[at] == c ? ++at, true : false; };
  for (char c : {'+', '-', ' '})
    if (take(c)) spec.sign = c;
  spec.alternate = take('#');
  if (take('0') && spec.align == '\0') {
    spec.fill = "0";
    spec.align = '=';
  }
  spec.width = std::max<int64_t>(read_number(text, at), 0);
  spec.comma = take(',');
  spec.underscore = take('_');
  if (take('.')) {
    spec.precision = read_number(text, at);
    if (spec.precision < 0) fault("a format has '.' without a precision");
  }
  check_size(spec.width, spec.precision);
  if (at < text.size()) spec.type = text[at++];
  if (at != text.size() ||
      std::string_view("\0sdnxXobeEfFgG%c", 16).find(spec.type) == std::string_view::npos ||
      spec.type == 'c')
    fault("format '" + std::string(text) + "' is not supported");
  return spec;
}

class Brace {
 public:
  Brace(std::string_view format, const Args& args, Interpreter& interpreter)
      : format_(format), args_(args), interpreter_(interpreter) {}

  std::string run() {
    std::string out;
    while (at_ < format_.size()) {
      char c = format_[at_++];
      bool doubled = at_ < format_.size() && format_[at_] == c;
      if ((c == '{' || c == '}') && doubled) {
        out += c;
        ++at_;
      } else if (c == '{') {
        out += field();
      } else if (c == '}') {
        fault("a format has a single '}'");
      } else {
        out += c;
      }
    }
    interpreter_.budget().text(out.size());
    return out;
  }

 private:
  std::string field() {
    size_t close = format_.find('}', at_);
    if (close == std::string_view::npos) fault("a format has '{' without '}'");
    std::string_view inner = format_.substr(at_, close - at_);
    at_ = close + 1;
    if (inner.find('{') != std::string_view::npos)
      fault("a format within a format is not supported");
    size_t colon = std::min(inner.find(':'), inner.size());
    std::string_view spec_text =
        colon < inner.size() ? inner.substr(colon + 1) : std::string_view();
    inner = inner.substr(0, colon);
    char conversion = '\0';
    if (size_t bang = inner.find('!'); bang != std::string_view::npos) {
      if (bang + 2 != inner.size()) fault("a format has a bad conversion");
      conversion = inner[bang + 1];
      inner = inner.substr(0, bang);
    }
    Value v = lookup(inner);
    if (conversion == 'r' || conversion == 'a') v = Value(repr(v, interpreter_.budget()));
    if (conversion == 's') v = Value(interpreter_.text(v));
    return convert(v, spec_text);
  }

  Value lookup(std::string_view path) {
    size_t end = std::min(path.find_first_of(".["), path.size());
    std::string name(path.substr(0, end));
    Value v;
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) {
      auto index = name.empty() ? std::optional<int64_t>(next_++) : parse_int(name, 10);
      if (!index.has_value() || static_cast<size_t>(*index) >= args_.positional.size())
        fault("a format has no value for '{" + name + "}'");
      v = args_.positional[static_cast<size_t>(*index)];
    } else {
      auto at = std::find_if(args_.named.begin(), args_.named.end(),
                             [&](const auto& a) { return a.first == name; });
      if (at == args_.named.end()) fault("a format names '" + name + "', which was not given");
      v = at->second;
    }
    for (size_t i = end; i < path.size();) {
      if (path[i] == '.') {
        size_t stop = std::min(path.find_first_of(".[", i + 1), path.size());
        v = interpreter_.attribute(v, std::string(path.substr(i + 1, stop - i - 1)));
        i = stop;
      } else {
        size_t stop = path.find(']', i);
        if (stop == std::string_view::npos) fault("a format has '[' without ']'");
        std::string_view key = path.substr(i + 1, stop - i - 1);
        bool digits = !key.empty() && std::all_of(key.begin(), key.end(),
                                                  [](char c) { return c >= '0' && c <= '9'; });
        v = interpreter_.item(v, digits ? Value(*parse_int(key, 10)) : Value(key));
        i = stop + 1;
      }
      if (v.is_undefined()) fault(v.why_undefined());
    }
    return v;
  }

  std::string convert(const Value& v, std::string_view spec_text) {
    if (spec_text.empty()) return interpreter_.text(v);
    Spec spec = parse_spec(spec_text);
    bool real = std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
    if (v.is_string()) {
      if (spec.type != '\0' && spec.type != 's')
        fault(std::string("format '") + spec.type + "' does not take a str");
      return format_text(v.string(), spec);
    }
    if (!v.is_number()) fault("a format does not take " + v.type_name());
    if (spec.type == 's') fault("format 's' does not take " + v.type_name());
    if (v.is_bool() && spec.type == '\0') return format_text(interpreter_.text(v), spec);
    if (v.is_float() || real) {
      if (v.is_float() && !real && spec.type != '\0' && spec.type != 'n')
        fault(std::string("format '") + spec.type + "' does not take a float");
      return format_float(v.number(), spec);
    }
    return format_integer(v.integer(), spec);
  }

  std::string_view format_;
  const Args& args_;
  Interpreter& interpreter_;
  size_t at_ = 0;
  int64_t next_ = 0;
};

}  // namespace

std::string percent_format(const std::string& format, const Value& values,
                           Interpreter& interpreter) {
  return Percent(format, values, interpreter).run();
}

std::string brace_format(const std::string& format, const Args& args, Interpreter& interpreter) {
  return Brace(format, args, interpreter).run();
}

}  // namespace loongforge::data::jinja
