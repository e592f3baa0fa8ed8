#include "convert/paths.h"

#include <doctest/doctest.h>

#include "convert/export.h"
#include "support/bytes.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

using namespace loongforge;

TEST_CASE("sizes") {
  CHECK(convert::parse_byte_size("5GB", "x") == 5'000'000'000);
  CHECK(convert::parse_byte_size("500MB", "x") == 500'000'000);
  CHECK(convert::parse_byte_size("1.5gb", "x") == 1'500'000'000);
  CHECK(convert::parse_byte_size("2GiB", "x") == uint64_t{2} << 30);
  CHECK(convert::parse_byte_size("1000000", "x") == 1'000'000);
  for (const char* bad :
       {"", "GB", "5XB", "-5GB", "0", "nan", "inf", "1e400GB", "5 GB", "99999999999999TB"}) {
    CAPTURE(bad);
    LF_CHECK_ERROR(convert::parse_byte_size(bad, "--max-shard-size"), ErrorCode::kUsage,
                   "--max-shard-size");
  }
}

TEST_CASE("a model is found in the folder or in its only subfolder") {
  const test::TempDir dir;
  const auto make = [&dir](const char* name) {
    std::filesystem::create_directories(dir / name);
    test::write_file(dir / name / "f", "x");
  };
  LF_CHECK_ERROR(convert::folder_with(dir.path(), "f", "thing"), ErrorCode::kNoInput,
                 "holds no thing");
  make("a");
  CHECK(convert::folder_with(dir.path(), "f", "thing") == dir / "a");
  CHECK(convert::folder_with(dir / "a", "f", "thing") == dir / "a");
  make("b");
  LF_CHECK_ERROR(convert::folder_with(dir.path(), "f", "thing"), ErrorCode::kNoInput,
                 "more than one thing");
  // A run's folder: links to its checkpoints are no further ones, the newest is what is meant.
  std::filesystem::create_directory_symlink("b", dir / "latest");
  LF_CHECK_ERROR(convert::folder_with(dir.path(), "f", "thing"), ErrorCode::kNoInput,
                 ("name one of them, for instance " + (dir / "latest").string()).c_str());
  std::filesystem::remove_all(dir / "a");
  CHECK(convert::folder_with(dir.path(), "f", "thing") == dir / "b");
  test::write_file(dir / "b" / "adapter_config.json", "{}");
  LF_CHECK_ERROR(convert::folder_with(dir / "b", "model", "model"), ErrorCode::kNoInput,
                 "it is an adapter: name the model it belongs to as --input-path");
}

TEST_CASE("an export of something else says what to do") {
  test::TempDir dir;
  const auto hint = [&](const std::string& folder, const char* name) -> std::string {
    try {
      convert::folder_with(dir / folder, name, "thing");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kNoInput);
      return error.what();
    }
    return {};
  };
  for (const char* folder : {"run/latest", "hf", "lir", "empty"})
    std::filesystem::create_directories(dir / folder);
  std::filesystem::create_directory_symlink("latest", dir / "run" / "final");
  test::write_file(dir / "run" / "latest" / "adapter_config.json", "{}");
  test::write_file(dir / "hf" / "config.json", "{}");
  test::write_file(dir / "lir" / "loongir_model.json", "{}");
  const std::string run = (dir / "run").string();
  CHECK(hint("run", "loongir_model.json").find("--adapter " + run + "/latest --merge") !=
        std::string::npos);
  CHECK(hint("run/latest", "loongir_model.json").find("--adapter " + run + "/latest --merge") !=
        std::string::npos);
  CHECK(hint("hf", "loongir_model.json").find("leave --export out") != std::string::npos);
  CHECK(hint("lir", "adapter_config.json").find("it is a model") != std::string::npos);
  CHECK(hint("empty", "loongir_model.json").find("holds no thing") != std::string::npos);
}

TEST_CASE(
    "what stands beside the weights is counted, so that a small export asks for little room") {
  const test::TempDir dir;
  test::write_file(dir / "weights-00000.lir", std::string(1000, 'x'));
  test::write_file(dir / "tokenizer.json", std::string(300, 'x'));
  CHECK(convert::bytes_beside_weights(dir.path()) == 300);
}

TEST_CASE("outputs that would destroy an input") {
  const test::TempDir dir;
  std::filesystem::create_directories(dir / "in" / "sub");
  std::filesystem::create_symlink(dir / "in", dir / "link");
  const auto guard = [&](const std::filesystem::path& input, const std::filesystem::path& output) {
    const std::filesystem::path inputs[] = {input};
    convert::guard_output(output, inputs, true, convert::OutputKind::kLoongIr);
  };
  LF_CHECK_ERROR(guard(dir / "in", dir / "in"), ErrorCode::kUsage, "is or contains");
  LF_CHECK_ERROR(guard(dir / "in", dir / "in" / ""), ErrorCode::kUsage, "is or contains");
  LF_CHECK_ERROR(guard(dir / "in" / "sub", dir / "in"), ErrorCode::kUsage, "is or contains");
  LF_CHECK_ERROR(guard(dir / "link", dir / "in"), ErrorCode::kUsage, "is or contains");
  LF_CHECK_ERROR(guard(dir / "in", dir.path()), ErrorCode::kUsage, "is or contains");
  LF_CHECK_ERROR(guard(dir / "in", dir / "in" / "new"), ErrorCode::kUsage, "is inside the input");
  LF_CHECK_ERROR(guard(dir / "in", dir / "link" / "new"), ErrorCode::kUsage, "is inside the input");
  CHECK_NOTHROW(guard(dir / "in", dir / "inner"));  // a longer name is no subfolder
  // Within any model: a run's checkpoint, another conversion's output.
  std::filesystem::create_directories(dir / "run" / "checkpoint-1");
  CHECK_NOTHROW(guard(dir / "in", dir / "run" / "checkpoint-1" / "a" / "b"));
  for (const char* marker : {"loongir_model.json", "trainer_state.json"}) {
    test::write_file(dir / "run" / "checkpoint-1" / marker, "{}");
    LF_CHECK_ERROR(
        guard(dir / "in", dir / "run" / "checkpoint-1" / "a" / "b"), ErrorCode::kUsage,
        "is inside " + (dir / "run" / "checkpoint-1").string() + ", which holds a model");
    std::filesystem::remove(dir / "run" / "checkpoint-1" / marker);
  }
}

TEST_CASE("outputs whose name tells that they are not what is meant") {
  const test::TempDir dir;
  const auto guard = [](const std::filesystem::path& output) {
    convert::guard_output(output, {}, false, convert::OutputKind::kLoongIr);
  };
  LF_CHECK_ERROR(guard(dir / "x.gguf"), ErrorCode::kUsage, "--export gguf makes such a file");
  LF_CHECK_ERROR(guard(dir / "caf\xe9"), ErrorCode::kUsage, "caf? is not UTF-8");
  LF_CHECK_ERROR(guard(dir / std::string(300, 'n')), ErrorCode::kFailed, "File name too long");
  CHECK_NOTHROW(guard(dir / "caf\xc3\xa9"));
}

TEST_CASE("a ~ that no shell replaced is no place for an output") {
  LF_CHECK_ERROR(convert::guard_place("~/out", {}), ErrorCode::kUsage, "starts with a ~");
  test::TempDir dir;
  convert::guard_place(dir / "~" / "out", {});
}

TEST_CASE("what is replaced is an earlier output and holds nothing else") {
  using convert::OutputKind;
  struct Case {
    OutputKind kind;
    std::vector<const char*> ours;  // the first: the marker
  };
  const Case cases[] = {
      {OutputKind::kLoongIr,
       {"loongir_model.json", "weights-00001-of-00002.lir", "weights-00002-of-00002.lir"}},
      {OutputKind::kHuggingFace,
       {"config.json", "model.safetensors", "model-00001-of-00002.safetensors",
        "model.safetensors.index.json"}},
      {OutputKind::kPeft, {"adapter_config.json", "adapter_model.safetensors"}},
  };
  const char* const foreign[] = {"README.md",
                                 ".gitattributes",
                                 "notes/thesis.txt",
                                 "run_config.json",
                                 "checkpoint-5/trainer_state.json",
                                 "optimizer.safetensors",
                                 "weights-00001-of-00002.lir.bak",
                                 "weights-backup.lir",
                                 "model-2.safetensors",
                                 "additional_chat_templates/mine.txt",
                                 "additional_chat_templates/deeper/x.jinja"};
  for (const Case& c : cases) {
    CAPTURE(c.ours[0]);
    const test::TempDir dir;
    const std::filesystem::path out = dir / "out";
    const auto put = [&out](const std::filesystem::path& name) {
      std::filesystem::create_directories((out / name).parent_path());
      test::write_file(out / name, "x");
    };
    std::filesystem::create_directory(out);
    const auto guard = [&] { convert::guard_output(out, {}, true, c.kind); };
    CHECK_NOTHROW(guard());  // an empty folder
    put("tokenizer.json");
    LF_CHECK_ERROR(guard(), ErrorCode::kUsage, "is no earlier output");
    for (const char* name : c.ours) put(name);
    for (const char* name : {"tokenizer_config.json", "special_tokens_map.json", "merges.txt",
                             "generation_config.json", "additional_chat_templates/tools.jinja"})
      put(name);
    CHECK_NOTHROW(guard());
    for (const char* name : foreign) {
      put(name);
      const std::string first = *std::filesystem::path(name).begin();
      LF_CHECK_ERROR(guard(), ErrorCode::kUsage, "holds " + first);
      CHECK(std::filesystem::exists(out / name));
      std::filesystem::remove_all(out / name);
      if (first != name && !first.starts_with("additional")) std::filesystem::remove(out / first);
      std::filesystem::remove(out / "additional_chat_templates" / "deeper");
    }
    CHECK_NOTHROW(guard());
  }
}
