// The library's log front: it never prints. A command installs a sink (support/log_spdlog); without
// one, messages are dropped.
// Thread-safety: log() may be called from any thread; set_log_sink() only at start.
#pragma once

#include <string>
#include <string_view>

#include "base/api.h"

namespace loongforge {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

using LogSink = void (*)(LogLevel level, std::string_view message);

LF_API void set_log_sink(LogSink sink) noexcept;
LF_API void log(LogLevel level, std::string_view message);
inline void log_info(std::string_view message) { log(LogLevel::kInfo, message); }
inline void log_warning(std::string_view message) { log(LogLevel::kWarning, message); }

}  // namespace loongforge
