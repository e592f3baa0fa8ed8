// Standard output and standard error of a command. A result that could not be written is an error,
// never a silent success. Thread-safety: the C streams' own.
#pragma once

#include <string_view>

#include "base/api.h"

namespace loongforge::cli {

LF_API void print(
    std::string_view text);  // standard output; Error(kFailed) when it cannot be written
LF_API void flush_output();  // the same for what was buffered; once before the command ends
LF_API void print_error(
    std::string_view text);  // standard error, as it is; a failure there is nobody's to hear

// Columns of the terminal behind a file descriptor, or what COLUMNS says; 80 where there is none.
LF_API int terminal_width(int fd);

}  // namespace loongforge::cli
