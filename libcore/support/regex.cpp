#include "support/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/error.h"

namespace loongforge::support {
namespace {

constexpr size_t kJitStackStart = size_t{32} << 10;
constexpr size_t kJitStackMax = size_t{4} << 20;
constexpr uint32_t kMatchLimit = 10'000'000;
constexpr uint32_t kHeapLimitKib = 256u << 10;

// White_Space and \w of Unicode UTS 18 as class members. PCRE2's own \s has U+180E in addition, its
// \w lacks marks.
constexpr const char* kSpaceSet = "\\t-\\r\\x{85}\\p{Z}";
constexpr const char* kWordSet = "\\p{L}\\p{M}\\p{Nd}\\p{Pc}";
constexpr const char* kHexSet = "0-9A-Fa-f";

struct SetEscape {
  const char* members;
  bool negated;
};

// The escape as a set, or members == nullptr where PCRE2 means the same as Oniguruma.
SetEscape set_escape(char c) {
  switch (c) {
    case 's':
      return {kSpaceSet, false};
    case 'S':
      return {kSpaceSet, true};
    case 'w':
      return {kWordSet, false};
    case 'W':
      return {kWordSet, true};
    case 'h':
      return {kHexSet, false};
    case 'H':
      return {kHexSet, true};
    default:
      return {nullptr, false};
  }
}

[[noreturn]] void unsupported(std::string_view pattern, std::string_view where,
                              const std::string& what) {
  throw_bad_data(std::string(where), "regular expression '" + std::string(pattern) + "': " + what);
}

// Translates one pattern; keeps whether it stands inside [...].
class Translator {
 public:
  Translator(std::string_view pattern, std::string_view where) : pattern_(pattern), where_(where) {}

  std::string run() {
    while (pos_ < pattern_.size()) {
      char c = pattern_[pos_];
      if (c == '\\') {
        escape();
      } else if (in_class_) {
        class_char(c);
      } else {
        plain_char(c);
      }
    }
    return std::move(out_);
  }

 private:
  void escape() {
    if (pos_ + 1 >= pattern_.size()) unsupported(pattern_, where_, "ends in a backslash");
    char c = pattern_[pos_ + 1];
    if (c == 'u') return hex_escape();
    SetEscape set = set_escape(c);
    if (set.members == nullptr) {
      out_ += pattern_.substr(pos_, 2);
    } else if (!in_class_) {
      out_ += set.negated ? "[^" : "[";
      out_ += set.members;
      out_ += ']';
    } else if (!set.negated) {
      out_ += set.members;
    } else if (c == 'S') {
      out_ += "\\S";  // a complement inside a set has no other spelling; it lacks U+180E
    } else {
      unsupported(pattern_, where_, std::string("\\") + c + " inside [...] is not supported");
    }
    pos_ += 2;
    class_start_ = false;
  }

  void hex_escape() {
    std::string_view digits = pattern_.substr(pos_ + 2, 4);
    bool hex = digits.size() == 4 && std::all_of(digits.begin(), digits.end(), [](unsigned char d) {
                 return std::isxdigit(d) != 0;
               });
    if (!hex) unsupported(pattern_, where_, "\\u needs four hexadecimal digits");
    out_ += "\\x{" + std::string(digits) + "}";
    pos_ += 6;
    class_start_ = false;
  }

  void class_char(char c) {
    if (c == '[') {
      size_t end = pattern_.find(":]", pos_);
      if (pattern_.substr(pos_, 2) != "[:" || end == std::string_view::npos)
        unsupported(pattern_, where_, "a set inside a set is not supported");
      out_ += pattern_.substr(pos_, end + 2 - pos_);
      pos_ = end + 2;
      class_start_ = false;
      return;
    }
    if (pattern_.substr(pos_, 2) == "&&")
      unsupported(pattern_, where_, "set intersection (&&) is not supported");
    if (c == ']' && !class_start_) in_class_ = false;
    class_start_ = class_start_ && c == '^' && out_.back() == '[';
    out_ += c;
    ++pos_;
  }

  void plain_char(char c) {
    if (c == '[') {
      in_class_ = class_start_ = true;
    } else if (c == '(' && pattern_.substr(pos_, 2) == "(?") {
      for (size_t i = pos_ + 2;
           i < pattern_.size() && (std::islower(pattern_[i]) != 0 || pattern_[i] == '-'); ++i)
        if (pattern_[i] == 'm') unsupported(pattern_, where_, "option (?m) is not supported");
    }
    out_ += c;
    ++pos_;
  }

  std::string_view pattern_, where_;
  size_t pos_ = 0;
  bool in_class_ = false, class_start_ = false;
  std::string out_;
};

std::string pcre2_message(int code) {
  unsigned char buffer[160];
  if (pcre2_get_error_message(code, buffer, sizeof buffer) < 0)
    return "error " + std::to_string(code);
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

std::string pattern_for_pcre2(std::string_view pattern, std::string_view where) {
  return Translator(pattern, where).run();
}

struct Regex::Code {
  pcre2_code* code = nullptr;
  bool jit = false;
  ~Code() { pcre2_code_free(code); }
};

struct Regex::Matcher::State {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(kJitStackStart, kJitStackMax, nullptr);
  State() {
    if (data == nullptr || context == nullptr)
      throw_failed({}, "no memory for a regular expression's match state");
    if (stack != nullptr) pcre2_jit_stack_assign(context, nullptr, stack);
    pcre2_set_match_limit(context, kMatchLimit);
    pcre2_set_heap_limit(context, kHeapLimitKib);
  }
  ~State() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
};

Regex::Matcher::Matcher() : state_(std::make_unique<State>()) {}
Regex::Matcher::~Matcher() = default;
Regex::Matcher::Matcher(Matcher&&) noexcept = default;
Regex::Matcher& Regex::Matcher::operator=(Matcher&&) noexcept = default;

Regex::Regex(std::string_view pattern, std::string_view where)
    : code_(std::make_unique<Code>()), pattern_(pattern), where_(where) {
  std::string translated = pattern_for_pcre2(pattern, where);
  int error = 0;
  PCRE2_SIZE at = 0;
  // MULTILINE: in Oniguruma's syntax ^ and $ always stand for line ends.
  code_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                              PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                              &error, &at, nullptr);
  if (code_->code == nullptr)
    unsupported(
        pattern, where,
        pcre2_message(error) + " at offset " + std::to_string(at) + " of '" + translated + "'");
  // Without machine code for this CPU PCRE2 interprets: slower, same matches.
  code_->jit = pcre2_jit_compile(code_->code, PCRE2_JIT_COMPLETE) == 0;
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

bool Regex::find(Matcher& matcher, std::string_view subject, size_t start, size_t* begin,
                 size_t* end) const {
  auto* state = matcher.state_.get();
  auto text = reinterpret_cast<PCRE2_SPTR>(subject.data() != nullptr ? subject.data() : "");
  auto interpret = [&](uint32_t options) {
    return pcre2_match(code_->code, text, subject.size(), start, PCRE2_NO_UTF_CHECK | options,
                       state->data, state->context);
  };
  int result = code_->jit ? pcre2_jit_match(code_->code, text, subject.size(), start,
                                            PCRE2_NO_UTF_CHECK, state->data, state->context)
                          : interpret(0);
  // Machine code has its stack, the interpreter the heap, which reaches further.
  if (result == PCRE2_ERROR_JIT_STACKLIMIT) result = interpret(PCRE2_NO_JIT);
  if (result == PCRE2_ERROR_NOMATCH) return false;
  if (result < 0)
    throw_bad_data(where_, "regular expression '" + pattern_ +
                               "' gives up on a text: " + pcre2_message(result));
  const PCRE2_SIZE* range = pcre2_get_ovector_pointer(state->data);
  *begin = range[0];
  *end = std::max(range[0], range[1]);  // \K can put the start behind the end
  return true;
}

}  // namespace loongforge::support
