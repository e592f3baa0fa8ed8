// fp8_block/, fp8_channel/, fp8_tensor/: FP8 checkpoints (config.json, model.safetensors) and
// expected.safetensors, their dequantised values. Read directly and through LoongIR; exported again
// to the same bytes.
#include <vector>

#include "base/error.h"
#include "convert/export.h"
#include "convert/import.h"
#include "formats/quantized_source.h"
#include "formats/safetensors.h"
#include "support/json.h"
#include "support/temp_dir.h"
#include "tools/quant_check/report.h"

namespace loongforge::quant_check {
namespace {

namespace fs = std::filesystem;

void compare_values(const std::string& name, const formats::TensorSource& got,
                    const formats::TensorSource& expected, Report* report) {
  std::vector<float> ours, wanted;
  for (const formats::StoredTensor& tensor : expected.tensors()) {
    const formats::StoredTensor& read = got.at(tensor.name);
    if (read.shape != tensor.shape)
      throw_bad_data(tensor.where(), "has another shape than the checkpoint's tensor");
    const std::vector<float> a = got.read_f32(read), b = expected.read_f32(tensor);
    ours.insert(ours.end(), a.begin(), a.end());
    wanted.insert(wanted.end(), b.begin(), b.end());
  }
  report->same_values(name, ours, wanted);
}

void compare_bytes(const std::string& name, const fs::path& got_folder, const fs::path& folder,
                   Report* report) {
  const auto got = formats::open_tensor_source(got_folder),
             wanted = formats::open_tensor_source(folder);
  size_t same = 0;
  for (const formats::StoredTensor& tensor : wanted->tensors()) {
    const formats::StoredTensor* other = got->find(tensor.name);
    if (other == nullptr || other->type != tensor.type || other->shape != tensor.shape) continue;
    std::vector<uint8_t> a(tensor.bytes), b(other->bytes);
    wanted->read_range(tensor, 0, a);
    got->read_range(*other, 0, b);
    same += a == b;
  }
  const size_t all = wanted->tensors().size();
  report->line(
      name, same == all && got->tensors().size() == all,
      std::to_string(same) + " of " + std::to_string(all) + " tensors with the same bytes");
  const auto config = [](const fs::path& from) {
    return support::read_json((from / "config.json").string());
  };
  report->line(name + ", config.json", config(got_folder) == config(folder), "");
}

void check_layout(const fs::path& folder, const std::string& name, Report* report) {
  const auto source = formats::with_quantization(formats::open_tensor_source(folder),
                                                 formats::read_hf_config(folder / "config.json"));
  const formats::SafetensorsFile expected(folder / "expected.safetensors");
  compare_values(name + ", read", *source, expected, report);
  const test::TempDir dir;
  convert::ImportOptions in;
  in.input_path = folder;
  in.output_path = dir / "ir";
  convert::import_model(in);
  convert::ExportOptions out;
  out.input_path = in.output_path;
  out.output_path = dir / "fp32";
  out.dtype = "fp32";
  convert::export_model(out);
  compare_values(name + ", through LoongIR", *formats::open_tensor_source(out.output_path),
                 expected, report);
  out.output_path = dir / "hf";
  out.dtype.clear();
  convert::export_model(out);
  compare_bytes(name + ", exported again", out.output_path, folder, report);
}

}  // namespace

void check_fp8_checkpoints(const fs::path& dir, Report* report) {
  report->begin("fp8_*: FP8 checkpoints");
  for (const char* name : {"fp8_block", "fp8_channel", "fp8_tensor"}) {
    const fs::path folder = dir / name;
    if (fs::exists(folder / "expected.safetensors")) {
      check_layout(folder, name, report);
    } else {
      report->absent(folder / "expected.safetensors");
    }
  }
}

}  // namespace loongforge::quant_check
