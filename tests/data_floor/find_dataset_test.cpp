#include <doctest/doctest.h>
#include <stdlib.h>

#include <optional>
#include <string>

#include "data/dataset.h"
#include "support/bytes.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

namespace loongforge::data {
namespace {

namespace fs = std::filesystem;

// Sets or removes a variable for one scope.
class Variable {
 public:
  Variable(const char* name, const std::optional<std::string>& value) : name_(name) {
    if (const char* old = getenv(name)) old_ = old;
    set(value);
  }
  ~Variable() { set(old_); }

 private:
  void set(const std::optional<std::string>& value) {
    if (value)
      setenv(name_, value->c_str(), 1);
    else
      unsetenv(name_);
  }
  const char* name_;
  std::optional<std::string> old_;
};

TEST_CASE("a dataset by path, and by name under LOONGFORGE_DATA or LOONGFORGE_HOME") {
  const test::TempDir folder;
  const fs::path data = folder / "data", share = folder.path() / "home" / "share" / "data";
  fs::create_directories(data / "sub");
  fs::create_directories(share);
  for (const char* name : {"zh.json", "en.jsonl", "en.txt", "readme.md", "sub/deep.jsonl"})
    test::write_file(data / name, "{}");
  test::write_file(share / "home.json", "{}");
  const Variable home("LOONGFORGE_HOME", (folder / "home").string());
  {
    const Variable unset("LOONGFORGE_DATA", std::nullopt);
    CHECK(find_dataset("home") == share / "home.json");
    CHECK(find_dataset((data / "zh.json").string()) == data / "zh.json");
    LF_CHECK_ERROR(find_dataset("zh"), ErrorCode::kNoInput,
                   "known in " + share.string() + ": home");
  }
  const Variable set("LOONGFORGE_DATA", data.string());
  CHECK(find_dataset("zh") == data / "zh.json");
  CHECK(find_dataset("zh.json") == data / "zh.json");
  CHECK(find_dataset("en") == data / "en.jsonl");
  CHECK(find_dataset("readme.md") == data / "readme.md");
  CHECK(find_dataset("sub/deep") == data / "sub" / "deep.jsonl");
  LF_CHECK_ERROR(find_dataset("fr"), ErrorCode::kNoInput,
                 "fr: no such file or dataset; known in " + data.string() + ": en, zh");
  LF_CHECK_ERROR(find_dataset("home"), ErrorCode::kNoInput, "no such file or dataset");
  LF_CHECK_ERROR(find_dataset(""), ErrorCode::kNoInput, "no such file or dataset");
  LF_CHECK_ERROR(find_dataset(data.string()), ErrorCode::kNoInput, "is a folder");
}

TEST_CASE("no folder of datasets") {
  const test::TempDir folder;
  const Variable home("LOONGFORGE_HOME", std::nullopt);
  {
    const Variable unset("LOONGFORGE_DATA", std::nullopt);
    LF_CHECK_ERROR(find_dataset("zh"), ErrorCode::kNoInput, "when LOONGFORGE_DATA names");
  }
  const Variable absent("LOONGFORGE_DATA", (folder / "absent").string());
  LF_CHECK_ERROR(find_dataset("zh"), ErrorCode::kNoInput, "there are no datasets in");
}

}  // namespace
}  // namespace loongforge::data
