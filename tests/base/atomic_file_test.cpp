#include "base/atomic_file.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

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

TEST_CASE("atomic_file: what is no regular file stays what it is") {
  namespace fs = std::filesystem;
  TempDir dir;
  loongforge::test::write_file(dir / "kept", "kept");
  fs::create_symlink("kept", dir / "link");
  fs::create_directory(dir / "folder");
  REQUIRE(mkfifo((dir / "pipe").c_str(), 0600) == 0);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(fd >= 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = (dir / "socket").string();
  REQUIRE(name.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, name.c_str(), name.size() + 1);
  REQUIRE(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  close(fd);
  // As /dev/full; only root can make one.
  const bool device = mknod((dir / "device").c_str(), S_IFCHR | 0600, 0x0107) == 0;
  const std::pair<const char*, const char*> cases[] = {{"link", "link: is a symbolic link"},
                                                       {"folder", "folder: is a folder"},
                                                       {"pipe", "pipe: is a pipe"},
                                                       {"socket", "socket: is a socket"},
                                                       {"device", "device: is a device"}};
  const auto entries = dir.entries();
  for (const auto& [file, message] : cases) {
    if (!device && std::string(file) == "device") continue;
    CAPTURE(std::string(file));
    const auto before = fs::symlink_status(dir / file).type();
    LF_CHECK_ERROR(AtomicFile(dir / file), loongforge::ErrorCode::kUsage, message);
    LF_CHECK_ERROR(loongforge::write_text_atomic(dir / file, "x"), loongforge::ErrorCode::kUsage,
                   message);
    CHECK(fs::symlink_status(dir / file).type() == before);
  }
  CHECK(dir.entries() == entries);
  // One that comes while the file is written.
  AtomicFile late(dir / "late");
  late.file().write(bytes_of("new"));
  REQUIRE(mkfifo((dir / "late").c_str(), 0600) == 0);
  LF_CHECK_ERROR(late.commit(), loongforge::ErrorCode::kUsage, "late: is a pipe");
  CHECK(fs::is_fifo(dir / "late"));
}

TEST_CASE("atomic_file: a name that another process of our number left is passed over") {
  TempDir dir;
  loongforge::write_text_atomic(dir / "f", "1");
  for (int i = 0; i < 50; ++i) {
    loongforge::test::write_file(
        dir / (".f.tmp-" + std::to_string(getpid()) + "-" + std::to_string(i)), "left");
  }
  loongforge::write_text_atomic(dir / "f", "2");
  CHECK(read_file(dir / "f") == "2");
  CHECK(dir.entries() == 1);  // and the left ones go
}
