// Text out of files made fit for the one line of an error.
// Thread-safety: pure function.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/api.h"

namespace loongforge::support {

// Everything but printable ASCII becomes '?'; what is longer than `most` characters ends in "...".
LF_API std::string printable(std::string_view text, size_t most = 200);

}  // namespace loongforge::support
