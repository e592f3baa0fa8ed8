#include "isa_verify/operation.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "base/error.h"
#include "isa_verify/operation_text.h"

namespace loongforge::isa_verify {
namespace {

using kernels::Isa;

// Of one file: far above every table here, and no wait.
constexpr size_t kMostOperations = 20000, kMostOfRow = 64, kLongestRow = 4096;

int64_t number_of(std::string_view text, const std::string& where) {
  int64_t value = 0;
  const auto got = std::from_chars(text.data(), text.data() + text.size(), value);
  if (got.ec != std::errc() || got.ptr != text.data() + text.size())
    throw_bad_data(where, "'" + std::string(text) + "' is no number");
  return value;
}

std::vector<Isa> isas_of(std::string_view line, const std::string& where) {
  std::vector<Isa> isas;
  for (const std::string& word : parts_of(line, ' ')) {
    if (word.empty()) continue;
    Isa isa{};
    if (!kernels::parse_isa(word.c_str(), &isa) || isa == Isa::kScalar)
      throw_bad_data(where, "'" + word + "' is no vector instruction set",
                     "write lsx, lasx, avx2 or avx512");
    isas.push_back(isa);
  }
  if (isas.empty()) throw_bad_data(where, "isa names no instruction set");
  return isas;
}

// "k.u8 = k & 31"
Given given_of(std::string_view text, const std::string& where) {
  constexpr const char* kNames[] = {"d", "j", "k", "a", "r", "m"};
  const size_t dot = text.find('.');
  const std::string_view name = trimmed(text.substr(0, dot));
  for (size_t i = 0; dot != std::string_view::npos && i < std::size(kNames); ++i) {
    if (name != kNames[i]) continue;
    Given given{static_cast<Given::Input>(i), Formula::parse(text.substr(dot + 1), where)};
    if (given.formula.target() == Target::kVector) return given;
  }
  throw_bad_data(where, "given '" + std::string(text) + "' names no input",
                 "write as: given k.u8 = k & 31");
}

void read_attribute(Operation* operation, const std::string& text, const std::string& where) {
  if (text == "optional") {
    operation->optional = true;
  } else if (text.starts_with("ulp ")) {
    const int64_t ulp = number_of(trimmed(std::string_view(text).substr(4)), where);
    if (ulp < 0 || !operation->float_result())
      throw_bad_data(where, "ulp is for floating-point results, and not negative");
    operation->ulp = static_cast<uint64_t>(ulp);
  } else if (text.starts_with("given ")) {
    operation->given.push_back(given_of(std::string_view(text).substr(6), where));
  } else if (text.starts_with("imm ")) {
    const size_t dots = text.find("..");
    Immediate& immediate = operation->immediates[0];
    if (dots == std::string::npos || immediate.bits == 0)
      throw_bad_data(where, "imm needs an immediate and a range, as imm 0..15");
    const int64_t low = number_of(trimmed(std::string_view(text).substr(4, dots - 4)), where);
    const int64_t high = number_of(trimmed(std::string_view(text).substr(dots + 2)), where);
    if (low > high || low < immediate.low || high > immediate.high || low % immediate.scale != 0)
      throw_bad_data(where, "imm: the range does not fit the immediate");
    immediate.low = low;
    immediate.high = high;
  } else {
    throw_bad_data(where, "'" + text + "' is not understood", "known: ulp N, optional, imm, given");
  }
}

// What a row says is printed in tables.
void check_line(std::string_view line, const std::string& where) {
  if (line.size() > kLongestRow)
    throw_bad_data(where, "the line is longer than " + std::to_string(kLongestRow) + " characters");
  for (const char c : line)
    if ((c < ' ' || c > '~') && c != '\t')
      throw_bad_data(where, "a character outside ASCII, or one that is not printed",
                     "a comment, which may hold such, is a line of its own that begins with #");
}

// mnemonic ; encoding ; operands ; formula ; attributes
Operation operation_of(const std::string& row, Isa isa, size_t which, int variant,
                       const std::string& where) {
  const std::vector<std::string> fields = parts_of(row, ';');
  if (fields.size() < 4)
    throw_bad_data(where, "a row has at least four fields",
                   "mnemonic ; encoding ; operands ; formula");
  Operation operation;
  operation.isa = isa;
  operation.place = where;
  operation.mnemonic = (which > 0 ? "x" : "") + fields[0];
  operation.operands = fields[2];
  operation.formula_text = fields[3];
  if (operation.mnemonic.empty()) throw_bad_data(where, "the mnemonic is missing");
  operation.formula = Formula::parse(fields[3], where);
  const std::vector<std::string> encodings = parts_of(fields[1], '/');
  if (is_loongarch(isa)) {
    // "base/base+step": the step is common.
    std::string encoding = encodings[std::min(which, encodings.size() - 1)];
    if (which >= encodings.size()) throw_bad_data(where, "an encoding is missing for each ISA");
    const size_t step = encodings.back().find('+');
    if (step != std::string::npos && encoding.find('+') == std::string::npos)
      encoding += encodings.back().substr(step);
    read_loongarch(&operation, encoding, variant, where);
  } else {
    read_x86(&operation, fields[1], where);
  }
  for (size_t i = 4; i < fields.size(); ++i) read_attribute(&operation, fields[i], where);
  if (operation.formula.target() == Target::kVector && operation.vector_bytes == 0)
    throw_bad_data(where, "the result is a vector, but no operand is one");
  return operation;
}

bool meet(const Immediate& a, const Immediate& b) { return a.low <= b.high && b.low <= a.high; }

// A form may stand in several rows, each for other immediates. forms: where each stands.
void add_operation(Operation made, std::vector<Operation>* operations,
                   std::unordered_map<std::string, std::vector<size_t>>* forms) {
  std::vector<size_t>& known =
      (*forms)[std::string(kernels::isa_name(made.isa)) + " " + made.form()];
  for (const size_t i : known) {
    const Operation& other = (*operations)[i];
    if (meet(made.immediates[0], other.immediates[0]) &&
        meet(made.immediates[1], other.immediates[1]))
      throw_bad_data(made.place, made.form() + " stands at " + other.place + " already");
  }
  known.push_back(operations->size());
  operations->push_back(std::move(made));
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string> parts_of(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(separator, start), text.size());
    parts.emplace_back(trimmed(text.substr(start, end - start)));
    start = end + 1;
  }
  return parts;
}

std::vector<std::string> expand_groups(const std::string& row, const std::string& where) {
  struct Group {
    size_t open, close;
    std::vector<std::string> words;
  };
  std::vector<Group> groups;
  for (size_t open = row.find('{'); open != std::string::npos; open = row.find('{', open + 1)) {
    const size_t close = row.find('}', open);
    if (close == std::string::npos) throw_bad_data(where, "'{' is not closed");
    const std::string_view inside = std::string_view(row).substr(open + 1, close - open - 1);
    if (inside.find(',') == std::string_view::npos) continue;
    groups.push_back({open, close, parts_of(inside, ',')});
    if (groups.back().words.size() > kMostOfRow)
      throw_bad_data(where, "a group has more than " + std::to_string(kMostOfRow) + " words");
    if (groups.back().words.size() != groups.front().words.size())
      throw_bad_data(where, "groups in braces differ in length");
  }
  if (groups.empty()) return {row};
  std::vector<std::string> rows;
  for (size_t i = 0; i < groups.front().words.size(); ++i) {
    std::string made;
    size_t from = 0;
    for (const Group& group : groups) {
      made += row.substr(from, group.open - from) + group.words[i];
      from = group.close + 1;
    }
    rows.push_back(made + row.substr(from));
  }
  return rows;
}

std::vector<Operation> parse_operations(std::string_view text, const std::string& name) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // an editor's mark of UTF-8
  std::vector<Operation> operations;
  std::unordered_map<std::string, std::vector<size_t>> forms;
  std::vector<Isa> isas;
  int number = 0;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    const std::string line(trimmed(text.substr(start, end - start)));
    start = end + 1;
    const std::string where = name + ":" + std::to_string(++number);
    if (line.empty() || line[0] == '#') continue;
    check_line(line, where);
    if (line.starts_with("isa ")) {
      isas = isas_of(std::string_view(line).substr(4), where);
      continue;
    }
    if (isas.empty())
      throw_bad_data(where, "no instruction set is named yet", "begin with a line as: isa lasx");
    const std::vector<std::string> rows = expand_groups(line, where);
    if (operations.size() + isas.size() * rows.size() > kMostOperations)
      throw_bad_data(where, "more than " + std::to_string(kMostOperations) + " operations",
                     "write several files");
    for (size_t which = 0; which < isas.size(); ++which)
      for (size_t variant = 0; variant < rows.size(); ++variant)
        add_operation(
            operation_of(rows[variant], isas[which], which, static_cast<int>(variant), where),
            &operations, &forms);
  }
  return operations;
}

std::vector<uint8_t> encode(const Operation& operation, int64_t immediate, int64_t immediate2) {
  std::vector<uint8_t> code = operation.code;
  const std::array<int64_t, 2> values = {immediate, immediate2};
  if (!is_loongarch(operation.isa)) {
    if (operation.immediates[0].bits > 0) code.push_back(static_cast<uint8_t>(immediate));
    return code;
  }
  uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word |= uint32_t{code[static_cast<size_t>(i)]} << (8 * i);
  for (size_t i = 0; i < 2; ++i) {
    const Immediate& field = operation.immediates[i];
    if (field.bits == 0) continue;
    const auto value = static_cast<uint32_t>(values[i] / field.scale);
    word |= (value & ((1u << field.bits) - 1)) << field.position;
  }
  for (int i = 0; i < 4; ++i) code[static_cast<size_t>(i)] = static_cast<uint8_t>(word >> (8 * i));
  return code;
}

std::string assembly(const Operation& operation, int64_t immediate, int64_t immediate2) {
  return is_loongarch(operation.isa) ? loongarch_assembly(operation, immediate, immediate2)
                                     : x86_assembly(operation, immediate);
}

std::vector<int64_t> immediate_values(const Immediate& immediate) {
  if (immediate.bits == 0) return {0};
  std::vector<int64_t> values;
  if ((immediate.high - immediate.low) / immediate.scale < 256) {
    for (int64_t v = immediate.low; v <= immediate.high; v += immediate.scale) values.push_back(v);
    return values;
  }
  const auto add = [&](int64_t v) {
    if (v >= immediate.low && v <= immediate.high && v % immediate.scale == 0 &&
        std::find(values.begin(), values.end(), v) == values.end())
      values.push_back(v);
  };
  for (int64_t v : {immediate.low, immediate.high, int64_t{0}, int64_t{immediate.scale}}) add(v);
  for (int64_t p = 1; p <= immediate.high; p *= 2)
    for (int64_t v : {p - 1, p, p + 1, -p, -p - 1}) add(v);
  // Some between, evenly: the stride is prime to powers of two.
  for (int64_t v = immediate.low; v <= immediate.high; v += 37 * immediate.scale) add(v);
  return values;
}

bool is_loongarch(Isa isa) { return isa == Isa::kLsx || isa == Isa::kLasx; }

NanRule nan_rule(Isa isa) { return is_loongarch(isa) ? NanRule::kLoongArch : NanRule::kX86; }

}  // namespace loongforge::isa_verify
