// How `loongforge convert` and its likes end before they are done, as a black box: a signal, a
// limit on file sizes, a reader that goes away. Nothing half written stays.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>

#include "support/checkpoint_files.h"
#include "support/program.h"
#include "support/temp_dir.h"

namespace loongforge::test {
namespace {

namespace fs = std::filesystem;

// A checkpoint whose embedding takes a while to convert: a file with a hole.
void write_large_checkpoint(const fs::path& folder, int64_t rows) {
  const fs::path small = model_dir("llama2") / "checkpoint";
  support::Json config = load_config(small);
  const int64_t hidden = config.at("hidden_size").as_int();
  config.set("vocab_size", rows);
  config.set("tie_word_embeddings", true);
  fs::create_directories(folder);
  write_file(folder / "config.json", config.dump(2));
  std::string header = "{";
  std::string data;
  for (const MadeTensor& tensor : load_tensors(small)) {
    if (tensor.name == "lm_head.weight" || tensor.name == "model.embed_tokens.weight") continue;
    std::string shape;
    for (const int64_t n : tensor.shape) shape += (shape.empty() ? "" : ",") + std::to_string(n);
    const size_t begin = data.size();
    data.append(tensor.bytes.begin(), tensor.bytes.end());
    header += "\"" + tensor.name + "\":{\"dtype\":\"" +
              (tensor.dtype == tensor::DType::kF32 ? "F32" : "BF16") + "\",\"shape\":[" + shape +
              "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(data.size()) +
              "]},";
  }
  const int64_t bytes = rows * hidden * 4;
  header += "\"model.embed_tokens.weight\":{\"dtype\":\"F32\",\"shape\":[" + std::to_string(rows) +
            "," + std::to_string(hidden) + "],\"data_offsets\":[" + std::to_string(data.size()) +
            "," + std::to_string(data.size() + static_cast<size_t>(bytes)) + "]}}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string length(8, '\0');
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i));
  const fs::path path = folder / "model.safetensors";
  write_file(path, length + header + data);
  fs::resize_file(path, fs::file_size(path) + static_cast<uint64_t>(bytes));
}

size_t entries(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
}

struct Ended {
  int code;
  std::string err;
};

// What the program said until it closed standard error, and how it ended.
Ended wait_for(pid_t child, int err) {
  Ended ended;
  std::array<char, 4096> buffer;
  for (ssize_t n; (n = read(err, buffer.data(), buffer.size())) > 0;)
    ended.err.append(buffer.data(), static_cast<size_t>(n));
  close(err);
  int status = 0;
  waitpid(child, &status, 0);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  return ended;
}

// With a standard output that nobody reads.
Ended unread(const std::vector<std::string>& words) {
  std::array<int, 2> out{}, err{};
  REQUIRE(pipe2(out.data(), O_CLOEXEC) == 0);
  REQUIRE(pipe2(err.data(), O_CLOEXEC) == 0);
  close(out[0]);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::signal(SIGPIPE, SIG_DFL);
    detail::become({words}, out[1], err[1]);
  }
  close(out[1]);
  close(err[1]);
  return wait_for(child, err[0]);
}

// Starts the words, sends the signal once something stands in `where`, and waits.
Ended interrupted(const std::vector<std::string>& words, int signal, const fs::path& where) {
  std::array<int, 2> err{};
  REQUIRE(pipe2(err.data(), O_CLOEXEC) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    for (const int each : {SIGINT, SIGTERM, SIGHUP}) ::signal(each, SIG_DFL);
    detail::become({words}, open("/dev/null", O_WRONLY), err[1]);
  }
  close(err[1]);
  pollfd closed{err[0], POLLIN, 0};  // it may end, or say something, too early: then it is told
  while (entries(where) == 0 && poll(&closed, 1, 1) == 0) {
  }
  ::kill(child, signal);
  return wait_for(child, err[0]);
}

// With files of at most `bytes`, as `ulimit -f` sets it.
Outcome limited(std::vector<std::string> words, uint64_t kilobytes) {
  std::string line = "ulimit -f " + std::to_string(kilobytes * 2) + "; exec \"$@\"";  // 512 bytes
  words.insert(words.begin(), {"/bin/sh", "-c", line, "sh"});
  return run({words});
}

}  // namespace

TEST_CASE("a signal ends convert with the shell's code, and nothing half written stays") {
  const TempDir dir;
  write_large_checkpoint(dir / "model", 400000);
  fs::create_directory(dir / "to");
  const auto import = [&](const std::string& to) {
    return std::vector<std::string>{program("loongforge-convert"),
                                    "--input-path",
                                    dir / "model",
                                    "--output-path",
                                    dir / "to" / to,
                                    "--quantize",
                                    "bf16"};
  };
  struct Case {
    int signal;
    const char* name;
  };
  for (const auto& [signal, name] :
       {Case{SIGINT, "SIGINT"}, Case{SIGTERM, "SIGTERM"}, Case{SIGHUP, "SIGHUP"}}) {
    CAPTURE(name);
    const Ended ended = interrupted(import("m.lir"), signal, dir / "to");
    CAPTURE(ended.err);
    CHECK(ended.code == 128 + signal);
    CHECK(ended.err.ends_with("loongforge convert: stopped by " + std::string(name) +
                              "; nothing was written\n"));
    CHECK(entries(dir / "to") == 0);
  }
  REQUIRE(run({import("../m.lir")}).code == 0);
  for (const char* format : {"hf", "gguf"}) {
    CAPTURE(format);
    const Ended ended = interrupted(
        {program("loongforge-convert"), "--export", format, "--input-path", dir / "m.lir",
         "--output-path", dir / "to" / (std::string(format) == "hf" ? "x" : "x.gguf")},
        SIGTERM, dir / "to");
    CAPTURE(ended.err);
    CHECK(ended.code == 143);
    CHECK(entries(dir / "to") == 0);
  }
}

TEST_CASE("a limit on file sizes is a failed write, as a full disk") {
  const TempDir dir;
  const fs::path model = model_dir("llama2") / "checkpoint";
  const Outcome convert = limited(
      {program("loongforge-convert"), "--input-path", model, "--output-path", dir / "m.lir"}, 16);
  CAPTURE(convert.err);
  CHECK(convert.code == 1);
  CHECK(convert.err.find("File too large; raise the limit on file sizes") != std::string::npos);
  CHECK(dir.entries() == 0);
  // The dispatcher hands it on.
  const Outcome dispatched = limited(
      {program("loongforge"), "convert", "--input-path", model, "--output-path", dir / "m.lir"},
      16);
  CHECK(dispatched.code == 1);
  CHECK(dir.entries() == 0);
}

TEST_CASE("a reader that goes away ends a command without a word") {
  const std::vector<std::vector<std::string>> commands = {
      {"loongforge-train", "-h"},
      {"loongforge-model-inspect", "--ops"},
      {"loongforge", "help", "train"},
      {"loongforge", "help"},
      {"loongforge", "version", "--json"},
      {"loongforge", "completion", "bash"},
      {"loongforge-debug", "--isa-verify", "--list"},
  };
  for (std::vector<std::string> words : commands) {
    CAPTURE(words[0]);
    CAPTURE(words[1]);
    words[0] = program(words[0]);
    const Ended ended = unread(words);
    CHECK(ended.code == 141);
    CHECK(ended.err.empty());
  }
}

}  // namespace loongforge::test
