// Manual pages: where they are, and a plain text of them for machines without man. The pages are
// mdoc; plain_text() knows the part of mdoc that man/ uses and names the line of anything else, so
// a page cannot silently lose text. Thread-safety: functions without shared state.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/api.h"

namespace loongforge::cli {

// share/man/man<section>/<page> beside the bin folder of the running program.
LF_API std::filesystem::path manual_path(const std::string& page);

// where names the page in errors: Error(kBadData) "<where>:<line>".
LF_API std::string plain_text(std::string_view mdoc, const std::string& where);

// Shows the page through man when standard output is a terminal and man is there, else as plain
// text on standard output. Returns false when the page is not there. Does not return when man takes
// over.
LF_API bool show_manual(const std::string& page);

}  // namespace loongforge::cli
