// Regular expressions with the meaning that tokenizer.json gives them (Oniguruma's, as the public
// tokenizers use it), carried out by PCRE2 in UTF and UCP mode, compiled to machine code where
// PCRE2 can. Thread-safety: a Regex is immutable and may be used from several threads, each with
// its own Matcher. REQUIRES: subjects are valid UTF-8 (support/unicode.h checks that); start
// offsets lie on a character's first byte.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace loongforge::support {

class Regex {
 public:
  // Per-thread match state: buffers and the machine stack of compiled patterns. Usable with any
  // Regex.
  class Matcher {
   public:
    Matcher();
    ~Matcher();
    Matcher(Matcher&&) noexcept;
    Matcher& operator=(Matcher&&) noexcept;

   private:
    friend class Regex;
    struct State;
    std::unique_ptr<State> state_;
  };

  // where: the file the pattern stands in, for errors. Error(kBadData) names the pattern, the fault
  // and its position.
  Regex(std::string_view pattern, std::string_view where);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  // The first match that begins at or after start. Error(kBadData) when the pattern backtracks
  // beyond PCRE2's limits.
  bool find(Matcher& matcher, std::string_view subject, size_t start, size_t* begin,
            size_t* end) const;

  const std::string& pattern() const { return pattern_; }

 private:
  struct Code;
  std::unique_ptr<Code> code_;
  std::string pattern_, where_;
};

// The same pattern in PCRE2's spelling: \s is White_Space (PCRE2 adds U+180E), \h a hexadecimal
// digit. Exposed for its test.
std::string pattern_for_pcre2(std::string_view pattern, std::string_view where);

}  // namespace loongforge::support
