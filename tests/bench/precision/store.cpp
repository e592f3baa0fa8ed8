#include "bench/precision/store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/checksum.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_ops.h"
#include "bench/precision/program.h"

namespace loongforge::bench {
namespace {

using support::Json;
namespace fs = std::filesystem;

constexpr int kSavedOnTerm = 75, kSavedOnInterrupt = 130;  // loongforge train's exit codes

// The lock of a run's folder, held while this lives; it goes with the process that held it.
class Claim {
 public:
  explicit Claim(const fs::path& folder) {
    fd_ = open((folder / ".claim").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd_ < 0) throw_file_error(folder / ".claim", "be made", errno);
    held_ = flock(fd_, LOCK_EX | LOCK_NB) == 0;
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  ~Claim() { close(fd_); }
  bool held() const noexcept { return held_; }

 private:
  int fd_ = -1;
  bool held_ = false;
};

// Whether training has the folder: loongforge train locks that file as long as it runs.
bool is_trained_in(const fs::path& out) {
  const int fd = open((out / ".lock").c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  const bool locked = flock(fd, LOCK_EX | LOCK_NB) != 0;
  close(fd);
  return locked;
}

std::string last_line(const fs::path& file) {
  if (!fs::exists(file)) return {};
  std::string text = read_text(file);
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

int64_t Store::checksum(const fs::path& file) {
  const auto [at, fresh] = checksums_.try_emplace(file.string(), 0);
  if (fresh) at->second = crc32c(MappedFile(file).bytes());
  return at->second;
}

// A LoongIR model's description holds the checksum of every tensor.
std::string Store::key(const Run& run) {
  Json json = Json::object();
  json.set("part", run.part->name);
  json.set("recipe", run.recipe->name);
  json.set("seed", run.seed);
  Json arguments = Json::array();
  for (const std::string& word : run.arguments()) arguments.push_back(word);
  json.set("arguments", std::move(arguments));
  json.set("model_crc32c", checksum(run.part->model / "loongir_model.json"));
  json.set("dataset_crc32c", checksum(run.part->dataset));
  return json.dump();
}

fs::path Store::folder(const Run& run) {
  const std::string text = key(run);
  char crc[16];
  std::snprintf(crc, sizeof crc, "%08x",
                crc32c({reinterpret_cast<const uint8_t*>(text.data()), text.size()}));
  return work_ / "runs" /
         (run.part->name + "-" + run.recipe->name + "-s" + std::to_string(run.seed) + "-" + crc);
}

std::optional<RunRecord> Store::find(const Run& run) {
  const fs::path file = folder(run) / "result.json";
  if (!fs::exists(file)) return std::nullopt;
  const Json json = Json::parse(read_text(file), file.string());
  if (json.at("run", file.string()).dump() != key(run))
    throw_bad_data(file, "is the result of another run", "remove its folder");
  RunRecord record = record_of(json.at("record", file.string()), file.string());
  if (static_cast<int64_t>(record.loss.size()) != run.part->steps)
    throw_bad_data(file, "holds another number of steps");
  return record;
}

Ended Store::take(const Run& run, const Program& program, std::string* message) {
  const fs::path to = folder(run), out = to / "out", log = to / "train.log";
  make_folders(to);
  const Claim claim(to);
  if (!claim.held() || is_trained_in(out)) return Ended::kBusy;
  if (find(run)) return Ended::kDone;
  std::optional<RunRecord> record;
  if (fs::exists(out / "final")) record = read_metrics(out / "metrics.jsonl", run.part->steps);
  if (!record) {
    std::vector<std::string> words = {program.path, "--model_path",    run.part->model,
                                      "--dataset",  run.part->dataset, "--output_dir",
                                      out};
    for (const std::string& word : run.arguments()) words.push_back(word);
    for (const std::string& word : program.words) words.push_back(word);
    words.push_back(fs::exists(out / "latest") ? "--resume_from_checkpoint"
                                               : "--overwrite_output_dir");
    const int code = run_program(words, log);
    if (code == kSavedOnTerm || code == kSavedOnInterrupt) return Ended::kStopped;
    if (code == 0) record = read_metrics(out / "metrics.jsonl", run.part->steps);
    if (!record) {
      *message = "exit code " + std::to_string(code) + ": " + last_line(log);
      return Ended::kFailed;
    }
  }
  const Json info = Json::parse(read_text(out / "run_info.json"), (out / "run_info.json").string());
  Json result = Json::object();
  result.set("run", Json::parse(key(run), "run"));
  result.set("version", info.get_string("version", ""));
  result.set("record", record_json(*record));
  write_text_atomic(to / "result.json", result.dump(1) + "\n");
  remove_tree(out);  // checkpoints are many times what is kept
  return Ended::kDone;
}

}  // namespace loongforge::bench
