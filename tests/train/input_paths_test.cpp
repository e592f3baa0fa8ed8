#include "train/input_paths.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "support/bytes.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

using namespace loongforge;
using namespace loongforge::test;
namespace fs = std::filesystem;

namespace {

// A model, an adapter of it and a run's folder, as far as paths go.
struct Place {
  TempDir dir;
  train::TrainOptions o;
  Place() {
    make("m.lir/loongir_model.json");
    make("a/adapter_config.json");
    make("run/checkpoint-3/loongforge_state.json");
    make("run/checkpoint-3/adapter_config.json");
    fs::create_directory_symlink("checkpoint-3", dir / "run" / "latest");
    make("full/checkpoint-2/loongir_model.json");
    fs::create_directory_symlink("checkpoint-2", dir / "full" / "latest");
    make("hf/config.json");
    o.model_path = dir / "m.lir";
    o.dataset = "d";
  }
  void make(const std::string& file) {
    fs::create_directories((dir / file).parent_path());
    write_file(dir / file, "{}");
  }
};

}  // namespace

TEST_CASE("a run does not write into what it reads, nor into a model, a checkpoint or an adapter") {
  Place place;
  fs::create_directory_symlink("m.lir", place.dir / "link");
  const auto refused = [&](const fs::path& output, const char* says) {
    CAPTURE(output.string());
    place.o.output_dir = output;
    LF_CHECK_ERROR(train::check_paths(place.o), ErrorCode::kUsage, says);
  };
  refused(place.dir / "m.lir", "is the folder of --model_path");
  refused(place.dir / "m.lir" / "", "is the folder of --model_path");
  refused(place.dir / "m.lir" / "." / "sub" / "..", "is the folder of --model_path");
  refused(place.dir / "link", "is the folder of --model_path");
  refused(place.dir / "link" / "out" / "deep", "lies in the folder of --model_path");
  refused(place.dir.path(), "contains the folder of --model_path");
  refused(place.dir / "run" / "checkpoint-3", "is a checkpoint");
  refused(place.dir / "run" / "latest" / "x", "lies in ");
  refused(place.dir / "full" / "checkpoint-2" / "x", "a LoongIR model");
  refused(place.dir / "a" / "x", "a PEFT adapter");
  fs::create_directories(place.dir / "begun");
  test::write_file(place.dir / "begun" / "run_config.json", "{}");
  refused(place.dir / "begun" / "checkpoint-9", "is a checkpoint's place in a run");
  refused(place.dir / "begun" / "checkpoint-9" / "x", "a checkpoint's place in a run");
  fs::create_directories(place.dir / "hf");
  test::write_file(place.dir / "hf" / "config.json", "{}");
  test::write_file(place.dir / "hf" / "model.safetensors", "");
  refused(place.dir / "hf", "is a Hugging Face model");
  refused(place.dir / "x\xff", "is not UTF-8");
  refused("~/out", "starts with a ~");
  for (const char* good :
       {"out", "hf/out", "m.lir2", "run", "run/next", "full", "new/deep/out", "m.lir/../out"}) {
    CAPTURE(good);
    place.o.output_dir = place.dir / good;
    train::check_paths(place.o);
  }
}

TEST_CASE("what stands in the model's place is named with what to do") {
  Place place;
  place.o.output_dir = place.dir / "out";
  const auto refused = [&](const fs::path& model, const std::string& says) {
    place.o.model_path = model;
    LF_CHECK_ERROR(train::check_paths(place.o), ErrorCode::kNoInput, says.c_str());
  };
  const std::string at = place.dir.path().string() + "/";
  refused(place.dir / "full", "did you mean --model_path " + at + "full/latest?");
  refused(place.dir / "run", "--adapter " + at + "run/latest");
  refused(place.dir / "run" / "latest", "is an adapter, not a model");
  refused(place.dir / "hf", "loongforge convert --input-path " + at + "hf");
  refused(place.dir / "absent", "does not exist");
  refused("~/m.lir", "does not exist");
}
