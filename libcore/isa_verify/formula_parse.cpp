#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "isa_verify/formula.h"

namespace loongforge::isa_verify {
namespace {

using Op = FormulaNode::Op;

struct Binary {
  const char* sign;
  int level;             // higher binds closer
  Op integer, floating;  // kConstant: there is none
  bool swapped = false;  // a > b is b < a
};
constexpr Binary kBinaries[] = {
    {"|", 1, Op::kOr, Op::kConstant},
    {"^", 2, Op::kXor, Op::kConstant},
    {"&", 3, Op::kAnd, Op::kConstant},
    {"==", 4, Op::kEqual, Op::kFEqual},
    {"!=", 4, Op::kNotEqual, Op::kFNotEqual},
    {"<<", 6, Op::kShiftLeft, Op::kConstant},
    {">>", 6, Op::kShiftRight, Op::kConstant},
    {"<=", 5, Op::kLessEqual, Op::kFLessEqual},
    {">=", 5, Op::kLessEqual, Op::kFLessEqual, true},
    {"<", 5, Op::kLess, Op::kFLess},
    {">", 5, Op::kLess, Op::kFLess, true},
    {"+", 7, Op::kAdd, Op::kFAdd},
    {"-", 7, Op::kSubtract, Op::kFSubtract},
    {"*", 8, Op::kMultiply, Op::kFMultiply},
    {"/", 8, Op::kDivide, Op::kFDivide},
    {"%", 8, Op::kModulo, Op::kConstant},
};

// What a function takes: 'i' an integer, 'f' a floating-point value (of the same type each), 't' a
// type, 'm' a rounding.
struct Function {
  const char* name;
  const char* takes;
  Op op;
  bool floating;  // the result has the operands' type, else it is an integer
  FmaSigns signs{};
};
constexpr Function kFunctions[] = {
    {"min", "ii", Op::kMin, false},
    {"max", "ii", Op::kMax, false},
    {"abs", "i", Op::kAbs, false},
    {"ushr", "ii", Op::kShiftRightUnsigned, false},
    {"rsar", "ii", Op::kRoundShift, false},
    {"rshr", "ii", Op::kRoundShiftUnsigned, false},
    {"sat", "it", Op::kSaturate, false},
    {"usat", "it", Op::kSaturateUnsigned, false},
    {"clz", "ii", Op::kLeadingZeros, false},
    {"popcount", "i", Op::kPopulation, false},
    {"in", "ii", Op::kIn, false},
    {"collect", "ti", Op::kCollect, false},
    {"fma", "fff", Op::kFma, true},
    {"fms", "fff", Op::kFma, true, {false, true, false}},
    {"fnma", "fff", Op::kFma, true, {true, false, false}},
    {"fnms", "fff", Op::kFma, true, {true, true, false}},
    {"nfma", "fff", Op::kFma, true, {false, false, true}},
    {"nfms", "fff", Op::kFma, true, {false, true, true}},
    {"sqrt", "f", Op::kFSqrt, true},
    {"recip", "f", Op::kFRecip, true},
    {"rsqrt", "f", Op::kFRsqrt, true},
    {"maxnum", "ff", Op::kMaxNum, true},
    {"minnum", "ff", Op::kMinNum, true},
    {"maxmag", "ff", Op::kMaxMagnitude, true},
    {"minmag", "ff", Op::kMinMagnitude, true},
    {"x86max", "ff", Op::kX86Max, true},
    {"x86min", "ff", Op::kX86Min, true},
    {"rint", "fm", Op::kRoundIntegral, true},
    {"logb", "f", Op::kLogB, true},
    {"fabs", "f", Op::kFAbs, true},
    {"daz", "f", Op::kFlushSubnormal, true},
    {"class", "f", Op::kClass, false},
    {"un", "ff", Op::kUnordered, false},
    {"bits", "f", Op::kBits, false},
    {"toint", "ftm", Op::kToInt, false},
    {"as", "it", Op::kAs, false},
};

struct Named {
  const char* name;
  Op op;
};
constexpr Named kValues[] = {{"n", Op::kN},         {"e", Op::kE},           {"l", Op::kL},
                             {"i", Op::kImmediate}, {"i2", Op::kImmediate2}, {"r", Op::kGeneral},
                             {"m", Op::kMask},      {"m2", Op::kMask2}};

constexpr const char* kRegisterNames[] = {"d", "j", "k", "a", "mem"};
constexpr const char* kTargetNames[] = {"d", "mem", "r", "m", "f"};

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

class FormulaParser {
 public:
  FormulaParser(std::string_view text, const std::string& where) : text_(text), where_(where) {
    result_.where_ = where;
  }

  Formula run() {
    std::string_view word = name();
    if (word == "none") {
      if (!at_end()) fail("there is more behind none");
      return std::move(result_);
    }
    result_.target_ = Target::kVector;
    for (size_t i = 0; i < std::size(kTargetNames); ++i)
      if (word == kTargetNames[i]) {
        result_.target_ = static_cast<Target>(i);
        if (!take(".")) fail(std::string(word) + " needs a type, as " + std::string(word) + ".u32");
        word = name();
      }
    if (!parse_type(word, &result_.type_)) fail("'" + std::string(word) + "' is no type");
    if (!take("=")) fail("'=' is missing");
    const int root = ternary();
    if (!at_end()) fail("'" + std::string(text_.substr(at_, 12)) + "' is not understood");
    // A float stands for its bits where an integer is asked for only when bits() says so. A mask's
    // and a flag's type is that of the elements.
    const bool bit = result_.target_ == Target::kMask;
    if (node(root).floating != (is_float(result_.type_) && !bit) ||
        (node(root).floating && node(root).type != result_.type_))
      fail(std::string("the expression is not of type ") +
           (bit ? "integer" : type_name(result_.type_)));
    return std::move(result_);
  }

 private:
  static constexpr size_t kMostNodes = 500;
  static constexpr int kDeepest = 40;

  [[noreturn]] void fail(const std::string& what) const {
    throw_bad_data(where_, "formula '" + std::string(text_) + "': " + what);
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool at_end() {
    skip();
    return at_ == text_.size();
  }
  bool take(std::string_view word) {
    skip();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  std::string_view name() {
    skip();
    const size_t start = at_;
    while (at_ < text_.size() && is_name_char(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }
  void expect(std::string_view word) {
    if (!take(word))
      fail("'" + std::string(word) + "' is missing before '" + std::string(text_.substr(at_, 12)) +
           "'");
  }

  const FormulaNode& node(int index) const { return result_.nodes_[static_cast<size_t>(index)]; }
  int add(FormulaNode made) {
    if (result_.nodes_.size() == kMostNodes) fail("it is too long");
    result_.nodes_.push_back(made);
    return static_cast<int>(result_.nodes_.size()) - 1;
  }
  void want(int index, bool floating, const char* whose) const {
    if (node(index).floating != floating)
      fail(std::string(whose) + " takes " + (floating ? "a floating-point value" : "an integer"));
  }

  int ternary() {
    if (++depth_ > kDeepest) fail("it is nested too deep");
    const int condition = binary(1);
    int result = condition;
    if (take("?")) {
      want(condition, false, "?:");
      const int yes = ternary();
      expect(":");
      const int no = ternary();
      if (node(yes).floating != node(no).floating ||
          (node(yes).floating && node(yes).type != node(no).type))
        fail("both sides of ?: must be of one type");
      FormulaNode made = node(yes);
      made.op = Op::kSelect;
      made.children = {condition, yes, no};
      result = add(made);
    }
    --depth_;
    return result;
  }

  const Binary* binary_sign() {
    skip();
    for (const char* pair : {"==", "!=", "<<", ">>", "<=", ">="})
      if (text_.substr(at_, 2) == pair) return find_sign(pair);
    return at_ < text_.size() ? find_sign(text_.substr(at_, 1)) : nullptr;
  }
  static const Binary* find_sign(std::string_view sign) {
    for (const Binary& b : kBinaries)
      if (sign == b.sign) return &b;
    return nullptr;
  }

  int binary(int level) {
    int left = unary();
    for (const Binary* b; (b = binary_sign()) != nullptr && b->level >= level;) {
      at_ += std::string_view(b->sign).size();
      int right = binary(b->level + 1);
      FormulaNode made;
      const bool floating = node(left).floating;
      if (floating != node(right).floating ||
          (floating && (node(left).type != node(right).type || b->floating == Op::kConstant)))
        fail(std::string("the operands of ") + b->sign + " do not fit");
      made.op = floating ? b->floating : b->integer;
      made.floating = floating && b->level >= 7;
      made.type = made.from = node(left).type;
      if (b->swapped) std::swap(left, right);
      made.children = {left, right, -1};
      left = add(made);
    }
    return left;
  }

  int unary() {
    if (++depth_ > kDeepest) fail("it is nested too deep");
    int result = 0;
    skip();
    const char sign = at_ < text_.size() ? text_[at_] : '\0';
    if (sign == '-' || sign == '~' || sign == '!') {
      ++at_;
      const int inner = unary();
      FormulaNode made;
      made.floating = node(inner).floating;
      made.type = made.from = node(inner).type;
      if (sign != '-') want(inner, false, "~ or !");
      made.op = sign == '~'     ? Op::kInvert
                : sign == '!'   ? Op::kNot
                : made.floating ? Op::kFNegate
                                : Op::kNegate;
      made.children[0] = inner;
      result = add(made);
    } else if (take("(")) {
      result = ternary();
      expect(")");
    } else {
      result = primary();
    }
    --depth_;
    return result;
  }

  int number(std::string_view word) {
    uint64_t value = 0;
    const bool hex = word.starts_with("0x");
    const char* first = word.data() + (hex ? 2 : 0);
    const auto got = std::from_chars(first, word.data() + word.size(), value, hex ? 16 : 10);
    if (got.ec != std::errc() || got.ptr != word.data() + word.size())
      fail("'" + std::string(word) + "' is no number");
    FormulaNode made;
    made.constant = static_cast<Int128>(value);
    return add(made);
  }

  int primary() {
    const std::string_view word = name();
    if (word.empty()) fail("a value is missing at '" + std::string(text_.substr(at_, 12)) + "'");
    if (word[0] >= '0' && word[0] <= '9') return number(word);
    skip();
    if (at_ < text_.size() && text_[at_] == '(') return call(word);
    for (const Named& value : kValues)
      if (word == value.name) {
        FormulaNode made;
        made.op = value.op;
        return add(made);
      }
    for (size_t i = 0; i < std::size(kRegisterNames); ++i)
      if (word == kRegisterNames[i]) return load(static_cast<Register>(i));
    fail("'" + std::string(word) + "' is not known");
  }

  int load(Register reg) {
    FormulaNode made;
    made.op = Op::kLoad;
    made.reg = reg;
    made.type = result_.type_;
    if (take(".")) {
      const std::string_view word = name();
      if (!parse_type(word, &made.type)) fail("'" + std::string(word) + "' is no type");
    }
    if (take("[")) {
      made.children[0] = ternary();
      want(made.children[0], false, "an index");
      expect("]");
    }
    made.floating = is_float(made.type);
    made.from = made.type;
    return add(made);
  }

  // type(x): an integer cut to the type; a number converted to a floating-point type.
  int cast(Type type) {
    expect("(");
    const int inner = ternary();
    expect(")");
    FormulaNode made;
    made.type = type;
    made.from = node(inner).type;
    made.children[0] = inner;
    made.floating = is_float(type);
    made.op = !made.floating ? Op::kCast : node(inner).floating ? Op::kConvert : Op::kFromInt;
    if (!made.floating) want(inner, false, "a cast to an integer");
    return add(made);
  }

  int call(std::string_view word) {
    if (Type type{}; parse_type(word, &type)) return cast(type);
    const auto found = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                    [&](const Function& f) { return word == f.name; });
    if (found == std::end(kFunctions)) fail("there is no function " + std::string(word));
    FormulaNode made;
    made.op = found->op;
    made.signs = found->signs;
    made.floating = found->floating;
    expect("(");
    const bool collects = made.op == Op::kCollect;
    if (collects && collecting_) fail("collect() within collect()");  // evaluation would not end
    collecting_ = collecting_ || collects;
    size_t values = 0;
    for (const char* kind = found->takes; *kind != '\0'; ++kind) {
      if (kind != found->takes) expect(",");
      if (*kind == 't') {
        const std::string_view type = name();
        if (!parse_type(type, &made.type)) fail("'" + std::string(type) + "' is no type");
      } else if (*kind == 'm') {
        made.rounding = rounding();
      } else {
        const int inner = ternary();
        want(inner, *kind == 'f', found->name);
        if (*kind == 'f') {
          if (values > 0 && node(inner).type != made.from)
            fail("types differ in " + std::string(word));
          made.from = node(inner).type;
        }
        made.children[values++] = inner;
      }
    }
    expect(")");
    collecting_ = collecting_ && !collects;
    if (made.floating) made.type = made.from;
    if (made.op == Op::kAs) {
      made.floating = is_float(made.type);
      made.from = made.type;
      if (!made.floating) fail("as() takes a floating-point type");
    } else if ((made.op == Op::kToInt || made.op == Op::kSaturate ||
                made.op == Op::kSaturateUnsigned) &&
               is_float(made.type)) {
      fail(std::string(word) + " takes an integer type");
    } else if (made.op == Op::kToInt && type_bytes(made.type) > 8) {
      fail("toint takes an integer type of at most 64 bits");
    }
    return add(made);
  }

  Rounding rounding() {
    const std::string_view word = name();
    constexpr const char* kNames[] = {"rne", "rz", "rp", "rm"};
    for (size_t i = 0; i < std::size(kNames); ++i)
      if (word == kNames[i]) return static_cast<Rounding>(i);
    fail("'" + std::string(word) + "' is no rounding (rne, rz, rp, rm)");
  }

  std::string_view text_;
  const std::string& where_;
  size_t at_ = 0;
  int depth_ = 0;
  bool collecting_ = false;  // within collect()
  Formula result_;
};

Formula Formula::parse(std::string_view text, const std::string& where) {
  return FormulaParser(text, where).run();
}

}  // namespace loongforge::isa_verify
