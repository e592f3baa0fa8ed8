#include "train/signals.h"

#include <unistd.h>

namespace loongforge::train {
namespace {

volatile std::sig_atomic_t g_requeue = 0;
volatile std::sig_atomic_t g_interrupts = 0;

extern "C" void on_requeue(int) { g_requeue = 1; }
extern "C" void on_interrupt(int) {
  g_interrupts = g_interrupts + 1;
  if (g_interrupts > 1) _exit(130);
}

void install(int signal, void (*handler)(int), struct sigaction* old) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, old);
}

}  // namespace

SignalGuard::SignalGuard() {
  g_requeue = 0;
  g_interrupts = 0;
  install(SIGTERM, on_requeue, &term_);
  install(SIGUSR1, on_requeue, &usr1_);
  install(SIGINT, on_interrupt, &int_);
  // A terminal that is gone asks for the same as SIGTERM; nohup asked for it to be ignored.
  sigaction(SIGHUP, nullptr, &hup_);
  if (hup_.sa_handler != SIG_IGN) install(SIGHUP, on_requeue, &hup_);
}

SignalGuard::~SignalGuard() {
  sigaction(SIGTERM, &term_, nullptr);
  sigaction(SIGUSR1, &usr1_, nullptr);
  sigaction(SIGINT, &int_, nullptr);
  sigaction(SIGHUP, &hup_, nullptr);
}

StopRequest SignalGuard::requested() noexcept {
  if (g_interrupts > 0) return StopRequest::kSaveAndStop;
  return g_requeue != 0 ? StopRequest::kSaveAndRequeue : StopRequest::kNone;
}

}  // namespace loongforge::train
