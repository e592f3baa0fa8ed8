#include "support/places.h"

namespace loongforge::test {

std::filesystem::path source_dir() { return LF_SOURCE_DIR; }
std::filesystem::path binary_dir() { return LF_BINARY_DIR; }

}  // namespace loongforge::test
