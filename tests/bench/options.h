// The command line of a benchmark: a table of its options, out of which come the reading, the usage
// text and the refusals. Every refusal is one line and comes before anything is measured.
// Thread-safety: the caller's thread only.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/isa.h"

namespace loongforge::bench {

inline std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

inline std::vector<std::string> split_at_commas(const std::string& list) {
  std::vector<std::string> words(1);
  for (const char c : list) {
    if (c == ',') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

// The names of the instruction sets of this build that this CPU has.
inline std::vector<std::string> isa_names() {
  std::vector<std::string> names;
  for (const kernels::Isa isa : kernels::available_isas())
    names.emplace_back(kernels::isa_name(isa));
  return names;
}

class CommandLine {
 public:
  // What takes an option's value; throws Error(kUsage) where it is none.
  using Take = std::function<void(const std::string& flag, const std::string& value)>;

  explicit CommandLine(std::string program) : program_(std::move(program)) {}

  // shown: the value in the usage text; empty: the option takes none.
  CommandLine& option(const std::string& flag, const std::string& shown, Take take) {
    options_.push_back({flag, shown, std::move(take)});
    return *this;
  }
  CommandLine& flag(const std::string& flag, bool* to) {
    return option(flag, "", [to](const std::string&, const std::string&) { *to = true; });
  }
  CommandLine& text(const std::string& flag, const std::string& shown, std::string* to) {
    return option(flag, shown, [to](const std::string&, const std::string& value) { *to = value; });
  }
  template <class Int>
  CommandLine& number(const std::string& flag, Int* to, Int most = 1000000) {
    return option(flag, "N", [to, most](const std::string& name, const std::string& value) {
      Int number = 0;
      const char* const end = value.data() + value.size();
      const auto [stopped, error] = std::from_chars(value.data(), end, number);
      if (error != std::errc() || stopped != end || number < 1 || number > most)
        throw_usage(name + " takes a whole number from 1 to " + std::to_string(most) + ", not '" +
                    value + "'");
      *to = number;
    });
  }
  CommandLine& threads(const std::string& flag, int* to) { return number(flag, to, 1024); }
  CommandLine& choice(const std::string& flag, const std::vector<std::string>& allowed,
                      std::string* to) {
    return option(flag, joined(allowed, "|"),
                  [allowed, to](const std::string& name, const std::string& value) {
                    check_choice(name, value, allowed);
                    *to = value;
                  });
  }
  // Some of them, separated by commas.
  CommandLine& choices(const std::string& flag, const std::vector<std::string>& allowed,
                       std::vector<std::string>* to) {
    return option(flag, joined(allowed, "|") + ",...",
                  [allowed, to](const std::string& name, const std::string& value) {
                    *to = split_at_commas(value);
                    for (const std::string& word : *to) check_choice(name, word, allowed);
                  });
  }
  // The one word that is no option; without this there may be none.
  CommandLine& word(const std::string& name, std::string* to) {
    word_name_ = name;
    word_ = to;
    return *this;
  }

  std::string usage() const {
    std::string text = "usage: " + program_ + (word_ == nullptr ? "" : " " + word_name_);
    for (const Option& o : options_)
      text += " [" + o.flag + (o.shown.empty() ? "" : " " + o.shown) + "]";
    return text;
  }

  // Error(kUsage) at the first fault. -h or --help anywhere prints the usage text and exits.
  void parse(const std::vector<std::string>& words) const {
    for (const std::string& word : words) {
      if (word != "-h" && word != "--help") continue;
      std::printf("%s\n", usage().c_str());
      std::exit(std::fflush(stdout) == 0 ? 0 : 1);
    }
    for (size_t i = 0; i < words.size(); ++i) {
      const std::string& name = words[i];
      if (const Option* const option = find(name)) {
        if (option->shown.empty()) {
          option->take(name, {});
        } else if (i + 1 == words.size()) {
          throw_usage(name + " takes a value: " + option->shown);
        } else {
          option->take(name, words[++i]);
        }
      } else if (name.starts_with("-")) {
        throw_usage("unknown option " + name, usage());
      } else if (word_ == nullptr || !word_->empty() || name.empty()) {
        throw_usage("unknown argument '" + name + "'", usage());
      } else {
        *word_ = name;
      }
    }
    if (word_ != nullptr && word_->empty()) throw_usage("no " + word_name_, usage());
  }

 private:
  struct Option {
    std::string flag, shown;
    Take take;
  };
  static void check_choice(const std::string& flag, const std::string& value,
                           const std::vector<std::string>& allowed) {
    for (const std::string& word : allowed)
      if (word == value) return;
    throw_usage(flag + " takes " + joined(allowed, ", ") + ", not '" + value + "'");
  }
  const Option* find(const std::string& flag) const {
    for (const Option& o : options_)
      if (o.flag == flag) return &o;
    return nullptr;
  }

  std::string program_, word_name_;
  std::string* word_ = nullptr;
  std::vector<Option> options_;
};

// main() of a benchmark: body(words) gives the exit code; an Error becomes one line and its code.
template <class Body>
int run_main(const char* program, int argc, char** argv, Body&& body) {
  try {
    return body(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& e) {
    const auto* const error = dynamic_cast<const Error*>(&e);
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", program, e.what());
    return static_cast<int>(error == nullptr ? ErrorCode::kFailed : error->code());
  }
}

// ---- What the benchmarks of kernels take, all of them: tables of rows.
struct RowOptions {
  std::vector<int> threads = {1, 2};
  int rounds = 20;
  std::vector<kernels::Isa> isas;  // those of this CPU where --isa named none
  bool isas_named = false;
  std::string only;

  bool wants(const std::string& row) const { return row.find(only) != std::string::npos; }
  // Error(kUsage) where --only leaves no row.
  void check_only(const std::vector<std::string>& rows) const {
    for (const std::string& row : rows)
      if (wants(row)) return;
    throw_usage("--only: no row has '" + only + "' in its name",
                "the rows are: " + joined(rows, "; "));
  }
};

// more: adds options of its own.
inline RowOptions parse_row_options(const char* program, const std::vector<std::string>& words,
                                    const std::function<void(CommandLine*)>& more = nullptr) {
  RowOptions o;
  int threads = 0;
  std::vector<std::string> isas;
  CommandLine line(program);
  line.threads("--threads", &threads)
      .number("--rounds", &o.rounds)
      .choices("--isa", isa_names(), &isas)
      .text("--only", "TEXT", &o.only);
  if (more) more(&line);
  line.parse(words);
  if (threads > 0) o.threads = {threads};
  o.isas_named = !isas.empty();
  for (const std::string& name : o.isas_named ? isas : isa_names()) {
    kernels::Isa isa{};
    kernels::parse_isa(name.c_str(), &isa);
    o.isas.push_back(isa);
  }
  return o;
}

}  // namespace loongforge::bench
