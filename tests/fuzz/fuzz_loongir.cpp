// loongir_model.json beside weights that are in order: table, graph, and every row read.
#include "fuzz.h"
#include "graph/validate.h"
#include "ir/reader.h"
#include "ir/tiny_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace loongforge;
  static const std::filesystem::path folder = [] {
    const std::filesystem::path path = fuzz::folder().path() / "model";
    test::write_tiny_model(path);
    return path;
  }();
  fuzz::folder().write("model/loongir_model.json", {data, size});
  fuzz::expect_clean(folder.string(), [&] {
    const ir::Reader reader(folder);
    for (const ir::TensorEntry& entry : reader.model().tensors) {
      const ir::TensorEntry& tensor = reader.model().stored_tensor(entry.name);
      std::vector<uint8_t> rows(static_cast<size_t>(tensor.rows()) * tensor.row_stride());
      reader.read_rows(tensor, 0, tensor.rows(), rows);
    }
    static_cast<void>(graph::validate(reader.model(), folder.string()));
  });
  return 0;
}
