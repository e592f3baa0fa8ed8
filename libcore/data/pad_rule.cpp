#include "base/error.h"
#include "data/tokenizer.h"

namespace loongforge::data {

std::optional<int64_t> resolve_pad_id(std::optional<int64_t> config_pad,
                                      std::optional<int64_t> tokenizer_pad, bool tokenizer_present,
                                      std::optional<int64_t> flag, std::optional<int64_t> eos) {
  if (flag.has_value()) return flag;
  if (config_pad.has_value() != tokenizer_pad.has_value())
    return config_pad.has_value() ? config_pad : tokenizer_pad;
  if (config_pad == tokenizer_pad && (config_pad.has_value() || !tokenizer_present))
    return config_pad;
  std::string found = config_pad.has_value()
                          ? "the config says " + std::to_string(*config_pad) + ", the tokenizer " +
                                std::to_string(*tokenizer_pad)
                          : "neither says one";
  std::string proposal = eos.has_value()
                             ? "give --pad_token_id " + std::to_string(*eos) + " (the eos id)"
                             : std::string("give --pad_token_id N");
  throw_bad_data({}, "Tokenization error: pad_token_id mismatch between config and tokenizer",
                 found + ": " + proposal + " or the right tokenizer with --tokenizer_path");
}

}  // namespace loongforge::data
