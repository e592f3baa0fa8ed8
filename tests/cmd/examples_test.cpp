// The examples of the documentation, run as they stand, on the tiny model under the names that they
// use.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "base/file.h"
#include "support/program.h"
#include "support/temp_dir.h"

namespace loongforge::test {
namespace {

namespace fs = std::filesystem;

// Lines of code blocks that call loongforge, with their continuations.
std::string commands_of(const fs::path& file) {
  std::istringstream text(read_text(file));
  std::string script, line;
  for (bool more = false; std::getline(text, line);) {
    const size_t begin = line.find_first_not_of(' ');
    const std::string code = begin == std::string::npos ? "" : line.substr(begin);
    const bool call = begin == 4 && code.starts_with("loongforge ");
    if (!call && !more) continue;
    more = code.ends_with("\\");
    script += code + "\n";
  }
  return script;
}

void check_examples(const char* name) {
  const TempDir dir;
  const fs::path data = source_dir() / "scripts" / "quickstart";
  fs::create_directory_symlink(data / "tiny_model", dir / "SmolLM2-135M-Instruct");
  fs::create_symlink(data / "records.jsonl", dir / "records.jsonl");
  fs::create_symlink(data / "records_eval.jsonl", dir / "records_eval.jsonl");
  fs::create_symlink(data / "prompts.txt", dir / "prompts.txt");
  const std::string script = commands_of(source_dir() / name);
  CAPTURE(script);
  CHECK(script.find("loongforge convert") != std::string::npos);
  CHECK(script.find("loongforge train") != std::string::npos);
  const Outcome o = run({{"/bin/bash", "-c",
                          "set -e\ncd '" + dir.path().string() + "'\nPATH='" +
                              (binary_dir() / "bin").string() + "':$PATH\n" + script}});
  CHECK_MESSAGE(o.code == 0, o.err);
  CHECK(fs::exists(dir / "smollm2-tuned" / "model.safetensors"));
  CHECK(fs::exists(dir / "smollm2-adapter" / "adapter_model.safetensors"));
}

TEST_CASE("README.md's examples run as they stand") { check_examples("README.md"); }
TEST_CASE("README.zh-CN.md's examples run as they stand") { check_examples("README.zh-CN.md"); }

}  // namespace
}  // namespace loongforge::test
