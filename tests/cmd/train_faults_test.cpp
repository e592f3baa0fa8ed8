// Training on disks that fail and under kill -9: what was saved stays, and the continued run ends
// as an undisturbed one.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <random>
#include <thread>

#include "cmd/train_runs.h"
#include "support/mounts.h"

namespace loongforge::test {
namespace {

using std::chrono::milliseconds;

// A run in the background, its standard error in a file.
class Running {
 public:
  Running(std::vector<std::string> words, const fs::path& log) {
    child_ = ::fork();
    if (child_ != 0) return;
    const int fd = ::open(log.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
    ::dup2(fd, STDERR_FILENO);
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  // False: it ended before that came true.
  bool wait_until(const std::function<bool()>& done) {
    for (int i = 0; i < 6000 && !ended(); ++i) {
      if (done()) return true;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return false;
  }
  void kill() {
    if (!ended()) ::kill(child_, SIGKILL);
    code();
  }
  // Waits for the end: the exit code, 128 + signal.
  int code() {
    if (!ended_) {
      ::waitpid(child_, &status_, 0);
      ended_ = true;
    }
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  }

 private:
  bool ended() {
    if (!ended_ && ::waitpid(child_, &status_, WNOHANG) == child_) ended_ = true;
    return ended_;
  }
  pid_t child_ = -1;
  int status_ = 0;
  bool ended_ = false;
};

std::vector<std::string> with(std::vector<std::string> words, const std::string& more) {
  words.push_back(more);
  return words;
}

void check_no_rest(const fs::path& out) {
  for (const auto& entry : fs::directory_iterator(out)) {
    const std::string name = entry.path().filename().string();
    CAPTURE(name);
    CHECK((name == ".lock" || !name.starts_with(".")));
  }
}

TEST_CASE("killed again and again, a run ends with the bytes of an undisturbed one") {
  const TempDir dir;
  const std::vector<std::string> more = {"--max_steps",        "24", "--save_steps", "1",
                                         "--save_total_limit", "3"};
  const Outcome whole = run({train_words(dir / "whole", more)});
  REQUIRE_MESSAGE(whole.code == 0, whole.err);
  const std::vector<std::string> resume = with(more, "--resume_from_checkpoint");
  std::minstd_rand random(20261129);
  int kills = 0;
  bool done = false;
  for (int round = 0; round < 12 && !done; ++round) {
    Running one(train_words(dir / "out", resume), dir / "log");
    // At least one checkpoint more, then any moment of the next steps and saves.
    const auto newest = [&] {
      return fs::exists(dir / "out" / "latest") ? fs::read_symlink(dir / "out" / "latest")
                                                : fs::path();
    };
    const fs::path before = newest();
    if (!one.wait_until([&] { return newest() != before; })) {
      done = true;
      CHECK(one.code() == 0);
      break;
    }
    std::this_thread::sleep_for(milliseconds(random() % 60));
    one.kill();
    done = one.code() == 0;
    kills += one.code() == 137 ? 1 : 0;
  }
  CHECK(kills > 2);
  const Outcome rest = run({train_words(dir / "out", resume)});
  REQUIRE_MESSAGE(rest.code == 0, rest.err);
  check_same_folder(dir / "whole" / "checkpoint-24", dir / "out" / "checkpoint-24");
  CHECK(fs::read_symlink(dir / "out" / "final") == "checkpoint-24");
  check_no_rest(dir / "out");
}

TEST_CASE("a disk that fills up ends the run, and freed the run goes on") {
  if (!private_mounts()) return;
  const TempDir dir;
  const std::vector<std::string> more = {"--max_steps", "200", "--save_steps", "4"};
  const Mounted disk = Mounted::small_disk(dir / "disk", "size=140m");
  const fs::path out = dir / "disk" / "out";
  Running one(train_words(out, more), dir / "log");
  REQUIRE(one.wait_until([&] { return fs::exists(out / "latest"); }));
  {
    const int fd = ::open((dir / "disk" / "ballast").c_str(), O_CREAT | O_WRONLY, 0644);
    const std::vector<char> block(1 << 16, 'x');
    while (::write(fd, block.data(), block.size()) > 0) {
    }
    while (::write(fd, block.data(), 1) > 0) {
    }
    ::close(fd);
  }
  CHECK(one.code() == 1);
  const std::string log = read_text(dir / "log");
  CAPTURE(log);
  CHECK(log.find("No space left on device; free space or choose another place") !=
        std::string::npos);
  const fs::path kept = out / fs::read_symlink(out / "latest");
  CHECK(fs::exists(kept / "manifest.json"));
  fs::remove(dir / "disk" / "ballast");
  const std::vector<std::string> resume = with(more, "--resume_from_checkpoint");
  const Outcome rest = run({train_words(out, resume)});
  REQUIRE_MESSAGE(rest.code == 0, rest.err);
  CHECK(rest.err.find("continued from " + kept.string()) != std::string::npos);
  const Outcome whole = run({train_words(dir / "whole", more)});
  REQUIRE(whole.code == 0);
  check_same_folder(dir / "whole" / "checkpoint-200", out / "checkpoint-200");
  check_no_rest(out);
}

TEST_CASE("a read-only place is named before anything is trained, convert's too") {
  if (!private_mounts()) return;
  const TempDir dir;
  fs::create_directory(dir / "place");
  REQUIRE(run({train_words(dir / "place" / "old", {"--max_steps", "2"})}).code == 0);
  const Mounted mounted = Mounted::read_only(dir / "place");
  for (const auto& [folder, more] : {std::pair<const char*, const char*>{"new", "--packing"},
                                     {"old", "--resume_from_checkpoint"}}) {
    const Outcome o = run({train_words(dir / "place" / folder, {"--max_steps", "2", more})});
    CAPTURE(o.err);
    CHECK(o.code == 1);
    CHECK(o.err.find("Read-only file system") != std::string::npos);
    CHECK(o.err.find((dir / "place" / folder).string()) != std::string::npos);
    CHECK(events(o.err, "step").empty());
  }
  const Outcome o = run({{program("loongforge-convert"), "--model-name", "tiny", "--input-path",
                          kQuickstart / "tiny_model", "--output-path", dir / "place" / "model"}});
  CHECK(o.code == 1);
  CHECK(o.err.find("Read-only file system") != std::string::npos);
  CHECK(std::count(o.err.begin(), o.err.end(), '\n') == 1);
}

TEST_CASE(
    "checkpoints that lie are skipped with their reason, and the run goes on from the newest whole "
    "one") {
  const TempDir dir;
  const std::vector<std::string> more = {"--max_steps",        "8", "--save_steps", "2",
                                         "--save_total_limit", "0"};
  REQUIRE(run({train_words(dir / "out", more)}).code == 0);
  fs::copy(dir / "out" / "checkpoint-8", dir / "kept", fs::copy_options::recursive);
  fs::resize_file(dir / "out" / "checkpoint-8" / "optimizer.safetensors", 99);
  std::ofstream(dir / "out" / "checkpoint-6" / "manifest.json") << "{\"format\": 9, \"files\": []}";
  fs::create_directory(dir / "out" / "checkpoint-100");
  const Outcome o = run({train_words(dir / "out", with(more, "--resume_from_checkpoint"))});
  REQUIRE_MESSAGE(o.code == 0, o.err);
  for (const char* says :
       {"checkpoint-100/manifest.json", "checkpoint-8/optimizer.safetensors: has 99 bytes",
        "checkpoint-6/manifest.json: is of format 9", "checkpoint-4 at step 4"})
    CHECK_MESSAGE(o.err.find(says) != std::string::npos, says << " in " << o.err);
  check_same_folder(dir / "kept", dir / "out" / "checkpoint-8");
}

}  // namespace
}  // namespace loongforge::test
