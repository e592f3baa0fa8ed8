#include "convert/paths.h"

#include <doctest/doctest.h>

#include "convert/export.h"
#include "support/bytes.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

using namespace loongforge;

TEST_CASE("sizes") {
  CHECK(convert::parse_byte_size("5GB", "x") == 5'000'000'000);
  CHECK(convert::parse_byte_size("500MB", "x") == 500'000'000);
  CHECK(convert::parse_byte_size("1.5gb", "x") == 1'500'000'000);
  CHECK(convert::parse_byte_size("2GiB", "x") == uint64_t{2} << 30);
  CHECK(convert::parse_byte_size("1000000", "x") == 1'000'000);
  for (const char* bad :
       {"", "GB", "5XB", "-5GB", "0", "nan", "inf", "1e400GB", "5 GB", "99999999999999TB"}) {
    CAPTURE(bad);
    LF_CHECK_ERROR(convert::parse_byte_size(bad, "--max-shard-size"), ErrorCode::kUsage,
                   "--max-shard-size");
  }
}

TEST_CASE("a model is found in the folder or in its only subfolder") {
  const test::TempDir dir;
  const auto make = [&dir](const char* name) {
    std::filesystem::create_directories(dir / name);
    test::write_file(dir / name / "f", "x");
  };
  LF_CHECK_ERROR(convert::folder_with(dir.path(), "f", "thing"), ErrorCode::kNoInput,
                 "holds no thing");
  make("a");
  CHECK(convert::folder_with(dir.path(), "f", "thing") == dir / "a");
  CHECK(convert::folder_with(dir / "a", "f", "thing") == dir / "a");
  make("b");
  LF_CHECK_ERROR(convert::folder_with(dir.path(), "f", "thing"), ErrorCode::kNoInput,
                 "more than one thing");
  // A run's folder: links to its checkpoints are no further ones, the newest is what is meant.
  std::filesystem::create_directory_symlink("b", dir / "latest");
  LF_CHECK_ERROR(convert::folder_with(dir.path(), "f", "thing"), ErrorCode::kNoInput,
                 ("name one of them, for instance " + (dir / "latest").string()).c_str());
  std::filesystem::remove_all(dir / "a");
  CHECK(convert::folder_with(dir.path(), "f", "thing") == dir / "b");
  test::write_file(dir / "b" / "adapter_config.json", "{}");
  LF_CHECK_ERROR(convert::folder_with(dir / "b", "model", "model"), ErrorCode::kNoInput,
                 "it is an adapter: name the model it belongs to as --input-path");
}

TEST_CASE("what stands beside the weights is counted, so that a small export asks for little room") {
  const test::TempDir dir;
  test::write_file(dir / "weights-00000.lir", std::string(1000, 'x'));
  test::write_file(dir / "tokenizer.json", std::string(300, 'x'));
  CHECK(convert::bytes_beside_weights(dir.path()) == 300);
}

TEST_CASE("outputs that would destroy an input") {
  const test::TempDir dir;
  std::filesystem::create_directories(dir / "in" / "sub");
  std::filesystem::create_symlink(dir / "in", dir / "link");
  const std::string_view markers[] = {"f"};
  const auto guard = [&](const std::filesystem::path& input, const std::filesystem::path& output) {
    const std::filesystem::path inputs[] = {input};
    convert::guard_output(output, inputs, true, markers);
  };
  LF_CHECK_ERROR(guard(dir / "in", dir / "in"), ErrorCode::kUsage, "is or contains");
  LF_CHECK_ERROR(guard(dir / "in", dir / "in" / ""), ErrorCode::kUsage, "is or contains");
  LF_CHECK_ERROR(guard(dir / "in" / "sub", dir / "in"), ErrorCode::kUsage, "is or contains");
  LF_CHECK_ERROR(guard(dir / "link", dir / "in"), ErrorCode::kUsage, "is or contains");
  LF_CHECK_ERROR(guard(dir / "in", dir.path()), ErrorCode::kUsage, "is or contains");
  CHECK_NOTHROW(guard(dir / "in", dir / "in" / "new"));
  CHECK_NOTHROW(guard(dir / "in", dir / "inner"));  // a longer name is no subfolder
}
