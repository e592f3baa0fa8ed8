// Reading a part of a strided view of elements in a file as dense elements, with memory that does
// not grow with the view. For the .cpp files of formats/ only. Thread-safety: const members may be
// called from several threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/api.h"
#include "base/file.h"

namespace loongforge::formats {

class LF_API StridedView {
 public:
  // begin: the view's first element in the file. REQUIRES shape and stride of one length, no
  // negative numbers, every element inside the file, and sizes that do not overflow.
  StridedView(uint64_t begin, size_t element_bytes, std::vector<int64_t> shape,
              std::vector<int64_t> stride);

  bool dense() const noexcept { return dense_; }
  // Elements [e0, e1) in row-major order. out.size() == (e1 - e0) * element_bytes.
  void read(const File& file, uint64_t e0, uint64_t e1, std::span<uint8_t> out) const;

 private:
  void read_part(const File& file, size_t dim, uint64_t from, uint64_t e0, uint64_t e1,
                 uint8_t* out) const;
  void read_box(const File& file, size_t dim, uint64_t from, uint64_t count, uint8_t* out) const;
  void read_run(const File& file, uint64_t from, uint64_t count, uint64_t stride, uint8_t* out,
                uint64_t out_stride) const;

  uint64_t begin_;
  size_t size_;  // of an element
  std::vector<uint64_t> shape_, stride_;
  std::vector<uint64_t> inner_;  // elements of one index of each dimension
  bool dense_ = false;
};

}  // namespace loongforge::formats
