#include "base/aligned.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>

#include "base/process_memory.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

using loongforge::AlignedBuffer;
using loongforge::ErrorCode;
using loongforge::HugePages;
using loongforge::Pages;

TEST_CASE("aligned: alignment, zeros when large, moves") {
  for (size_t bytes : {size_t{1}, size_t{63}, size_t{4096}, loongforge::kMmapBytes - 1,
                       loongforge::kMmapBytes, size_t{5000001}}) {
    for (Pages pages : {Pages::kNormal, Pages::kTransparent, Pages::kHuge}) {
      AlignedBuffer buffer(bytes, pages);
      REQUIRE(buffer.data() != nullptr);
      CHECK(buffer.size() == bytes);
      CHECK(reinterpret_cast<uintptr_t>(buffer.data()) % 64 == 0);
      if (bytes >= loongforge::kMmapBytes) {
        CHECK(std::all_of(buffer.data(), buffer.data() + bytes, [](uint8_t b) { return b == 0; }));
      }
      if (pages != Pages::kNormal && bytes >= (2u << 20)) {
        CHECK(reinterpret_cast<uintptr_t>(buffer.data()) % (2u << 20) == 0);
      }
      std::fill(buffer.data(), buffer.data() + bytes, uint8_t{0xA5});
      uint8_t* data = buffer.data();
      AlignedBuffer moved(std::move(buffer));
      CHECK(moved.data() == data);
      CHECK(moved.as<uint8_t>()[bytes - 1] == 0xA5);
      buffer = std::move(moved);
      CHECK(buffer.data() == data);
      CHECK(moved.data() == nullptr);
    }
  }
  AlignedBuffer empty(0);
  CHECK(empty.data() == nullptr);
  CHECK(empty.size() == 0);
}

TEST_CASE("aligned: what cannot be had is an Error that names the size") {
  LF_CHECK_ERROR(AlignedBuffer(size_t{1} << 62), ErrorCode::kFailed, "4611686018427387904 bytes");
  LF_CHECK_ERROR(AlignedBuffer(~size_t{0}), ErrorCode::kFailed, "cannot allocate");
  LF_CHECK_ERROR(AlignedBuffer(~size_t{0} - 4096, Pages::kHuge), ErrorCode::kFailed,
                 "cannot allocate");
}

TEST_CASE("aligned: a freed large buffer goes back to the system") {
  constexpr size_t kBytes = 64u << 20;
  uint64_t before = loongforge::process_memory().resident;
  {
    AlignedBuffer buffer(kBytes);
    std::fill(buffer.data(), buffer.data() + kBytes, uint8_t{1});
    CHECK(loongforge::process_memory().resident >= before + kBytes / 2);
  }
  CHECK(loongforge::process_memory().resident < before + kBytes / 2);
}

TEST_CASE("aligned: huge pages are counted as the system tells them") {
  loongforge::test::TempDir dir;
  std::ofstream(dir / "meminfo")
      << "MemTotal:       32590388 kB\nHugePages_Total:      12\nHugePages_Free:        9\n"
         "HugePages_Rsvd:        2\nHugePages_Surp:        0\nHugepagesize:      32768 kB\n"
         "Hugetlb:         393216 kB\n";
  HugePages huge = loongforge::huge_pages(dir / "meminfo");
  CHECK(huge.page_bytes == size_t{32} << 20);
  CHECK(huge.total == 12);
  CHECK(huge.free == 7);
  CHECK(huge.needed(0) == 0);
  CHECK(huge.needed(1) == 1);
  CHECK(huge.needed(uint64_t{32} << 20) == 1);
  CHECK(huge.needed((uint64_t{64} << 20) + 1) == 3);

  std::ofstream(dir / "wrong") << "Hugepagesize:      33333 kB\nHugePages_Free: 4\n";
  CHECK(loongforge::huge_pages(dir / "wrong").page_bytes == 0);
  HugePages none = loongforge::huge_pages(dir / "absent");
  CHECK(none.page_bytes == 0);
  CHECK(none.needed(1000) == 0);
}

TEST_CASE("aligned: kHuge uses huge pages exactly when enough are free") {
  constexpr size_t kBytes = 3u << 20;
  HugePages before = loongforge::huge_pages();
  AlignedBuffer buffer(kBytes, Pages::kHuge);
  bool enough = before.page_bytes != 0 && before.free >= before.needed(kBytes);
  if (!enough) MESSAGE("no free huge pages here: only the fall-back is tested");
  CHECK(buffer.huge() == enough);
  buffer.data()[kBytes - 1] = 1;
}
