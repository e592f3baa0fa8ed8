#include "formats/strided.h"

#include <algorithm>
#include <cstring>

namespace loongforge::formats {
namespace {

constexpr uint64_t kBuffer = uint64_t{1} << 17;  // bytes
// Elements this many bytes apart are read one by one; nearer ones with what stands between them.
constexpr uint64_t kFarApart = 4096;

}  // namespace

StridedView::StridedView(uint64_t begin, size_t element_bytes, std::vector<int64_t> shape,
                         std::vector<int64_t> stride)
    : begin_(begin), size_(element_bytes) {
  // A dimension of extent 1 is never stepped along, whatever its stride.
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    shape_.push_back(static_cast<uint64_t>(shape[i]));
    stride_.push_back(static_cast<uint64_t>(stride[i]));
  }
  inner_.assign(shape_.size(), 1);
  for (size_t i = shape_.size(); i-- > 1;) inner_[i - 1] = inner_[i] * shape_[i];
  dense_ =
      inner_ == stride_ || std::find(shape_.begin(), shape_.end(), uint64_t{0}) != shape_.end();
}

void StridedView::read(const File& file, uint64_t e0, uint64_t e1, std::span<uint8_t> out) const {
  if (e0 >= e1) return;
  if (dense_) {
    file.read_at(begin_ + e0 * size_, out);
  } else {
    read_part(file, 0, 0, e0, e1, out.data());
  }
}

// Elements [e0, e1) of the dimensions from dim on, whose first element is `from`: a partial first
// index, whole ones, a partial last one.
void StridedView::read_part(const File& file, size_t dim, uint64_t from, uint64_t e0, uint64_t e1,
                            uint8_t* out) const {
  const uint64_t inner = inner_[dim];
  if (e0 % inner != 0) {
    const uint64_t index = e0 / inner, end = std::min(e1, (index + 1) * inner);
    read_part(file, dim + 1, from + index * stride_[dim], e0 - index * inner, end - index * inner,
              out);
    out += (end - e0) * size_;
    e0 = end;
  }
  const uint64_t whole = (e1 - e0) / inner;
  if (whole > 0) {
    read_box(file, dim, from + e0 / inner * stride_[dim], whole, out);
    out += whole * inner * size_;
    e0 += whole * inner;
  }
  if (e0 < e1) {
    const uint64_t index = e0 / inner;
    read_part(file, dim + 1, from + index * stride_[dim], 0, e1 - e0, out);
  }
}

// `count` whole indices of dim. Runs along the dimension whose elements stand nearest to each
// other; the other dimensions are counted through.
void StridedView::read_box(const File& file, size_t dim, uint64_t from, uint64_t count,
                           uint8_t* out) const {
  const size_t dims = shape_.size();
  std::vector<uint64_t> extent(shape_.begin() + static_cast<ptrdiff_t>(dim), shape_.end());
  extent[0] = count;
  size_t run = dims - 1;
  for (size_t i = dims; i-- > dim;) {
    const bool better = extent[i - dim] > 1 && stride_[i] < stride_[run];
    if (better || extent[run - dim] == 1) run = i;
  }
  std::vector<uint64_t> index(extent.size(), 0);
  for (;;) {
    uint64_t element = from, position = 0;
    for (size_t i = dim; i < dims; ++i) {
      element += index[i - dim] * stride_[i];
      position += index[i - dim] * inner_[i];
    }
    read_run(file, element, extent[run - dim], stride_[run], out + position * size_, inner_[run]);
    size_t i = dims;
    while (i-- > dim) {
      if (i == run) continue;
      if (++index[i - dim] < extent[i - dim]) break;
      index[i - dim] = 0;
    }
    if (i + 1 == dim) return;  // all have been counted through
  }
}

void StridedView::read_run(const File& file, uint64_t from, uint64_t count, uint64_t stride,
                           uint8_t* out, uint64_t out_stride) const {
  if (stride == 1 && out_stride == 1) {
    file.read_at(begin_ + from * size_, {out, static_cast<size_t>(count * size_)});
    return;
  }
  const bool together = stride * size_ <= kFarApart;
  const uint64_t per_read =
      together ? std::max<uint64_t>(1, kBuffer / size_ / std::max<uint64_t>(1, stride)) : 1;
  std::vector<uint8_t> buffer;
  for (uint64_t done = 0; done < count;) {
    const uint64_t n = std::min(count - done, per_read);
    buffer.resize(static_cast<size_t>(((n - 1) * stride + 1) * size_));
    file.read_at(begin_ + (from + done * stride) * size_, buffer);
    for (uint64_t i = 0; i < n; ++i) {
      std::memcpy(out + (done + i) * out_stride * size_, buffer.data() + i * stride * size_, size_);
    }
    done += n;
  }
}

}  // namespace loongforge::formats
