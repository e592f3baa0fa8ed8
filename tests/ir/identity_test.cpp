#include "ir/identity.h"

#include <doctest/doctest.h>

#include <functional>

#include "ir/reader.h"
#include "support/temp_dir.h"
#include "tiny_model.h"

using namespace loongforge;

namespace {

ir::Model read(const std::filesystem::path& folder) { return ir::Reader(folder).model(); }

}  // namespace

TEST_CASE("the same weights are the same model wherever and for whatever device they are stored") {
  test::TempDir dir;
  test::write_tiny_model(dir / "a");
  test::write_tiny_model(dir / "b", 16384, 30'000, "loongarch64");
  ir::Model a = read(dir / "a"), b = read(dir / "b");
  REQUIRE(a.tensors[0].file != b.tensors[0].file);
  CHECK(ir::identity_with_weights(a) == ir::identity_with_weights(b));
  CHECK(ir::identity_of_shape(a) == ir::identity_of_shape(b));
  a.model_name = "another label";
  CHECK(ir::identity_with_weights(a) == ir::identity_with_weights(b));
}

TEST_CASE("a bit of a weight, of its scale or of the graph makes another model") {
  test::TempDir dir;
  test::write_tiny_model(dir / "a");
  const ir::Model model = read(dir / "a");
  const auto tensor = [](ir::Model& m, const char* name) -> ir::TensorEntry& {
    return const_cast<ir::TensorEntry&>(*m.find_tensor(name));
  };
  struct Change {
    const char* what;
    std::function<void(ir::Model&)> make;
    bool of_shape;
  };
  const Change changes[] = {
      {"checksums of a weight's rows",
       [&](ir::Model& m) { tensor(m, m.find_tensor("proj.weight")->crc.c_str()).crc32c ^= 1; },
       false},
      {"scales",
       [&](ir::Model& m) { tensor(m, m.find_tensor("proj.weight")->scale.c_str()).crc32c ^= 1; },
       false},
      {"type", [&](ir::Model& m) { tensor(m, "norm.weight").dtype = tensor::DType::kBF16; }, false},
      {"shape",
       [&](ir::Model& m) {
         tensor(m, "norm.weight").shape = {20, 2};
       },
       true},
      {"attribute", [](ir::Model& m) { m.graph.nodes[1].attrs.set("eps", 1e-6); }, true},
      {"operation", [](ir::Model& m) { m.graph.nodes.pop_back(); }, true},
  };
  for (const Change& change : changes) {
    CAPTURE(change.what);
    ir::Model other = model;
    change.make(other);
    CHECK(ir::identity_with_weights(other) != ir::identity_with_weights(model));
    CHECK((ir::identity_of_shape(other) != ir::identity_of_shape(model)) == change.of_shape);
  }
}
