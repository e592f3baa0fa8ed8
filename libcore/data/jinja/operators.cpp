// Python's arithmetic and slices.
#include <algorithm>
#include <cmath>

#include "data/jinja/interpreter.h"

namespace loongforge::data::jinja {
namespace {

[[noreturn]] void overflow() { fault("an integer leaves the range of 64 bits"); }

int64_t subtract(int64_t a, int64_t b) {
  int64_t r = 0;
  if (__builtin_sub_overflow(a, b, &r)) overflow();
  return r;
}

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == -1) return subtract(0, a);
  int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

int64_t floor_modulo(int64_t a, int64_t b) {
  if (b == -1) return 0;
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

double float_modulo(double a, double b) {
  double r = std::fmod(a, b);
  if (r == 0) return std::copysign(0.0, b);
  return (r < 0) != (b < 0) ? r + b : r;
}

Value integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) fault("division by zero");
    return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) overflow();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) overflow();
  }
  return Value(result);
}

Value integer_operation(std::string_view op, int64_t a, int64_t b) {
  int64_t r = 0;
  if (op == "-") return Value(subtract(a, b));
  if (op == "+" || op == "*") {
    if (op == "+" ? __builtin_add_overflow(a, b, &r) : __builtin_mul_overflow(a, b, &r)) overflow();
    return Value(r);
  }
  if (op == "**") return integer_power(a, b);
  if (b == 0) fault("division by zero");
  if (op == "/") return Value(static_cast<double>(a) / static_cast<double>(b));
  return Value(op == "//" ? floor_divide(a, b) : floor_modulo(a, b));
}

Value float_operation(std::string_view op, double a, double b) {
  if (op == "+") return Value(a + b);
  if (op == "-") return Value(a - b);
  if (op == "*") return Value(a * b);
  if (op == "**") {
    if (a == 0 && b < 0) fault("division by zero");
    if (a < 0 && b != std::floor(b)) fault("a power of a negative number is no real number");
    return Value(std::pow(a, b));
  }
  if (b == 0) fault("division by zero");
  if (op == "/") return Value(a / b);
  return Value(op == "//" ? std::floor((a - float_modulo(a, b)) / b) : float_modulo(a, b));
}

// A string, list or tuple times a number.
Value repeat(const Value& what, int64_t times, Budget& budget) {
  uint64_t n = times < 0 ? 0 : static_cast<uint64_t>(times);
  if (what.is_string()) {
    const std::string& unit = what.string();
    if (unit.empty()) return what;
    if (n > (uint64_t{1} << 40)) fault("a repeated string gets too long");
    budget.text(unit.size() * n);
    std::string text;
    text.reserve(unit.size() * n);
    for (uint64_t i = 0; i < n; ++i) text += unit;
    return Value(std::move(text));
  }
  const Values& unit = what.list().items;
  if (n > (uint64_t{1} << 32)) fault("a repeated list gets too long");
  budget.work(unit.size() * n);
  Values items;
  for (uint64_t i = 0; i < n; ++i) items.insert(items.end(), unit.begin(), unit.end());
  return make_list(std::move(items), what.list().kind);
}

bool is_sequence(const Value& v) {
  return v.is_string() || (v.is_list() && v.list().kind <= ListKind::kTuple);
}

size_t clamp_index(int64_t index, int64_t size, bool backwards) {
  if (index < 0) index += size;
  int64_t low = backwards ? -1 : 0, high = backwards ? size - 1 : size;
  return static_cast<size_t>(std::clamp(index, low, high) - low);  // offset by one when backwards
}

int64_t slice_part(const Value* part, int64_t otherwise) {
  if (part == nullptr) return otherwise;
  if (!part->is_integral()) fault("slice indices must be integers, not " + part->type_name());
  return part->integer();
}

// The positions that a slice of a sequence of `size` elements takes.
std::vector<size_t> slice_positions(size_t count, const Value* start, const Value* stop,
                                    const Value* step) {
  auto size = static_cast<int64_t>(count);
  int64_t by = slice_part(step, 1);
  if (by == 0) fault("slice step cannot be zero");
  std::vector<size_t> positions;
  if (by > 0) {
    auto from = static_cast<int64_t>(clamp_index(slice_part(start, 0), size, false));
    auto to = static_cast<int64_t>(clamp_index(slice_part(stop, size), size, false));
    for (int64_t i = from; i < to; i += std::min(by, size))
      positions.push_back(static_cast<size_t>(i));
  } else {
    int64_t from = start == nullptr
                       ? size - 1
                       : static_cast<int64_t>(clamp_index(slice_part(start, 0), size, true)) - 1;
    int64_t to = stop == nullptr
                     ? -1
                     : static_cast<int64_t>(clamp_index(slice_part(stop, 0), size, true)) - 1;
    int64_t back = by <= -size ? std::max<int64_t>(size, 1) : -by;
    for (int64_t i = from; i > to; i -= back) positions.push_back(static_cast<size_t>(i));
  }
  return positions;
}

}  // namespace

Value binary_operation(std::string_view op, const Value& a, const Value& b, Budget& budget) {
  for (const Value* v : {&a, &b})
    if (v->is_undefined()) fault(v->why_undefined());
  if (a.is_integral() && b.is_integral()) return integer_operation(op, a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return float_operation(op, a.number(), b.number());
  if (op == "+" && a.is_string() && b.is_string()) {
    budget.text(a.string().size() + b.string().size());
    return Value(a.string() + b.string());
  }
  if (op == "+" && is_sequence(a) && is_sequence(b) && a.is_list() && b.is_list() &&
      a.list().kind == b.list().kind) {
    Values items = a.list().items;
    items.insert(items.end(), b.list().items.begin(), b.list().items.end());
    budget.work(items.size());
    return make_list(std::move(items), a.list().kind);
  }
  if (op == "*" && is_sequence(a) && b.is_integral()) return repeat(a, b.integer(), budget);
  if (op == "*" && is_sequence(b) && a.is_integral()) return repeat(b, a.integer(), budget);
  fault("operator " + std::string(op) + " does not take '" + a.type_name() + "' and '" +
        b.type_name() + "'");
}

Value negate(const Value& v) {
  if (v.is_undefined()) fault(v.why_undefined());
  if (v.is_float()) return Value(-v.number());
  if (!v.is_integral()) fault("'" + v.type_name() + "' has no sign");
  return integer_operation("-", 0, v.integer());
}

Value slice_of(const Value& of, const Value* start, const Value* stop, const Value* step,
               Budget& budget) {
  if (of.is_undefined()) fault(of.why_undefined());
  if (of.is_string()) {
    budget.work(of.string().size() / 4);
    budget.text(of.string().size());
    std::vector<std::string_view> all = characters(of.string());
    std::string text;
    for (size_t i : slice_positions(all.size(), start, stop, step)) text += all[i];
    return Value(std::move(text));
  }
  if (!of.is_list() || of.list().kind >= ListKind::kView)
    return Value::undefined("'" + of.type_name() + " object' cannot be sliced");
  const Values& all = of.list().items;
  budget.work(all.size());
  Values items;
  for (size_t i : slice_positions(all.size(), start, stop, step)) items.push_back(all[i]);
  // A range's slice is a range, which prints differently; nothing else tells them apart.
  return make_list(std::move(items),
                   of.list().kind == ListKind::kTuple ? ListKind::kTuple : ListKind::kList);
}

}  // namespace loongforge::data::jinja
