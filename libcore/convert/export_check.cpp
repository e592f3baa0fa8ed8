#include "convert/export_check.h"

#include <utility>
#include <vector>

#include "base/error.h"
#include "formats/hf_config.h"
#include "formats/tensor_source.h"
#include "ir/layout.h"

namespace loongforge::convert {
namespace {

// The model's table as a source without bytes: enough for a family to compare names and shapes with
// a configuration.
class TableSource final : public formats::TensorSource {
 public:
  TableSource(const models::Family& family, const ir::Model& model,
              const std::filesystem::path& file)
      : TensorSource(file) {
    std::vector<formats::StoredTensor> tensors;
    for (const models::ExportTensor& each : family.to_hugging_face != nullptr
                                                ? family.to_hugging_face(model)
                                                : models::same_names(model)) {
      formats::StoredTensor t;
      t.name = each.name;
      t.shape = model.stored_tensor(each.loongir).shape;
      t.type = "BF16";
      t.dtype = tensor::DType::kBF16;
      t.file = file.string();
      t.bytes = static_cast<uint64_t>(t.elements()) * 2;
      tensors.push_back(std::move(t));
    }
    set_tensors(std::move(tensors));
  }
  std::string_view format() const noexcept override { return "loongir"; }
  void read_range(const formats::StoredTensor& tensor, uint64_t,
                  std::span<uint8_t>) const override {
    throw_failed(tensor.where(), "only the table is here");
  }
};

}  // namespace

void check_config(const models::Family& family, const ir::Model& model,
                  const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / ir::kModelFile;
  const formats::HfConfig config = formats::parse_hf_config(model.config, file.string());
  family.plan(config, TableSource(family, model, file), models::SourceNames::kHuggingFace);
}

}  // namespace loongforge::convert
