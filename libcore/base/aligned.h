// Memory aligned to 64 bytes (a cache line, a zmm register), or to huge pages, straight from mmap
// for large sizes so that freeing it returns it to the system. Zero-filled when large (fresh mmap),
// undefined when small.
// Thread-safety: a value; movable, not copyable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>

#include "base/api.h"

namespace loongforge {

enum class Pages {
  kNormal,       // whatever the system does
  kTransparent,  // madvise(MADV_HUGEPAGE)
  kHuge,  // MAP_HUGETLB where free pages suffice; huge() tells whether it worked, falls back to
          // kTransparent
};

// From this size on memory comes from mmap.
inline constexpr size_t kMmapBytes = size_t{1} << 20;

class LF_API AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Throws Error(kFailed) naming the size when memory cannot be had. kHuge maps whole huge pages.
  explicit AlignedBuffer(size_t bytes, Pages pages = Pages::kNormal);
  ~AlignedBuffer();
  AlignedBuffer(AlignedBuffer&& other) noexcept { swap(other); }
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    AlignedBuffer moved(std::move(other));
    swap(moved);
    return *this;
  }

  void swap(AlignedBuffer& other) noexcept;
  uint8_t* data() noexcept { return data_; }
  const uint8_t* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  bool huge() const noexcept { return huge_; }
  template <class T>
  T* as() noexcept {
    return reinterpret_cast<T*>(data_);
  }
  template <class T>
  const T* as() const noexcept {
    return reinterpret_cast<const T*>(data_);
  }

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
  size_t mapped_ = 0;  // bytes to munmap; 0 when from aligned_alloc
  bool huge_ = false;
};

// The system's huge pages of the default size (2 MiB on x86-64, 32 MiB on LoongArch; read, never
// assumed).
struct HugePages {
  size_t page_bytes = 0;  // 0: the system has none
  uint64_t total = 0;
  uint64_t free = 0;  // not in use and not promised to a mapping

  // Pages that a buffer of so many bytes takes. 0 when page_bytes is 0.
  uint64_t needed(uint64_t bytes) const noexcept {
    return page_bytes == 0 ? 0 : bytes / page_bytes + (bytes % page_bytes != 0 ? 1 : 0);
  }
};

// meminfo: another file of that form, for tests. All zero when it cannot be read.
LF_API HugePages huge_pages(const std::filesystem::path& meminfo = "/proc/meminfo") noexcept;

}  // namespace loongforge
