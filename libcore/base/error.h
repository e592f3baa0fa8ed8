// The one exception type of libcore. Kernels never throw; expected outcomes are return values;
// everything that ends the operation is an Error. A command catches it once and prints one line:
//   loongforge <cmd>: <where>: <what>; <hint>
// Thread-safety: values, no shared state.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "base/api.h"

namespace loongforge {

// The values are the exit codes of the commands (DESIGN: sysexits where one fits).
enum class ErrorCode : int {
  kFailed = 1,    // a run-time failure: no memory, I/O error, disk full
  kUsage = 2,     // the command line, the configuration file or the environment is wrong
  kBadData = 65,  // an input exists and is wrong
  kNoInput = 66,  // an input is absent or unreadable
};

class LF_API Error : public std::exception {
 public:
  // where: file, file:line or tensor ("model.safetensors: model.norm.weight"); may be empty.
  // what: the fault, no final dot. hint: what to do; empty when nothing useful can be said.
  Error(ErrorCode code, std::string where, std::string what, std::string hint = {});

  ErrorCode code() const noexcept { return code_; }
  const std::string& where() const noexcept { return where_; }
  const std::string& message() const noexcept { return message_; }
  const std::string& hint() const noexcept { return hint_; }
  const char* what() const noexcept override { return line_.c_str(); }
  // "where: what; hint": one line whatever the parts hold (control characters spelled \xNN, parts
  // of over 1,000 bytes cut).

 private:
  ErrorCode code_;
  std::string where_, message_, hint_, line_;
};

[[noreturn]] LF_API void throw_bad_data(std::string where, std::string what, std::string hint = {});
[[noreturn]] LF_API void throw_no_input(std::string where, std::string what, std::string hint = {});
[[noreturn]] LF_API void throw_usage(std::string what, std::string hint = {});
[[noreturn]] LF_API void throw_failed(std::string where, std::string what, std::string hint = {});

}  // namespace loongforge
