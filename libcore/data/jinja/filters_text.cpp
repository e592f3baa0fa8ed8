// Filters on text.
#include <algorithm>

#include "data/jinja/arguments.h"
#include "data/jinja/interpreter.h"
#include "data/jinja/strings.h"
#include "support/unicode.h"

namespace loongforge::data::jinja {
namespace {

Value upper_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters(args, "filter upper", {});
  return Value(support::to_upper(interpreter.text(input)));
}

Value lower_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters(args, "filter lower", {});
  return Value(support::to_lower(interpreter.text(input)));
}

Value title_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters(args, "filter title", {});
  return Value(title_words(interpreter.text(input)));
}

Value capitalize_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters(args, "filter capitalize", {});
  return Value(capitalize(interpreter.text(input)));
}

Value trim_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters p(args, "filter trim", {"chars"});
  std::string text = interpreter.text(input), chars = p.text(0, "");
  return Value(strip(text, p.given(0) ? &chars : nullptr, true, true));
}

Value replace_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters p(args, "filter replace", {"old", "new", "count"});
  std::string text = interpreter.text(input), from = interpreter.text(p.require(0)),
              to = interpreter.text(p.require(1));
  interpreter.budget().text((text.size() / std::max<size_t>(from.size(), 1) + 1) * to.size());
  return Value(replace_all(text, from, to, p.integer(2, -1)));
}

Value indent_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters p(args, "filter indent", {"width", "first", "blank"});
  std::string text = interpreter.text(input), indent;
  if (p.given(0) && p.get(0)->is_string()) {
    indent = p.get(0)->string();
  } else {
    int64_t width = p.integer(0, 4);
    if (width > 10000) fault("filter indent: a width of " + std::to_string(width) + " is too much");
    indent.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  }
  text += '\n';  // the reference does so too: a line end at the very end stays
  std::string out = p.boolean(1, false) ? indent : std::string();
  bool blank = p.boolean(2, false), first = true;
  for (std::string_view line : split_lines(text, false)) {
    if (!first) {
      out += '\n';
      if (blank || !line.empty()) {
        out += indent;
        interpreter.budget().text(indent.size());
      }
    }
    first = false;
    out += line;
  }
  return Value(std::move(out));
}

Value escape_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters(args, "filter escape", {});
  std::string out;
  for (char c : interpreter.text(input)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  interpreter.budget().text(out.size());
  return Value(std::move(out));
}

Value wordcount_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters(args, "filter wordcount", {});
  std::string text = interpreter.text(input);
  size_t words = 0;
  bool inside = false;
  for (std::string_view c : characters(text)) {
    int length;
    uint32_t code = support::decode_utf8(c.data(), &length);
    bool word =
        code == '_' || support::is_letter(code) || support::is_numeric(code);  // \w of Python's re
    words += word && !inside;
    inside = word;
  }
  return Value(words);
}

Value center_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters p(args, "filter center", {"width"});
  return Value(pad(interpreter.text(input), p.integer(0, 80), " ", '^'));
}

Value truncate_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters p(args, "filter truncate", {"length", "killwords", "end", "leeway"});
  std::string text = interpreter.text(input), end = p.text(2, "...");
  int64_t length = p.integer(0, 255), leeway = p.integer(3, 5);
  auto end_length = static_cast<int64_t>(support::count_code_points(end));
  if (length < end_length)
    fault("filter truncate: a length of " + std::to_string(length) +
          " has no room for its end mark");
  if (leeway < 0) fault("filter truncate: leeway is negative");
  std::vector<std::string_view> all = characters(text);
  if (static_cast<int64_t>(all.size()) <= length + std::min<int64_t>(leeway, 1'000'000'000))
    return Value(std::move(text));
  std::string cut;
  for (int64_t i = 0; i < length - end_length; ++i) cut += all[static_cast<size_t>(i)];
  if (!p.boolean(1, false)) cut = cut.substr(0, cut.rfind(' '));
  return Value(cut + end);
}

Value format_filter(Interpreter& interpreter, const Value& input, Args& args) {
  if (!args.positional.empty() && !args.named.empty())
    fault("filter format takes values or names, not both");
  if (args.named.empty())
    return Value(percent_format(interpreter.text(input), make_tuple(args.positional), interpreter));
  Members members;
  for (const auto& [name, value] : args.named) members.emplace_back(Value(name), value);
  return Value(percent_format(interpreter.text(input), make_dict(std::move(members)), interpreter));
}

std::string url_quote(std::string_view text) {
  constexpr std::string_view kSafe = "_.-~/";
  std::string out;
  for (char c : text) {
    bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                 kSafe.find(c) != std::string_view::npos;
    if (plain) {
      out += c;
    } else {
      constexpr char kHex[] = "0123456789ABCDEF";
      auto byte = static_cast<unsigned char>(c);
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

Value urlencode_filter(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters(args, "filter urlencode", {});
  if (input.is_dict() || input.is_list()) fault("filter urlencode is supported for text only");
  return Value(url_quote(interpreter.text(input)));
}

constexpr NamedFilter kFilters[] = {
    {"capitalize", capitalize_filter},
    {"center", center_filter},
    {"e", escape_filter},
    {"escape", escape_filter},
    {"format", format_filter},
    {"forceescape", escape_filter},
    {"indent", indent_filter},
    {"lower", lower_filter},
    {"replace", replace_filter},
    {"title", title_filter},
    {"trim", trim_filter},
    {"truncate", truncate_filter},
    {"upper", upper_filter},
    {"urlencode", urlencode_filter},
    {"wordcount", wordcount_filter},
};

}  // namespace

FilterFunction find_text_filter(std::string_view name) {
  for (const NamedFilter& filter : kFilters)
    if (filter.name == name) return filter.function;
  return nullptr;
}

}  // namespace loongforge::data::jinja
