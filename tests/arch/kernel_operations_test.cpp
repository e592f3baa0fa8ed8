// Every vector instruction in the kernels' objects is one that isa-verify knows: what the kernels
// are compiled to and what is checked on new silicon cannot drift apart.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "arch/disassembly.h"
#include "isa_verify/operation.h"
#include "support/places.h"

namespace loongforge::test {
namespace {

namespace fs = std::filesystem;

// Instructions of the kernels that no table can hold, and why.
const std::map<std::string, std::string> kExceptions = {};

bool is_vector_instruction(const std::string& mnemonic) {
#if defined(__loongarch__)
  return mnemonic[0] == 'v' || mnemonic.starts_with("xv");
#else
  return mnemonic[0] == 'v' || mnemonic[0] == 'k' || mnemonic.starts_with("prefetch");
#endif
}

// mnemonic -> one of the objects that it stands in
std::map<std::string, std::string> instructions_of(const fs::path& folder) {
  std::map<std::string, std::string> found;
  for (const auto& file : fs::directory_iterator(folder)) {
    if (file.path().extension() != ".o") continue;
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
        popen((objdump() + " -d --no-show-raw-insn '" + file.path().string() + "'").c_str(), "r"),
        pclose);
    REQUIRE(pipe != nullptr);
    char* line = nullptr;
    size_t size = 0;
    while (getline(&line, &size, pipe.get()) > 0) {
      const std::string text = line;  // "    1234:\tvaddps %ymm0,..."
      const size_t colon = text.find(":\t");
      if (colon == std::string::npos) continue;
      const size_t end = text.find_first_of(" \t\n", colon + 2);
      const std::string mnemonic = text.substr(colon + 2, end - colon - 2);
      if (!mnemonic.empty() && is_vector_instruction(mnemonic))
        found.try_emplace(mnemonic, file.path().filename().string());
    }
    std::free(line);
  }
  return found;
}

TEST_CASE("isa-verify knows every vector instruction of the kernels") {
  if (objdump().empty()) {
    MESSAGE("SKIPPED: objdump (binutils) is not installed");
    return;
  }
  std::set<std::string> known;
  for (const isa_verify::Operation& operation : isa_verify::built_in_operations())
    known.insert(operation.mnemonic);
  const fs::path objects = binary_dir() / "libcore/CMakeFiles/lf_objects.dir/kernels";
  std::set<std::string> used;
  for (const kernels::Isa isa : kernels::compiled_isas().subspan(1)) {
    const fs::path folder = objects / kernels::isa_name(isa);
    const std::map<std::string, std::string> found = instructions_of(folder);
    CHECK_MESSAGE(found.size() > 30, folder.string() << " was not read");
    for (const auto& [mnemonic, object] : found) {
      used.insert(mnemonic);
      CHECK_MESSAGE((known.contains(mnemonic) || kExceptions.contains(mnemonic)),
                    kernels::isa_name(isa) << "/" << object << " uses " << mnemonic
                                           << ", which no row of libcore/isa_verify/tables has");
    }
    MESSAGE(std::string(kernels::isa_name(isa)) << ": " << found.size() << " vector instructions");
  }
  for (const auto& [mnemonic, reason] : kExceptions)
    CHECK_MESSAGE(used.contains(mnemonic), mnemonic << " is an exception that no kernel needs");
}

}  // namespace
}  // namespace loongforge::test
