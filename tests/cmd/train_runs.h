// Runs of loongforge-train on the tiny model that the repository carries: what the tests of the
// command share.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "support/data.h"
#include "support/json.h"
#include "support/program.h"
#include "support/temp_dir.h"

namespace loongforge::test {

namespace fs = std::filesystem;

inline const fs::path kQuickstart = source_dir() / "scripts" / "quickstart";

// The tiny model, converted once for all cases of the process.
inline const fs::path& tiny_model() {
  static const TempDir dir;
  static const fs::path folder = [] {
    const fs::path to = dir.path() / "tiny";
    const Outcome o =
        run({{program("loongforge-convert"), "--model-name", "tiny", "--input-path",
              kQuickstart / "tiny_model", "--output-path", to, "--quantize", "bf16"}});
    REQUIRE_MESSAGE(o.code == 0, o.err);
    return to;
  }();
  return folder;
}

inline std::vector<std::string> train_words(const fs::path& output,
                                            const std::vector<std::string>& more) {
  std::vector<std::string> words = {program("loongforge-train"),
                                    "--model_path",
                                    tiny_model(),
                                    "--dataset",
                                    kQuickstart / "records.jsonl",
                                    "--output_dir",
                                    output,
                                    "--per_device_train_batch_size",
                                    "2",
                                    "--gradient_accumulation_steps",
                                    "3",
                                    "--max_samples",
                                    "40",
                                    "--log-format",
                                    "json",
                                    "--learning_rate",
                                    "2e-3",
                                    "--threads",
                                    "2"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

inline void check_says(const Outcome& o, int code, const std::string& says) {
  CAPTURE(o.err);
  CHECK(o.code == code);
  CHECK_MESSAGE(o.err.find(says) != std::string::npos, says);
}

inline std::vector<support::Json> events(const std::string& err, const std::string& kind) {
  std::vector<support::Json> found;
  size_t begin = 0;
  while (begin < err.size()) {
    const size_t end = std::min(err.find('\n', begin), err.size());
    const std::string line = err.substr(begin, end - begin);
    begin = end + 1;
    if (!line.starts_with("{")) continue;
    const support::Json json = support::Json::parse(line, "stderr");
    if (json.get_string("event", "") == kind) found.push_back(json);
  }
  return found;
}

inline void check_same_folder(const fs::path& a, const fs::path& b) {
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(a)) {
    CAPTURE(entry.path().string());
    CHECK(read_text(entry.path()) == read_text(b / entry.path().filename()));
    ++files;
  }
  CHECK(files ==
        static_cast<size_t>(std::distance(fs::directory_iterator(b), fs::directory_iterator())));
}

}  // namespace loongforge::test
