// lf-tokenizer-check TOKENIZER_DIR_OR_GGUF_OR_MODEL FILE.jsonl [--bench TEXT_FILE] [--export
// FOLDER] Compares every line {text, ids, ids_special, decoded, decoded_skip} with what
// LoongTokenizer gives (ids_special and decoded_skip only where a line has them); exit 1 on a
// difference. --bench measures the encoder's speed on a text
// file, one thread. --export writes the tokenizer's files, as an export would, and checks the same
// lines with what was written.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "data/tokenizer.h"
#include "support/json.h"

namespace {

using loongforge::data::Tokenizer;
using loongforge::support::Json;

std::vector<int32_t> read_ids(const Json& line, const char* key) {
  std::vector<int32_t> ids;
  for (const Json& id : line.at(key, "line").as_array(key))
    ids.push_back(static_cast<int32_t>(id.as_int(key)));
  return ids;
}

std::string show(const std::vector<int32_t>& ids) {
  std::string text;
  for (int32_t id : ids) text += (text.empty() ? "" : " ") + std::to_string(id);
  return text;
}

struct Counts {
  int lines = 0, checks = 0, wrong = 0;
};

void compare(Counts& counts, const std::string& where, const char* what,
             const std::string& expected, const std::string& found) {
  ++counts.checks;
  if (expected == found) return;
  ++counts.wrong;
  std::printf("%s: %s differs\n  expected: %s\n  found:    %s\n", where.c_str(), what,
              expected.c_str(), found.c_str());
}

// The text decodes to itself in even ids too, and the offsets of an encoding cover its ids.
void check_line(Counts& counts, const Tokenizer& tokenizer, const Json& line,
                const std::string& where) {
  const std::string& text = line.at("text", "line").as_string("text");
  const std::vector<int32_t> ids = read_ids(line, "ids");
  compare(counts, where, "ids", show(ids), show(tokenizer.encode(text, false)));
  compare(counts, where, "ids (with offsets)", show(ids),
          show(tokenizer.encode_with_offsets(text, false).ids));
  compare(counts, where, "decoded", line.at("decoded", "line").as_string("decoded"),
          tokenizer.decode(ids, false));
  compare(counts, where, "decoded (even ids)", line.at("decoded", "line").as_string("decoded"),
          tokenizer.decode_ir(tokenizer.encode_ir(text, false), false));
  ++counts.lines;
  if (!line.contains("ids_special")) return;  // SentencePiece's own lines: nothing is added
  const std::vector<int32_t> special = read_ids(line, "ids_special");
  compare(counts, where, "ids_special", show(special), show(tokenizer.encode(text, true)));
  compare(counts, where, "decoded_skip", line.at("decoded_skip", "line").as_string("decoded_skip"),
          tokenizer.decode(special, true));
}

// CPU seconds of this thread: other work on the machine does not count.
double cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

void bench(const Tokenizer& tokenizer, const std::string& path) {
  std::string text = loongforge::read_text(path);
  // Records as a dataset would bring them, so that no text is one long call.
  std::vector<std::string_view> records;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', std::min(at + 1000, text.size()));
    end = end == std::string::npos ? text.size() : end + 1;
    records.push_back(std::string_view(text).substr(at, end - at));
    at = end;
  }
  for (int round = 0; round < 3; ++round) {
    std::vector<int32_t> ids;
    size_t tokens = 0;
    double start = cpu_seconds();
    for (std::string_view record : records) {
      ids.clear();
      tokenizer.encode_append(record, false, ids);
      tokens += ids.size();
    }
    double seconds = cpu_seconds() - start;
    std::printf("round %d: %zu bytes, %zu tokens, %.1f MB/s\n", round + 1, text.size(), tokens,
                static_cast<double>(text.size()) / seconds / 1e6);
  }
}

int check_file(const Tokenizer& tokenizer, const std::string& file) {
  std::string content = loongforge::read_text(file);
  Counts counts;
  int number = 0;
  for (size_t at = 0; at < content.size();) {
    size_t end = std::min(content.find('\n', at), content.size());
    ++number;
    std::string where = file + ":" + std::to_string(number);
    std::string_view line = std::string_view(content).substr(at, end - at);
    if (!line.empty()) check_line(counts, tokenizer, Json::parse(line, where), where);
    at = end + 1;
  }
  std::printf("%s: %d lines, %d comparisons, %d differ\n", file.c_str(), counts.lines,
              counts.checks, counts.wrong);
  if (counts.lines == 0) loongforge::throw_bad_data(file, "has no lines to check");
  return counts.wrong == 0 ? 0 : 1;
}

int run(int argc, char** argv) {
  std::string text_file, folder;
  bool good = argc >= 3 && argc % 2 == 1;
  for (int i = 3; good && i + 1 < argc; i += 2) {
    std::string_view option = argv[i];
    if (option == "--bench") text_file = argv[i + 1];
    if (option == "--export") folder = argv[i + 1];
    good = option == "--bench" || option == "--export";
  }
  if (!good) {
    std::fprintf(
        stderr,
        "usage: lf-tokenizer-check TOKENIZER_DIR_OR_GGUF_OR_MODEL FILE.jsonl [--bench TEXT_FILE] "
        "[--export FOLDER]\n");
    return 2;
  }
  Tokenizer tokenizer = Tokenizer::load(argv[1]);
  int result = check_file(tokenizer, argv[2]);
  if (!text_file.empty()) bench(tokenizer, text_file);
  if (!folder.empty()) {
    std::filesystem::create_directories(folder);
    for (const auto& file : loongforge::data::tokenizer_files(argv[1])) {
      std::filesystem::create_directories(
          (std::filesystem::path(folder) / file.name).parent_path());
      loongforge::write_text_atomic(std::filesystem::path(folder) / file.name, file.content);
    }
    std::printf("%s: what was exported:\n", folder.c_str());
    result |= check_file(Tokenizer::load(folder), argv[2]);
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "lf-tokenizer-check: %s\n", e.what());
    return 1;
  }
}
