#include "base/log.h"

#include <atomic>

namespace loongforge {
namespace {

std::atomic<LogSink> g_sink{nullptr};

}  // namespace

void set_log_sink(LogSink sink) noexcept { g_sink.store(sink, std::memory_order_release); }

void log(LogLevel level, std::string_view message) {
  if (LogSink sink = g_sink.load(std::memory_order_acquire)) sink(level, message);
}

}  // namespace loongforge
