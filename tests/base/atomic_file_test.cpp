#include "base/atomic_file.h"

#include <doctest/doctest.h>

#include "support/bytes.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

using loongforge::AtomicFile;
using loongforge::test::bytes_of;
using loongforge::test::read_file;
using loongforge::test::TempDir;

TEST_CASE("atomic_file: the old file stands until the new one is complete") {
  TempDir dir;
  loongforge::test::write_file(dir / "f", "old");
  {
    AtomicFile file(dir / "f");
    file.file().write(bytes_of("half"));
    CHECK(read_file(dir / "f") == "old");
    CHECK(dir.entries() == 2);
  }
  CHECK(read_file(dir / "f") == "old");
  CHECK(dir.entries() == 1);
  AtomicFile file(dir / "f");
  file.file().write(bytes_of("new"));
  file.commit();
  CHECK(read_file(dir / "f") == "new");
  CHECK(dir.entries() == 1);
  LF_CHECK_ERROR(AtomicFile(dir / "absent/f"), loongforge::ErrorCode::kFailed, "absent");
}
