// Tests: what stands behind "is".
#include "data/jinja/arguments.h"
#include "data/jinja/interpreter.h"
#include "support/unicode.h"

namespace loongforge::data::jinja {
namespace {

// A test without arguments.
template <bool (*Check)(const Value&)>
bool plain(Interpreter&, const Value& v, Args& args) {
  Parameters(args, "this test", {});
  return Check(v);
}

// A comparison with one argument.
template <bool (*Check)(const Value&, const Value&, Budget&)>
bool relation(Interpreter& interpreter, const Value& v, Args& args) {
  Parameters p(args, "this test", {"other"});
  return Check(v, p.require(0), interpreter.budget());
}

int64_t whole(const Value& v) {
  if (v.is_undefined()) fault(v.why_undefined());
  if (!v.is_integral()) fault("this test needs an integer, not " + v.type_name());
  return v.integer();
}

bool divisible(const Value& v, const Value& by, Budget&) {
  int64_t divisor = whole(by);
  if (divisor == 0) fault("division by zero");
  return divisor == -1 || whole(v) % divisor == 0;
}

// str.islower / isupper: at least one cased character and none of the other case.
bool has_case(Interpreter& interpreter, const Value& v, bool upper) {
  std::string text = interpreter.text(v);
  bool found = false;
  for (std::string_view c : characters(text)) {
    int length;
    uint32_t code = support::decode_utf8(c.data(), &length);
    if (support::is_title(code) || (upper ? support::is_lower(code) : support::is_upper(code)))
      return false;
    found = found || (upper ? support::is_upper(code) : support::is_lower(code));
  }
  return found;
}

bool is_sequence(const Value& v) {
  return v.is_string() || v.is_dict() || v.is_undefined() ||
         (v.is_list() && v.list().kind < ListKind::kView);
}
bool is_iterable(const Value& v) {
  return v.is_string() || v.is_dict() || v.is_list() || v.is_undefined();
}

struct NamedTest {
  std::string_view name;
  TestFunction function;
};

constexpr NamedTest kTests[] = {
    {"defined", plain<[](const Value& v) { return !v.is_undefined(); }>},
    {"undefined", plain<[](const Value& v) { return v.is_undefined(); }>},
    {"none", plain<[](const Value& v) { return v.is_none(); }>},
    {"boolean", plain<[](const Value& v) { return v.is_bool(); }>},
    {"true", plain<[](const Value& v) { return v.is_bool() && v.boolean(); }>},
    {"false", plain<[](const Value& v) { return v.is_bool() && !v.boolean(); }>},
    {"integer", plain<[](const Value& v) { return v.is_int(); }>},
    {"float", plain<[](const Value& v) { return v.is_float(); }>},
    {"number", plain<[](const Value& v) { return v.is_number(); }>},
    {"string", plain<[](const Value& v) { return v.is_string(); }>},
    {"mapping", plain<[](const Value& v) { return v.is_dict(); }>},
    {"sequence", plain<is_sequence>},
    {"iterable", plain<is_iterable>},
    {"callable", plain<[](const Value& v) { return v.is_object() && v.object().callable(); }>},
    {"odd", plain<[](const Value& v) { return whole(v) % 2 != 0; }>},
    {"even", plain<[](const Value& v) { return whole(v) % 2 == 0; }>},
    {"escaped", plain<[](const Value&) { return false; }>},
    {"divisibleby", relation<divisible>},
    {"==", relation<[](const Value& a, const Value& b, Budget& g) { return equal(a, b, g); }>},
    {"eq", relation<[](const Value& a, const Value& b, Budget& g) { return equal(a, b, g); }>},
    {"equalto", relation<[](const Value& a, const Value& b, Budget& g) { return equal(a, b, g); }>},
    {"!=", relation<[](const Value& a, const Value& b, Budget& g) { return !equal(a, b, g); }>},
    {"ne", relation<[](const Value& a, const Value& b, Budget& g) { return !equal(a, b, g); }>},
    {">",
     relation<[](const Value& a, const Value& b, Budget& g) { return compare(a, b, g) == 1; }>},
    {"gt",
     relation<[](const Value& a, const Value& b, Budget& g) { return compare(a, b, g) == 1; }>},
    {"greaterthan",
     relation<[](const Value& a, const Value& b, Budget& g) { return compare(a, b, g) == 1; }>},
    {">=", relation<[](const Value& a, const Value& b, Budget& g) {
       int c = compare(a, b, g);
       return c == 0 || c == 1;
     }>},
    {"ge", relation<[](const Value& a, const Value& b, Budget& g) {
       int c = compare(a, b, g);
       return c == 0 || c == 1;
     }>},
    {"<", relation<[](const Value& a, const Value& b, Budget& g) { return compare(a, b, g) < 0; }>},
    {"lt",
     relation<[](const Value& a, const Value& b, Budget& g) { return compare(a, b, g) < 0; }>},
    {"lessthan",
     relation<[](const Value& a, const Value& b, Budget& g) { return compare(a, b, g) < 0; }>},
    {"<=",
     relation<[](const Value& a, const Value& b, Budget& g) { return compare(a, b, g) <= 0; }>},
    {"le",
     relation<[](const Value& a, const Value& b, Budget& g) { return compare(a, b, g) <= 0; }>},
    {"in", relation<[](const Value& a, const Value& b, Budget& g) { return contains(b, a, g); }>},
    {"sameas", relation<[](const Value& a, const Value& b, Budget&) { return a.same_as(b); }>},
};

bool lower_test(Interpreter& interpreter, const Value& v, Args&) {
  return has_case(interpreter, v, false);
}
bool upper_test(Interpreter& interpreter, const Value& v, Args&) {
  return has_case(interpreter, v, true);
}

bool filter_test(Interpreter&, const Value& v, Args&) {
  if (!v.is_string()) return false;
  const std::string& name = v.string();
  return find_filter(name) != nullptr || find_text_filter(name) != nullptr ||
         find_select_filter(name) != nullptr;
}

bool test_test(Interpreter&, const Value& v, Args&) {
  return v.is_string() && find_test(v.string()) != nullptr;
}

}  // namespace

TestFunction find_test(std::string_view name) {
  if (name == "lower") return lower_test;
  if (name == "upper") return upper_test;
  if (name == "filter") return filter_test;
  if (name == "test") return test_test;
  for (const NamedTest& test : kTests)
    if (test.name == name) return test.function;
  return nullptr;
}

}  // namespace loongforge::data::jinja
