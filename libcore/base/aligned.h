// Memory aligned to 64 bytes (a cache line, a zmm register), or to huge pages, straight from mmap for large sizes so
// that freeing it returns it to the system. Zero-filled when large (fresh mmap), undefined when small.
// Thread-safety: a value; movable, not copyable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/api.h"

namespace loongforge {

enum class Pages {
  kNormal,       // whatever the system does
  kTransparent,  // madvise(MADV_HUGEPAGE)
  kHuge,         // MAP_HUGETLB where free pages suffice; huge() tells whether it worked, falls back to kTransparent
};

class LF_API AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Throws Error(kFailed) naming the size when memory cannot be had.
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

}  // namespace loongforge
