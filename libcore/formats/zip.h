// The directory of a zip file whose entries are stored, not compressed, as torch writes them: where
// the bytes of each entry stand in the file. Nothing is extracted; names are never used as paths.
// For the .cpp files of formats/ only. Thread-safety: pure function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/api.h"
#include "base/file.h"

namespace loongforge::formats {

struct ZipEntry {
  std::string name;
  uint64_t offset = 0;  // of the data in the file, behind the local header
  uint64_t bytes = 0;
};

// In the order of the central directory; ZIP64, data descriptors and comments included. kBadData
// Error naming file and entry: truncated files, compressed or encrypted entries, names that stand
// twice, entries outside of the file or over each other, local headers that contradict the
// directory.
LF_API std::vector<ZipEntry> read_zip_directory(const File& file);

}  // namespace loongforge::formats
