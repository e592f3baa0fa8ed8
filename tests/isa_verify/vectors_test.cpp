// Vectors on file: written, read back, replayed, compared between chips.
#include "isa_verify/vectors.h"

#include <doctest/doctest.h>

#include <fstream>

#include "base/file.h"
#include "isa_verify/inputs.h"
#include "isa_verify/samples.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

namespace loongforge::isa_verify {
namespace {

std::vector<SavedVector> recorded(const std::string& rows, const std::filesystem::path& path,
                                  const char* chip) {
  const std::vector<Operation> operations = parse_operations(rows, "t");
  VectorFile file(path);
  Runner runner;
  VerifyOptions options;
  options.vectors = 20;
  verify_operation(operations[0], options, &runner, [&](const TriedVector& v) {
    file.add(vector_json(v.operation, v.operands, v.expected, v.got, chip));
  });
  file.commit();
  return read_vectors(path);
}

TEST_CASE("a vector reads back as it was written") {
  const Operation store = parse_operations(
      "isa lsx\nvstelm.h ; 31400000 ; vd,pj,si8*2,ui3@18 ; mem.u16 = n == i / 2 ? d[i2] : mem\n",
      "t")[0];
  Inputs inputs(store, 1);
  const Operands operands = inputs.next(-6, 5);
  const Execution got{Ending::kDone, Result(kMemoryBytes, 3)};
  const SavedVector back = parse_vector(
      vector_json(store, operands, reference_result(store, operands), got, "chip X").dump(), "f:1");
  CHECK(back.isa == kernels::Isa::kLsx);
  CHECK(back.form == store.form());
  CHECK(back.operands.vectors == operands.vectors);
  CHECK(back.operands.memory == operands.memory);
  CHECK(back.operands.general == operands.general);
  CHECK(back.operands.masks == operands.masks);
  CHECK(back.operands.immediate == -6);
  CHECK(back.operands.immediate2 == 5);
  CHECK(back.expected == reference_result(store, operands));
  CHECK(back.got == got.result);
  CHECK(back.chip == "chip X");
  const SavedVector illegal =
      parse_vector(vector_json(store, operands, {}, {Ending::kIllegal, {}}, "c").dump(), "f:1");
  CHECK(illegal.ending == Ending::kIllegal);
  CHECK(illegal.got.empty());
}

TEST_CASE("a file that is wrong is refused with its line") {
  const test::TempDir dir;
  const std::filesystem::path path = dir / "v.jsonl";
  const auto refuse = [&](const std::string& text, const char* says) {
    std::ofstream(path) << text;
    LF_CHECK_ERROR(read_vectors(path), ErrorCode::kBadData, says);
  };
  refuse("{}\n", ":1: vector lacks key \"isa\"");
  refuse("nonsense\n", ":1");
  refuse(R"({"isa":"mmx"})", "'mmx' is no vector instruction set");
  const std::string start = R"({"isa":"lsx","op":"v","chip":"c","operands":)";
  refuse(start + R"({"j":"00"},"expected":"","got":""})", "j has another length than 64");
  refuse(start + R"([],"expected":"","got":""})", "operands is no object");
  refuse(start + R"({},"expected":"0g","got":""})", "expected is no string of bytes in hex");
  refuse(start + R"({},"expected":""})", "lacks key \"ending\"");
  refuse(start + R"({},"expected":"","ending":"well"})", "neither illegal nor fault");
  std::ofstream(path) << start + R"({},"expected":"","got":""})" + "\n\n";
  CHECK(read_vectors(path).size() == 1);
  LF_CHECK_ERROR(read_vectors(dir / "none"), ErrorCode::kNoInput, "none");
}

TEST_CASE("replay runs the same vectors, says what does not apply") {
  if (!can_run(kHere)) {
    MESSAGE("SKIPPED: this CPU has no vector instructions");
    return;
  }
  const test::TempDir dir;
  std::vector<SavedVector> vectors = recorded(kWrongCode, dir / "v", "this");
  REQUIRE(vectors.size() == 20);
  ReplayReport report = replay_vectors(vectors, parse_operations(kWrongCode, "t"))[0];
  CHECK(report.vectors == 20);
  CHECK(report.failing_vectors == 20);
  CHECK(report.as_recorded == 20);
  CHECK(report.other_reference == 0);
  CHECK(report.status == Status::kMismatch);
  report = replay_vectors(vectors, parse_operations(kRight, "t"))[0];  // the chip was mended
  CHECK(report.failing_vectors == 0);
  CHECK(report.as_recorded == 0);
  CHECK(report.status == Status::kPassed);
  report = replay_vectors(vectors, {})[0];
  CHECK(report.not_run == "no table has it; name its file by --ops");
  for (SavedVector& vector : vectors) vector.isa = kElsewhere;
  std::vector<Operation> foreign = parse_operations(kWrongCode, "t");
  foreign[0].isa = kElsewhere;
  report = replay_vectors(vectors, foreign)[0];
  CHECK(report.vectors == 20);
  CHECK(report.not_run.find("another machine") != std::string::npos);
  vectors[0].isa = kHere;
  vectors[0].expected.pop_back();
  LF_CHECK_ERROR(replay_vectors(vectors, parse_operations(kWrongCode, "t")), ErrorCode::kBadData,
                 ":1: expected has another length");
  vectors[0].operands.immediate = 5;
  LF_CHECK_ERROR(replay_vectors(vectors, parse_operations(kWrongCode, "t")), ErrorCode::kBadData,
                 "has its immediates");
}

TEST_CASE("replay wants what the operation reads, and nothing more") {
  if (!can_run(kHere)) {
    MESSAGE("SKIPPED: this CPU has no vector instructions");
    return;
  }
  const test::TempDir dir;
  const std::vector<Operation> operations = parse_operations(kRight, "t");
  const std::vector<SavedVector> whole = recorded(kRight, dir / "v", "this");
  const auto without = [&](const std::string& key) {
    std::ifstream in(dir / "v");
    std::string line;
    std::getline(in, line);
    support::Json json = support::Json::parse(line, "v"), kept = support::Json::object();
    for (const auto& [name, value] : json.at("operands").as_object())
      if (name != key) kept.set(name, value);
    json.set("operands", std::move(kept));
    return parse_vector(json.dump(), "v:1");
  };
  for (const char* key : {"a", "general", "mask", "mask2"}) {
    const ReplayReport report = replay_vectors({without(key)}, operations)[0];
    CHECK(report.status == Status::kPassed);
    CHECK(report.as_recorded == 1);
  }
  for (const char* key : {"j", "k"})
    LF_CHECK_ERROR(replay_vectors({without(key)}, operations), ErrorCode::kBadData,
                   std::string("reads ") + key + ", which the vector lacks");
  // Memory, a mask, the general register and immediates likewise.
  const std::string isa = kernels::isa_name(kHere);
  const auto refuse = [&](const std::string& row, const char* name) {
    SavedVector vector = whole[0];
    const std::vector<Operation> other = parse_operations("isa " + isa + "\n" + row + "\n", "t");
    vector.form = other[0].form();
    vector.absent = {name};
    LF_CHECK_ERROR(replay_vectors({vector}, other), ErrorCode::kBadData,
                   std::string("reads ") + name);
  };
#if defined(__x86_64__)
  refuse("v ; c5fc1006 ; ymm1,[rsi] ; f32 = mem", "memory");
  refuse("v ; c5fc1106 ; [rsi],ymm1 ; mem.f32 = d", "memory");
  refuse("v ; c5fc10ca ; ymm1,ymm2 ; f32 = m & 1 ? j : k", "mask");
  refuse("v ; c5fc10ca ; ymm1,ymm2 ; u32 = j + r", "general");
  refuse("v ; c5fd70caib ; ymm1,ymm2,i8 ; u32 = j", "immediate");
#else
  refuse("v ; 2c000000 ; vd,pj ; f32 = mem", "memory");
  refuse("v ; 732c2000 ; vd,vj,ui3 ; u8 = j", "immediate");
#endif
}

TEST_CASE("the size of a file is known before it is written") {
  const std::vector<Operation> operations = parse_operations(kRight, "t");
  VerifyOptions options;
  options.vectors = 20;
  const uint64_t bytes = vector_bytes({&operations[0]}, options, "this");
  CHECK(bytes > 20 * 2 * 4 * 64);  // the registers in hex, at the least
  if (!can_run(kHere)) return;
  const test::TempDir dir;
  recorded(kRight, dir / "v", "this");
  const uint64_t written = std::filesystem::file_size(dir / "v");
  CHECK(bytes >= written);
  CHECK(bytes < written + 20 * 32);
}

TEST_CASE("diff pairs vectors by operation and operands") {
  if (!can_run(kHere)) return;
  const test::TempDir dir;
  const std::vector<SavedVector> good = recorded(kRight, dir / "a", "A");
  std::vector<SavedVector> bad = recorded(kWrongCode, dir / "b", "B");
  CHECK(diff_vectors(good, good)[0].same == 20);
  CHECK(diff_vectors(good, good)[0].different == 0);
  CHECK(diff_vectors(good, bad)[0].different >= 19);  // x + 0 is x - 0
  bad.resize(15);
  const DiffReport report = diff_vectors(good, bad)[0];
  CHECK(report.only_first == 5);
  CHECK(report.only_second == 0);
  CHECK(diff_vectors(bad, good)[0].only_second == 5);
  CHECK(diff_vectors({}, {}).empty());
}

}  // namespace
}  // namespace loongforge::isa_verify
