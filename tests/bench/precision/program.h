// A program that is started, waited for, and stopped with this one. Thread-safety: one thread, the
// process's only one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace loongforge::bench {

// Runs a program to its end, its output appended to log; returns its exit code, or 128 + signal.
// SIGINT, SIGTERM and SIGHUP (one that is ignored stays so) are passed on as SIGTERM, at which
// loongforge train saves its state and ends; when the program has ended, Error "stopped by SIGTERM"
// is thrown, its code 128 and the signal's number, as shells say. A second SIGINT ends the program
// at once. Where this process is killed, the program gets SIGTERM.
int run_program(const std::vector<std::string>& words, const std::filesystem::path& log);

}  // namespace loongforge::bench
