#include "isa_verify/runner.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cfenv>
#include <csetjmp>
#include <cstring>

#include "base/error.h"

namespace loongforge::isa_verify {
namespace {

thread_local sigjmp_buf back;
thread_local volatile std::sig_atomic_t running = 0;
struct sigaction* former = nullptr;  // per signal of kHandled, while a Runner lives
constexpr int kHandled[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGTRAP};

void on_fault(int signal, siginfo_t*, void*) {
  if (running != 0) siglongjmp(back, signal);
  // Not ours: as if no handler stood here; the instruction is tried again and faults again.
  for (size_t i = 0; i < std::size(kHandled); ++i)
    if (kHandled[i] == signal) sigaction(signal, &former[i], nullptr);
}

}  // namespace

Runner::Runner() {
  former = old_;
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO | SA_NODEFER;  // left by a jump, without the mask being put back
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &action, &old_[i]);
}

Runner::~Runner() {
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &old_[i], nullptr);
  former = nullptr;
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

void Runner::load(const std::vector<std::vector<uint8_t>>& functions) {
  constexpr size_t kAlignment = 64;
  starts_.clear();
  size_t needed = 0;
  for (const std::vector<uint8_t>& function : functions) {
    starts_.push_back(needed);
    needed += (function.size() + kAlignment - 1) / kAlignment * kAlignment;
  }
  if (needed > bytes_) {
    if (memory_ != nullptr) munmap(memory_, bytes_);
    memory_ = nullptr;
    bytes_ = std::max<size_t>(needed, size_t{1} << 17);
    void* got = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED) {
      bytes_ = 0;
      throw_failed("isa-verify", std::string("no memory for code: ") + std::strerror(errno));
    }
    memory_ = static_cast<uint8_t*>(got);
  } else if (mprotect(memory_, bytes_, PROT_READ | PROT_WRITE) != 0) {
    throw_failed("isa-verify", std::string("code cannot be replaced: ") + std::strerror(errno));
  }
  for (size_t i = 0; i < functions.size(); ++i)
    std::memcpy(memory_ + starts_[i], functions[i].data(), functions[i].size());
  if (mprotect(memory_, bytes_, PROT_READ | PROT_EXEC) != 0)
    throw_failed("isa-verify",
                 std::string("code that was written cannot be run: ") + std::strerror(errno),
                 "a security policy forbids it; run it where that is allowed");
  // The instruction cache: ibar on LoongArch, nothing on x86.
  char* begin = reinterpret_cast<char*>(memory_);
  __builtin___clear_cache(begin, begin + needed);
}

Ending Runner::run(size_t which, Frame* frame) {
  const auto function = reinterpret_cast<void (*)(Frame*)>(memory_ + starts_[which]);
  fenv_t environment;
  std::fegetenv(&environment);
  std::fesetenv(FE_DFL_ENV);
  const int signal = sigsetjmp(back, 0);
  if (signal == 0) {
    running = 1;
    function(frame);
  }
  running = 0;
  std::fesetenv(&environment);
  return signal == 0 ? Ending::kDone : signal == SIGILL ? Ending::kIllegal : Ending::kFault;
}

}  // namespace loongforge::isa_verify
