// Standard output and standard error of a command. A result that could not be written is an error,
// never a silent success. Thread-safety: the C streams' own.
#pragma once

#include <string_view>

#include "base/api.h"
#include "base/error.h"

namespace loongforge::cli {

// Whoever read standard output has closed it (`... | head -1`): what is left of the output is not
// wanted, so the command ends without a word and with the code of one that SIGPIPE ended.
class LF_API OutputClosed : public Error {
 public:
  OutputClosed();
};

LF_API void print(std::string_view text);  // standard output; OutputClosed, or Error(kFailed) when
                                           // it cannot be written
LF_API void flush_output();  // the same for what was buffered; once before the command ends
LF_API void print_error(
    std::string_view text);  // standard error, as it is; a failure there is nobody's to hear

// Columns of the terminal behind a file descriptor, or what COLUMNS says; 80 where there is none.
LF_API int terminal_width(int fd);

}  // namespace loongforge::cli
