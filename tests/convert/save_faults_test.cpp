// What convert writes is there complete or as it was before, whichever step of writing fails or is
// the last one.
#include <doctest/doctest.h>

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <map>

#include "convert/export.h"
#include "convert_support.h"
#include "support/file_faults.h"
#include "support/temp_dir.h"

using namespace loongforge;
using namespace loongforge::test;
namespace fs = std::filesystem;

namespace {

using Folder = std::map<std::string, std::string>;

Folder read_folder(const fs::path& path) {
  if (fs::is_regular_file(path)) return {{"", read_file(path)}};
  Folder files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path))
    if (entry.is_regular_file())
      files[fs::relative(entry.path(), path).string()] = read_file(entry.path());
  return files;
}

struct Job {
  const char* name;
  const char* target;                                  // a folder's or a file's name
  std::function<void(const fs::path&to)> before, now;  // what stands there, what replaces it
};

// Folders in memory, where syncing costs nothing.
const fs::path& memory_folder() {
  static const fs::path folder =
      fs::is_directory("/dev/shm") ? "/dev/shm" : fs::temp_directory_path();
  return folder;
}

class MemoryDir {
 public:
  MemoryDir() {
    std::string name = (memory_folder() / "lf-test-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~MemoryDir() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  size_t entries() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }
  fs::path path;
};

void check_job(const Job& job) {
  CAPTURE(job.name);
  const MemoryDir ready, counted;
  job.before(ready.path / job.target);
  const Folder before = read_folder(ready.path / job.target);
  fs::copy(ready.path / job.target, counted.path / job.target, fs::copy_options::recursive);
  const size_t steps = steps_of([&] { job.now(counted.path / job.target); }).size();
  const Folder after = read_folder(counted.path / job.target);
  REQUIRE(before != after);
  REQUIRE(steps > 10);
  size_t errors = 0;
  for (size_t at = 0; at < steps; ++at) {
    CAPTURE(at);
    for (int way = 0; way < 3; ++way) {
      const MemoryDir dir;
      fs::copy(ready.path / job.target, dir.path / job.target, fs::copy_options::recursive);
      if (way < 2) {
        FailAt watch(at, at % 2 == 0 ? ENOSPC : EIO,
                     way == 0 ? Fault::kFromThere : Fault::kShortWrite);
        const Watching watching(watch);
        try {
          job.now(dir.path / job.target);
        } catch (const Error& e) {
          ++errors;
          CHECK(e.code() == ErrorCode::kFailed);
          CHECK(std::string(e.what()).find(dir.path.string()) != std::string::npos);
        }
      } else {
        kill_at(at, [&] { job.now(dir.path / job.target); });
      }
      // The next start clears what a killed one left.
      recover_folders(dir.path);
      CHECK(dir.entries() == 1);
      const Folder found = read_folder(dir.path / job.target);
      CHECK((found == before || found == after));
    }
  }
  CHECK(errors > steps);
}

}  // namespace

TEST_CASE("an import that fails or is killed at any step leaves the older model whole") {
  const fs::path source = model_dir("llama2") / "checkpoint";
  const auto import_as = [&](const char* quantize) {
    return [&source, quantize](const fs::path& to) {
      convert::ImportOptions o = import_options(source, to);
      o.quantize = quantize;
      o.overwrite = true;
      convert::import_model(o);
    };
  };
  check_job({"import", "out", import_as("bf16"), import_as("fp8")});
}

TEST_CASE("an export that fails or is killed at any step leaves the older one whole") {
  const TempDir models;
  convert::import_model(import_options(model_dir("llama2") / "checkpoint", models / "ir"));
  const auto export_as = [&](const char* format, const char* dtype, uint64_t shard) {
    return [&models, format, dtype, shard](const fs::path& to) {
      convert::ExportOptions o = export_options(models / "ir", to);
      o.format = format;
      o.dtype = dtype;
      o.max_shard_bytes = shard;
      o.overwrite = true;
      convert::export_model(o);
    };
  };
  check_job(
      {"hf", "out", export_as("hf", "bf16", 5'000'000'000), export_as("hf", "fp32", 300'000)});
  check_job({"gguf", "out.gguf", export_as("gguf", "fp16", 0), export_as("gguf", "q8_0", 0)});
  const auto adapter_as = [](const char* dtype) {
    return [dtype](const fs::path& to) {
      convert::ExportOptions o = export_options({}, to);
      o.input_path = model_dir("llama2") / "adapter";
      o.format = "peft";
      o.dtype = dtype;
      o.overwrite = true;
      convert::export_model(o);
    };
  };
  check_job({"peft", "out", adapter_as("fp32"), adapter_as("bf16")});
}
