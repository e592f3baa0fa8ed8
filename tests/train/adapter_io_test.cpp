#include "train/adapter_io.h"

#include <doctest/doctest.h>

#include "base/file.h"
#include "graph/tiny_models.h"
#include "support/expect_error.h"

using namespace loongforge;
using namespace loongforge::test;

TEST_CASE("an adapter that was read is written back with the same tensors") {
  const TinyModel model("llama3", "bf16");
  ThreadPool pool(1);
  const auto from = data_dir() / "models" / "llama3" / "adapter";
  graph::ParameterOptions o;
  o.lora = true;
  o.lora_options = train::adapter_options(from);
  CHECK(o.lora_options.rank == 4);
  auto params = graph::Parameters::load(model.reader(), o, pool);
  train::load_adapter(from, *params, pool);
  TempDir dir;
  train::save_adapter(dir.path(), "", *params);
  CHECK(read_text(dir / "adapter_model.safetensors") == read_text(from / "adapter_model.safetensors"));
}

TEST_CASE("another model's adapter is refused by the module's name") {
  const TinyModel model("smollm2", "bf16");
  ThreadPool pool(1);
  const auto from = data_dir() / "models" / "llama3" / "adapter";
  graph::ParameterOptions o;
  o.lora = true;
  o.lora_options = train::adapter_options(from);
  auto params = graph::Parameters::load(model.reader(), o, pool);
  LF_CHECK_ERROR(train::load_adapter(from, *params, pool), ErrorCode::kBadData, "model.layers.0");
}
