#include "formats/strided.h"

#include <doctest/doctest.h>

#include <functional>
#include <random>

#include "support/bytes.h"
#include "support/temp_dir.h"

using namespace loongforge::formats;
using loongforge::test::TempDir;

namespace {

// The view's elements by the definition, from the file's bytes.
std::vector<uint8_t> expected(const std::string& file, uint64_t begin, size_t size,
                              const std::vector<int64_t>& shape,
                              const std::vector<int64_t>& stride) {
  std::vector<uint8_t> out;
  const std::function<void(size_t, uint64_t)> walk = [&](size_t dim, uint64_t element) {
    if (dim == shape.size()) {
      for (size_t b = 0; b < size; ++b)
        out.push_back(static_cast<uint8_t>(file[begin + element * size + b]));
      return;
    }
    for (int64_t i = 0; i < shape[dim]; ++i)
      walk(dim + 1, element + static_cast<uint64_t>(i * stride[dim]));
  };
  walk(0, 0);
  return out;
}

}  // namespace

TEST_CASE("strided: every range of views equals the definition") {
  std::mt19937 random(5);
  std::string bytes(60000, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  TempDir dir;
  loongforge::test::write_file(dir / "f", bytes);
  const loongforge::File file = loongforge::File::open_read(dir / "f");
  const auto check = [&](size_t size, const std::vector<int64_t>& shape,
                         const std::vector<int64_t>& stride, bool dense) {
    const StridedView view(16, size, shape, stride);
    CHECK(view.dense() == dense);
    const std::vector<uint8_t> whole = expected(bytes, 16, size, shape, stride);
    const uint64_t elements = whole.size() / size;
    for (int i = 0; i < 60; ++i) {
      uint64_t e0 = i == 0 ? 0 : random() % (elements + 1),
               e1 = i == 0 ? elements : random() % (elements + 1);
      if (e0 > e1) std::swap(e0, e1);
      std::vector<uint8_t> out((e1 - e0) * size);
      view.read(file, e0, e1, out);
      CHECK(std::equal(out.begin(), out.end(), whole.begin() + static_cast<ptrdiff_t>(e0 * size)));
    }
  };
  check(4, {5, 7}, {7, 1}, true);
  check(4, {5, 7}, {1, 5}, false);                // transposed
  check(2, {5, 7}, {20, 1}, false);               // columns
  check(2, {5, 7}, {20, 2}, false);               // every second column
  check(1, {3, 4, 5}, {1, 15, 3}, false);         // permuted
  check(8, {2, 3, 4, 5}, {60, 1, 15, 3}, false);  // channels last
  check(4, {1, 6, 1}, {99, 1, 1234}, true);       // extents of 1 have any stride
  check(4, {6}, {1500}, false);                   // far apart: one by one
  check(4, {3, 6}, {0, 1}, false);                // repeated rows
  check(2, {}, {}, true);
  check(4, {0, 3}, {1, 7}, true);
  check(1, {300, 190}, {1, 300}, false);
}
