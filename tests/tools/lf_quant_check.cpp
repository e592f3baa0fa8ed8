// lf-quant-check DIR: the quantised formats that are read, against what their reference programs
// made of them. DIR is laid out like golden/quant: gguf/, fp8_codec.safetensors, ... (one section
// of quant_check/ for each); a section whose files are absent says so.
//
// Exit code: 0 when every case of the sections present is right, 1 on any difference, 65 when a
// file is broken or DIR holds none of the sections, 66 when DIR is absent.
#include <cstdio>

#include "base/error.h"
#include "tools/quant_check/report.h"

int main(int argc, char** argv) {
  using namespace loongforge;
  if (argc != 2 || argv[1][0] == '-') {
    std::fprintf(stderr, "usage: lf-quant-check DIR\n");
    return 2;
  }
  try {
    const std::filesystem::path dir = argv[1];
    if (!std::filesystem::is_directory(dir)) throw_no_input(dir.string(), "is no folder");
    quant_check::Report report;
    for (const auto section : {quant_check::check_gguf, quant_check::check_fp8_codec,
                               quant_check::check_fp8_checkpoints, quant_check::check_nf4})
      section(dir, &report);
    if (report.cases() == 0) throw_bad_data(dir.string(), "holds none of the sections' files");
    std::printf("%s: %d cases\n", report.ok() ? "PASSED" : "FAILED", report.cases());
    return report.ok() ? 0 : 1;
  } catch (const Error& e) {
    std::fprintf(stderr, "lf-quant-check: %s\n", e.what());
    return static_cast<int>(e.code());
  }
}
