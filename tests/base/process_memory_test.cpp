#include "base/process_memory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>

#include "base/aligned.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

using namespace loongforge;

TEST_CASE("process memory: reads the status file") {
  test::TempDir dir;
  std::ofstream(dir / "status")
      << "Name:\tx\nVmPeak:\t  900000 kB\nVmHWM:\t    8192 kB\nVmRSS:\t    4096 kB\n";
  ProcessMemory memory = process_memory(dir / "status");
  CHECK(memory.resident == 4096u << 10);
  CHECK(memory.peak_resident == 8192u << 10);
  std::ofstream(dir / "short") << "Name:\tx\nVmHWM:\t    8192 kB\n";
  LF_CHECK_ERROR(process_memory(dir / "short"), ErrorCode::kFailed, "no VmRSS");
  LF_CHECK_ERROR(process_memory(dir / "absent"), ErrorCode::kFailed, "absent");
}

TEST_CASE("process memory: the peak stays, a reset forgets it") {
  constexpr size_t kBytes = 48u << 20;
  release_free_memory();
  uint64_t before = process_memory().resident;
  {
    AlignedBuffer buffer(kBytes);
    std::fill(buffer.data(), buffer.data() + kBytes, uint8_t{1});
  }
  ProcessMemory after = process_memory();
  constexpr size_t kOther = 1u << 20;  // pages of the process that went meanwhile
  CHECK(after.peak_resident >= before + kBytes - kOther);
  CHECK(after.resident < after.peak_resident);
  if (reset_peak_memory()) {
    CHECK(process_memory().peak_resident < after.peak_resident);
  } else {
    MESSAGE("this kernel does not let a process reset its peak");
  }
}
