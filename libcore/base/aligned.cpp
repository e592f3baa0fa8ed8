#include "base/aligned.h"

#include <sys/mman.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>

#include "base/error.h"

namespace loongforge {
namespace {

constexpr size_t kLine = 64;
// Transparent huge pages are placed on multiples of this; LoongArch's 32 MiB would waste address
// space on small buffers.
constexpr size_t kTransparentAlign = size_t{2} << 20;

[[noreturn]] void no_memory(size_t bytes) {
  throw_failed({}, "cannot allocate " + std::to_string(bytes) + " bytes of memory",
               "use a smaller batch or model, or free memory");
}

// Rounds up to a multiple of unit (a power of two); 0 on overflow.
size_t round_up(size_t bytes, size_t unit) noexcept {
  if (bytes > std::numeric_limits<size_t>::max() - (unit - 1)) return 0;
  return (bytes + unit - 1) & ~(unit - 1);
}

uint8_t* map(size_t bytes, int extra) noexcept {
  void* p =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | extra, -1, 0);
  return p == MAP_FAILED ? nullptr : static_cast<uint8_t*>(p);
}

// Maps bytes on a multiple of align by mapping more and giving back both ends.
uint8_t* map_aligned(size_t bytes, size_t align) noexcept {
  size_t wide = bytes + align;
  if (wide < bytes) return nullptr;
  uint8_t* p = map(wide, 0);
  if (p == nullptr) return nullptr;
  size_t head = (align - (reinterpret_cast<uintptr_t>(p) & (align - 1))) & (align - 1);
  if (head != 0) munmap(p, head);
  if (wide != head + bytes) munmap(p + head + bytes, wide - head - bytes);
  return p + head;
}

bool starts_with_key(const std::string& line, std::string_view key, uint64_t* value) noexcept {
  if (line.compare(0, key.size(), key) != 0) return false;
  size_t at = line.find_first_not_of(' ', key.size());
  if (at == std::string::npos) return false;
  return std::from_chars(line.data() + at, line.data() + line.size(), *value).ec == std::errc();
}

}  // namespace

AlignedBuffer::AlignedBuffer(size_t bytes, Pages pages) {
  if (bytes == 0) return;
  if (pages == Pages::kHuge) {
    HugePages huge = huge_pages();
    size_t rounded = huge.page_bytes == 0 ? 0 : round_up(bytes, huge.page_bytes);
    if (rounded != 0 && huge.free >= huge.needed(bytes)) data_ = map(rounded, MAP_HUGETLB);
    if (data_ != nullptr) {
      size_ = bytes;
      mapped_ = rounded;
      huge_ = true;
      return;
    }
    pages = Pages::kTransparent;
  }
  if (bytes < kMmapBytes) {
    size_t rounded = round_up(bytes, kLine);
    data_ = static_cast<uint8_t*>(std::aligned_alloc(kLine, rounded));
    if (data_ == nullptr) no_memory(bytes);
    size_ = bytes;
    return;
  }
  size_t rounded = round_up(bytes, static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  if (rounded == 0) no_memory(bytes);
  bool transparent = pages == Pages::kTransparent && bytes >= kTransparentAlign;
  data_ = transparent ? map_aligned(rounded, kTransparentAlign) : map(rounded, 0);
  if (data_ == nullptr) no_memory(bytes);
  size_ = bytes;
  mapped_ = rounded;
  // Advice: a kernel built without transparent huge pages refuses it, and nothing is lost.
  if (transparent) madvise(data_, rounded, MADV_HUGEPAGE);
}

AlignedBuffer::~AlignedBuffer() {
  if (mapped_ != 0) {
    munmap(data_, mapped_);
  } else {
    std::free(data_);
  }
}

void AlignedBuffer::swap(AlignedBuffer& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapped_, other.mapped_);
  std::swap(huge_, other.huge_);
}

HugePages huge_pages(const std::filesystem::path& meminfo) noexcept {
  HugePages out;
  try {
    std::ifstream in(meminfo);
    std::string line;
    uint64_t kib = 0, unused = 0, reserved = 0;
    while (std::getline(in, line)) {
      starts_with_key(line, "Hugepagesize:", &kib);
      starts_with_key(line, "HugePages_Total:", &out.total);
      starts_with_key(line, "HugePages_Free:", &unused);
      starts_with_key(line, "HugePages_Rsvd:", &reserved);
    }
    // A page size is a power of two; anything else is not a meminfo that we understand.
    if (kib == 0 || (kib & (kib - 1)) != 0 || kib > (uint64_t{1} << 30)) return HugePages{};
    out.page_bytes = static_cast<size_t>(kib) << 10;
    out.free = unused > reserved ? unused - reserved : 0;
  } catch (...) {
    return HugePages{};
  }
  return out;
}

}  // namespace loongforge
