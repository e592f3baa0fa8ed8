#include "cli/options_parse.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <list>
#include <map>

#include "base/error.h"
#include "cli/suggest.h"

namespace loongforge::cli {
namespace {

constexpr Option kCommon[] = {
    {"config", OptionType::kPath, nullptr, "FILE.json", "Common",
     "read options from a JSON object; flags and the environment win"},
    {"threads", OptionType::kInt, nullptr, "[1,1024]", "Common",
     "worker threads (default: one per core within affinity mask and cgroup quota)"},
    {"log_level", OptionType::kChoice, "info", "debug|info|warning|error", "Common",
     "leave out log lines below this level"},
    {"log_format", OptionType::kChoice, "text", "text|json", "Common",
     "log and step lines on standard error as text or as JSON objects"},
    {"help|h", OptionType::kFlag, nullptr, nullptr, "Common",
     "-h: this summary; --help: the manual page"},
    {"version", OptionType::kFlag, nullptr, nullptr, "Common", "print the version and stop"},
};

bool is_builtin(const Option& option) {
  const std::string name = canonical_name(option);
  return name == "help" || name == "version";
}

// Variables that mean the same to every command (man/loongforge.1) are never an option's value:
// LOONGFORGE_ISA=avx2 does not answer `debug --isa`.
bool is_suite_variable(const std::string& name) {
  for (const char* known :
       {"LOONGFORGE_ISA", "LOONGFORGE_DATA", "LOONGFORGE_HOME", "LOONGFORGE_HUGEPAGE_ENABLE"})
    if (name == known) return true;
  return false;
}

// The names that a table knows, for "did you mean".
std::vector<std::string> all_long_names(std::span<const Option> table) {
  std::vector<std::string> names;
  for (const Option& option : table)
    for (std::string& name : option_names(option))
      if (name.size() > 1) names.push_back(std::move(name));
  return names;
}

// What other programs call it; empty: none that is known.
std::string foreign_hint(std::span<const ForeignName> foreign, std::string_view name) {
  const std::string key = option_key(name);
  for (const ForeignName& each : foreign)
    if (key == each.name) return each.hint;
  return {};
}

[[noreturn]] void unknown_flag(std::span<const Option> table, std::span<const ForeignName> foreign,
                               const std::string& word, std::string_view name) {
  std::string hint = foreign_hint(foreign, name);
  if (hint.empty()) hint = did_you_mean(name, all_long_names(table), "--");
  if (hint.empty()) hint = "-h lists the options";
  throw_usage("unknown option " + word, std::move(hint));
}

bool is_bool_word(std::string_view word) {
  for (const char* candidate : {"true", "false", "True", "False"})
    if (word == candidate) return true;
  return false;
}

bool takes_bare(const Option& option) {
  return option.type == OptionType::kFlag || option.type == OptionType::kFlagOrPath ||
         option.type == OptionType::kFlagOrChoice;
}

// Brings the words into the one form that is handed to CLI11: "--canonical_key=value" for long
// options. Spelling variants,
// --no-NAME, flags with a separate true or false and unknown names are settled here, where good
// messages can be given.
class Normaliser {
 public:
  Normaliser(std::span<const Option> table, std::span<const char* const> words,
             std::span<const ForeignName> foreign)
      : table_(table), words_(words), foreign_(foreign) {}

  std::vector<std::string> run(Request* request) {
    for (; at_ < words_.size(); ++at_) {
      const std::string_view word = words_[at_];
      if (word == "--") {
        result_.insert(result_.end(), words_.begin() + static_cast<std::ptrdiff_t>(at_),
                       words_.end());
        break;
      }
      if (word == "-h" || word == "--help" || word == "--version") {
        *request = word == "-h"       ? Request::kShortHelp
                   : word == "--help" ? Request::kManual
                                      : Request::kVersion;
        return {};
      }
      if (word.starts_with("--"))
        long_option(word);
      else
        short_or_positional(word);
    }
    return std::move(result_);
  }

 private:
  void long_option(std::string_view word) {
    const size_t equals = word.find('=');
    const std::string_view name =
        word.substr(2, equals == std::string_view::npos ? equals : equals - 2);
    const std::string shown = "--" + std::string(name);
    const Option* option = name.size() > 1 ? find_option(table_, name) : nullptr;
    if (option == nullptr && option_key(name).starts_with("no_")) {
      option = find_option(table_, name.substr(3));
      if (option != nullptr && option->type == OptionType::kFlag &&
          equals == std::string_view::npos)
        return add(*option, "false");
      option = nullptr;
    }
    if (option == nullptr) unknown_flag(table_, foreign_, shown, name);
    if (equals != std::string_view::npos) return add(*option, word.substr(equals + 1));
    if (takes_bare(*option)) {
      const bool has_next = at_ + 1 < words_.size();
      const std::string_view next = has_next ? words_[at_ + 1] : "";
      const bool takes_next = option->type == OptionType::kFlag
                                  ? is_bool_word(next)
                                  : has_next && !next.starts_with("-");
      return add(*option, takes_next ? words_[++at_] : "true");
    }
    if (at_ + 1 >= words_.size())
      throw_usage(shown + " needs a value", "for example " + shown + " " + value_word(*option));
    add(*option, words_[++at_]);
  }

  void short_or_positional(std::string_view word) {
    if (word.size() < 2 || word[0] != '-') {
      result_.emplace_back(word);
      return;
    }
    // "-o PATH", "-oPATH" and "-q" are CLI11's; only the name is checked here.
    const Option* option = find_option(table_, word.substr(1, 1));
    if (option == nullptr) {
      const bool meant_long = word.size() > 2 && find_option(table_, word.substr(1)) != nullptr;
      throw_usage("unknown option " + std::string(word),
                  meant_long ? "did you mean -" + std::string(word) + "?" : "-h lists the options");
    }
    if (word.size() == 2 && !takes_bare(*option)) {
      if (at_ + 1 >= words_.size()) throw_usage(std::string(word) + " needs a value");
      return add(*option, words_[++at_]);
    }
    if (takes_bare(*option)) {
      if (word.size() > 2)
        throw_usage(std::string(word) + " is not understood", "-h lists the options");
      return add(*option, "true");
    }
    add(*option, word.substr(2));
  }

  void add(const Option& option, std::string_view value) {
    // CLI11 takes "--name=" for a name without a value.
    if (value.empty())
      throw Error(ErrorCode::kUsage, "--" + canonical_name(option), "the value is empty");
    result_.push_back("--" + option_key(canonical_name(option)) + "=" + std::string(value));
  }

  std::span<const Option> table_;
  std::span<const char* const> words_;
  std::span<const ForeignName> foreign_;
  size_t at_ = 0;
  std::vector<std::string> result_;
};

void read_command_line(std::span<const Option> table, std::vector<std::string> words,
                       int max_positionals, Options* options) {
  CLI::App app;
  app.set_help_flag();  // ours
  app.allow_extras(false);
  std::map<std::string, std::vector<std::string>> values;
  for (const Option& option : table) {
    const std::string key = option_key(canonical_name(option));
    // A vector keeps a value that is empty or starts with '-' as it stands; the last one given
    // counts.
    app.add_option("--" + key, values[key])->expected(1)->take_last()->allow_extra_args(false);
  }
  if (max_positionals > 0)
    app.add_option("words", options->positionals)->expected(0, max_positionals);
  try {
    std::reverse(words.begin(), words.end());  // CLI11 takes them last first
    app.parse(std::move(words));
  } catch (const CLI::ExtrasError&) {
    std::vector<std::string> extras = app.remaining();
    std::erase(extras, "--");
    throw_usage("unexpected word '" + (extras.empty() ? std::string() : extras.front()) + "'",
                "options start with --; -h lists them");
  } catch (const CLI::ParseError& error) {
    throw_usage(error.what());
  }
  for (const Option& option : table) {
    const std::vector<std::string>& given = values[option_key(canonical_name(option))];
    if (given.empty()) continue;
    const std::string name = canonical_name(option);
    options->set(name, check_value(option, given.back(), "--" + name), Source::kFlag);
  }
}

void read_environment(std::span<const Option> table, EnvironmentLookup environment,
                      Options* options) {
  for (const Option& option : table) {
    if (is_builtin(option)) continue;
    const std::string name = environment_name(option);
    if (is_suite_variable(name)) continue;
    const char* value = environment(name.c_str());
    if (value == nullptr || *value == '\0') continue;
    options->set(canonical_name(option), check_value(option, value, name), Source::kEnvironment);
  }
}

support::Json read_config(const std::string& path) {
  try {
    return support::read_json(path, uint64_t{16} << 20);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadData) throw;
    throw Error(ErrorCode::kUsage, error.where(), error.message(),
                error.hint());  // a configuration is usage, not data
  }
}

void apply_config(std::span<const Option> table, std::span<const ForeignName> foreign,
                  const std::string& path, Options* options) {
  const support::Json config = read_config(path);
  if (!config.is_object())
    throw Error(ErrorCode::kUsage, path,
                std::string("the configuration is ") + config.type_name() + ", not object");
  options->config_path = path;
  std::map<const Option*, std::string> seen;
  for (const auto& [key, value] : config.as_object()) {
    const Option* option = key.size() > 1 ? find_option(table, key) : nullptr;
    if (option == nullptr || is_builtin(*option) || canonical_name(*option) == "config") {
      std::string hint = foreign_hint(foreign, key);
      if (hint.empty()) hint = did_you_mean(key, all_long_names(table));
      throw Error(ErrorCode::kUsage, path, "unknown key '" + key + "'",
                  option != nullptr ? "it is an option of the command line only" : std::move(hint));
    }
    const auto [other, fresh] = seen.emplace(option, key);
    if (!fresh)
      throw Error(ErrorCode::kUsage, path,
                  "'" + key + "' and '" + other->second + "' are the same option");
    if (value.is_null()) continue;
    options->set(key, check_json_value(*option, value, path + ": " + key), Source::kConfig);
  }
}

}  // namespace

std::span<const Option> common_options() { return kCommon; }

std::vector<Option> full_table(const Command& command) {
  std::vector<Option> table(command.options.begin(), command.options.end());
  table.insert(table.end(), std::begin(kCommon), std::end(kCommon));
  return table;
}

Parsed parse_options(std::span<const Option> table, std::span<const char* const> words,
                     EnvironmentLookup environment, int max_positionals,
                     std::span<const ForeignName> foreign) {
  Parsed parsed{Options(table)};
  std::vector<std::string> normalised = Normaliser(table, words, foreign).run(&parsed.request);
  if (parsed.request != Request::kRun) return parsed;
  read_command_line(table, std::move(normalised), max_positionals, &parsed.options);
  read_environment(table, environment, &parsed.options);
  if (parsed.options.has("config")) {
    const std::string path = parsed.options.text("config");
    apply_config(table, foreign, path, &parsed.options);
  }
  return parsed;
}

std::vector<std::string> misspelt_variables(std::span<const Option> table,
                                            const char* const* variables) {
  constexpr int kNear = 2;
  std::vector<std::string> lines;
  for (; *variables != nullptr; ++variables) {
    const std::string_view entry = *variables;
    const std::string name(entry.substr(0, entry.find('=')));
    if (!name.starts_with("LOONGFORGE_") || is_suite_variable(name)) continue;
    std::string meant;
    bool exact = false;
    for (const Option& option : table) {
      const std::string known = environment_name(option);
      exact = exact || known == name;
      if (meant.empty() && !is_builtin(option) && known.size() > 15 &&
          edit_distance(name, known) <= kNear)
        meant = known;
    }
    if (!exact && !meant.empty())
      lines.push_back(name + " sets nothing; did you mean " + meant + "?");
  }
  return lines;
}

}  // namespace loongforge::cli
