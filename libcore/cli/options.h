// The option table of a command, and the values that come of it. A command has one table; the
// parser (options_parse.h), the JSON configuration, the environment, -h, shell completion and the
// check of the manual page all read that table.
//
// Names: '-' and '_' are alike everywhere; the table holds the spelling that help shows. Values are
// kept as the text that a user would type and are checked against the row's type and domain when
// they are set, so a getter cannot fail. Thread-safety: an Options object is a value; const access
// from several threads.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/api.h"
#include "support/json.h"

namespace loongforge::cli {

enum class OptionType : uint8_t {
  kFlag,  // true or false; bare means true, --no-NAME means false
  kInt,
  kDouble,
  kString,
  kChoice,  // one of the words of the domain
  kPath,
  kList,          // comma separated words; in JSON an array of strings
  kFlagOrPath,    // bare, true, false or a path
  kFlagOrChoice,  // bare, true, false or one of the words of the domain
};

struct Option {
  const char* names;  // "learning_rate|lr": the canonical name first, then aliases; one letter is a
                      // short option
  OptionType type;
  const char* preset;  // the default, as one would type it; nullptr: unset
  // kChoice: "full|lora". kInt, kDouble: an interval, "[1,inf)" or "(0,1]"; nullptr: any. Others:
  // the word that stands for the value in help; nullptr: a word chosen by type.
  const char* domain;
  const char* group;
  const char* help;  // one line, no final dot
};

// An option of other programs that users know: what to give here instead, for "unknown option".
struct ForeignName {
  const char* name;  // '_' as '-'
  const char* hint;
};

struct Command {
  const char* name;      // "train"
  const char* summary;   // one line, no final dot
  const char* synopsis;  // what follows the name in the usage line
  std::span<const Option> options;
  std::span<const ForeignName> foreign = {};
};

enum class Source : uint8_t { kUnset, kDefault, kConfig, kEnvironment, kFlag };

// "learning_rate" of "Learning-Rate"'s spelling rules: '-' becomes '_', nothing else changes.
LF_API std::string option_key(std::string_view name);
LF_API std::string canonical_name(const Option& option);             // as the table spells it
LF_API std::vector<std::string> option_names(const Option& option);  // canonical first
LF_API std::string value_word(const Option& option);  // "FILE", "full|lora"; empty for a flag
// The row that has this name or alias; nullptr when none.
LF_API const Option* find_option(std::span<const Option> options, std::string_view name);

// Checks text against the row and returns it in its canonical form ("True" -> "true"). Throws
// Error(kUsage) with where, which names the place the text came from ("--lora_rank",
// "LOONGFORGE_LORA_RANK", "run.json: lora_rank").
LF_API std::string check_value(const Option& option, std::string_view text,
                               const std::string& where);
// The same for a JSON value, whose JSON type must fit the row.
LF_API std::string check_json_value(const Option& option, const support::Json& value,
                                    const std::string& where);

class LF_API Options {
 public:
  // Starts with the defaults. REQUIRES the table outlives the object.
  explicit Options(std::span<const Option> table);

  // Overwrites when source ranks at least as high as what set the value so far. REQUIRES the name
  // stands in the table and text passed check_value().
  void set(std::string_view name, std::string text, Source source);

  bool has(std::string_view name) const { return source(name) != Source::kUnset; }
  Source source(std::string_view name) const;
  // The user asked for this value: on the command line, in the environment, or in a configuration
  // file with another value than the default (a resolved configuration holds every default, which
  // asks for nothing).
  bool given(std::string_view name) const;
  // "--lora_rank", "LOONGFORGE_LORA_RANK", "lora_rank in run.json", "default of --lora_rank"
  std::string place(std::string_view name) const;

  // REQUIRES the name stands in the table with a type that fits; has(name), except flag() (unset:
  // false), text() and list() (unset: empty).
  bool flag(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;  // kDouble, kInt
  const std::string& text(std::string_view name) const;
  std::vector<std::string> list(std::string_view name) const;

  // text(name); Error(kUsage) "--name is missing" with the hint when it is unset or empty.
  const std::string& require(std::string_view name, std::string hint = {}) const;

  // Error(kUsage) "<place> <what>" for the first of the names that is given.
  void refuse_given(std::initializer_list<const char*> names, const char* what,
                    const char* hint) const;

  // Every set value, typed, in the order of the table: a file that --config reads back to the same
  // values.
  support::Json resolved() const;
  support::Json sources() const;  // name -> "default" | "config" | "environment" | "flag"

  std::string config_path;  // the --config file that was read; empty: none
  std::vector<std::string>
      positionals;  // words that are no option; empty unless the command takes them

 private:
  struct Entry {
    const Option* option;
    std::string text;
    Source source;
  };
  const Entry& entry(std::string_view name) const;
  std::vector<Entry> entries_;
};

LF_API std::string environment_name(const Option& option);  // "LOONGFORGE_LEARNING_RATE"

}  // namespace loongforge::cli
