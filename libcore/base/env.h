// Typed reading of LOONGFORGE_* environment variables. A variable that is unset or empty gives
// nullopt; nonsense is Error(kUsage) that names the variable, its value and what is allowed.
// Thread-safety: as getenv: safe while nobody calls setenv.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/api.h"

namespace loongforge {

// REQUIRES name is zero-terminated (a literal).
LF_API std::optional<std::string> env_text(const char* name);
LF_API std::optional<bool> env_flag(const char* name);  // 1 0 true false yes no on off, any case
LF_API std::optional<int64_t> env_int(const char* name, int64_t least, int64_t most);
LF_API std::optional<double> env_double(const char* name, double least, double most);
// The index of the value in allowed (exact spelling).
LF_API std::optional<size_t> env_choice(const char* name,
                                        std::span<const std::string_view> allowed);

}  // namespace loongforge
