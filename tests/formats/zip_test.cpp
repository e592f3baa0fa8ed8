#include "formats/zip.h"

#include <doctest/doctest.h>

#include "support/expect_error.h"
#include "support/temp_dir.h"
#include "support/torch_zip.h"

using namespace loongforge::formats;
using loongforge::ErrorCode;
using loongforge::File;
using loongforge::test::MadeEntry;
using loongforge::test::TempDir;
using loongforge::test::write_file;
using loongforge::test::zip_bytes;

namespace {

struct Case {
  TempDir dir;
  std::vector<ZipEntry> read(const std::string& bytes) {
    write_file(dir / "f.bin", bytes);
    return read_zip_directory(File::open_read(dir / "f.bin"));
  }
  void refuse(const std::string& bytes, const char* text) {
    CAPTURE(text);
    LF_CHECK_ERROR(read(bytes), ErrorCode::kBadData, text);
    LF_CHECK_ERROR(read(bytes), ErrorCode::kBadData, "f.bin: ");
  }
};

}  // namespace

TEST_CASE("zip: data stands behind the local header's own extra field") {
  Case c;
  for (const bool zip64 : {false, true}) {
    for (const bool descriptor : {false, true}) {
      const std::string bytes = zip_bytes(
          {{.name = "a", .data = "first", .descriptor = descriptor, .zip64 = zip64, .padding = 65},
           {.name = "b/", .data = "", .zip64 = zip64},
           {.name = "b/c", .data = "second one", .descriptor = descriptor, .padding = 3}},
          zip64, "a comment PK\5\6 that looks like an end");
      const std::vector<ZipEntry> entries = c.read(bytes);
      REQUIRE(entries.size() == 3);
      CHECK(entries[0].name == "a");
      CHECK(bytes.substr(entries[0].offset, entries[0].bytes) == "first");
      CHECK(entries[1].bytes == 0);
      CHECK(entries[2].name == "b/c");
      CHECK(bytes.substr(entries[2].offset, entries[2].bytes) == "second one");
    }
  }
  CHECK(c.read(zip_bytes({})).empty());
}

TEST_CASE("zip: entries that no reader should trust") {
  Case c;
  c.refuse(zip_bytes({{.name = "big", .data = "xx", .method = 8, .claimed_bytes = 4000000000}}),
           "f.bin: big: the entry is compressed (method 8");
  c.refuse(zip_bytes({{.name = "e", .data = "xx", .flags = 1}}), "e: the entry is encrypted");
  c.refuse(zip_bytes({{.name = "a", .data = "x"}, {.name = "a", .data = "y"}}),
           "f.bin: a: the entry's name stands twice");
  c.refuse(zip_bytes({{.name = "a", .data = "x", .local_name = "b"}}),
           "a: its own header contradicts the directory");
  c.refuse(zip_bytes({{.name = "a", .data = "xyz", .descriptor = true, .claimed_bytes = 1000000}}),
           "a: its 1000000 bytes at offset 31 end beyond the file's data");
  c.refuse(zip_bytes({{.name = "a", .data = "x", .local_shift = 1 << 20}}),
           "a: its header at offset 1048576 is not inside");
  c.refuse(zip_bytes({{.name = "a", .data = "x", .local_shift = 1}}),
           "a: has no entry at offset 1");
  // Two entries of one place, by a second header inside of the first entry's data.
  const std::string inner = zip_bytes({{.name = "b", .data = "yy"}}).substr(0, 33);
  c.refuse(zip_bytes({{.name = "a", .data = inner},
                      {.name = "b", .data = "yy", .local_shift = -static_cast<int64_t>(33)}}),
           "b: its bytes overlap those of a");
  // Sizes that the two headers tell differently.
  std::string bytes = zip_bytes({{.name = "a", .data = "xyz"}});
  bytes[22] = 2;
  c.refuse(bytes, "a: its own header gives it 2 bytes, the directory 3");
  bytes = zip_bytes({{.name = "a", .data = "xyz"}});
  bytes[bytes.size() - 22 - 47 + 24] = 9;  // the size outside of the file
  c.refuse(bytes, "a: is stored, but has 3 bytes in the file and 9 outside of it");
}

TEST_CASE("zip: directories that lie") {
  Case c;
  c.refuse("", "too few for a zip file");
  c.refuse(std::string(100, 'x'), "has no zip directory at its end");
  const std::string good = zip_bytes({{.name = "a", .data = "xyz"}});
  const size_t end = good.size() - 22;
  const auto with = [&](size_t at, uint32_t value, size_t bytes) {
    std::string out = good;
    std::memcpy(out.data() + at, &value, bytes);
    return out;
  };
  c.refuse(with(end + 16, 0x7fffffff, 4), "is not inside the file");
  c.refuse(with(end + 12, 0x7fffffff, 4), "is not inside the file");
  c.refuse(with(end + 10, 500, 2), "claims 500 entries in 47 bytes");
  c.refuse(with(end + 10, 0, 2), "has 47 bytes behind its last entry");
  c.refuse(with(end + 4, 1, 2), "several parts");
  c.refuse(with(end - 47, 0, 4), "entry 0 of its zip directory is no entry");
  c.refuse(with(end - 47 + 28, 300, 2), "entry 0 of its zip directory ends early");
  c.refuse(with(end - 47 + 20, 0xffffffff, 4), "a: lacks the ZIP64 field");
  std::string wide = zip_bytes({{.name = "a", .data = "xyz"}}, true);
  wide[wide.size() - 22 - 20 + 8 + 7] = 0x7f;
  c.refuse(wide, "its ZIP64 end record is not inside the file");
}

TEST_CASE("zip: every cut and every flipped byte ends in an error or a sound directory") {
  Case c;
  const std::string good =
      zip_bytes({{.name = "m/data.pkl", .data = "abc", .descriptor = true, .padding = 9},
                 {.name = "m/data/0", .data = "01234567", .zip64 = true}},
                true);
  for (size_t cut = 0; cut < good.size(); ++cut) c.refuse(good.substr(0, cut), "f.bin");
  for (size_t i = 0; i < good.size(); ++i) {
    for (const int bit : {0, 3, 7}) {
      std::string bytes = good;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      try {
        for (const ZipEntry& entry : c.read(bytes))
          CHECK(entry.offset + entry.bytes <= bytes.size());
      } catch (const loongforge::Error& error) {
        CHECK(error.code() == ErrorCode::kBadData);
      }
    }
  }
}
