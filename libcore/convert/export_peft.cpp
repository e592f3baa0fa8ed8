// The adapter alone, as PEFT reads it: configuration, weights, and the tokenizer of the model it
// belongs to.
#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/paths.h"
#include "convert/export_hf.h"
#include "convert/merge.h"
#include "convert/paths.h"
#include "convert/stripes.h"
#include "data/tokenizer.h"
#include "formats/peft.h"
#include "formats/safetensors.h"
#include "ir/layout.h"
#include "ir/reader.h"
#include "tensor/convert.h"

namespace loongforge::convert {
namespace {

using tensor::DType;
namespace fs = std::filesystem;

constexpr std::string_view kConfigFile = "adapter_config.json";

// nullopt: each tensor keeps its own type.
std::optional<DType> wanted_dtype(const std::string& dtype) {
  if (dtype.empty()) return std::nullopt;
  if (dtype == "bf16") return DType::kBF16;
  if (dtype == "fp32") return DType::kF32;
  throw_usage("--dtype " + dtype + " is not possible with --export peft", "use bf16 or fp32");
}

// The model that the adapter was trained on, when the input path names one.
std::optional<ir::Reader> base_model(const ExportOptions& options) {
  if (path_exists(options.input_path / ir::kModelFile)) return ir::Reader(options.input_path);
  if (!path_exists(options.input_path)) throw_absent(options.input_path.string());
  return std::nullopt;
}

void check_against(const ir::Reader& base, const formats::PeftAdapter& adapter) {
  for (const formats::PeftModule& module : adapter.modules()) {
    const ir::TensorEntry* weight = base.model().find_tensor(module.module + ".weight");
    if (weight == nullptr || weight->shape != std::vector<int64_t>{module.out, module.in}) {
      throw_bad_data(module.a->where(), "does not fit the model " + base.folder().string(),
                     "give the model that the adapter was trained on");
    }
  }
}

// Under the names that files have, whatever the source calls them.
void write_weights(const fs::path& path, const formats::PeftAdapter& adapter,
                   std::optional<DType> dtype, ThreadPool* pool, const ProgressCallback& progress,
                   ExportReport* report) {
  std::vector<formats::NewTensor> tensors;
  std::vector<const formats::StoredTensor*> sources;
  for (const formats::PeftModule& module : adapter.modules()) {
    for (const formats::StoredTensor* stored : {module.a, module.b}) {
      tensors.push_back({formats::peft_tensor_name(module.module, stored == module.a),
                         dtype.value_or(stored->dtype.value_or(DType::kF32)), stored->shape});
      sources.push_back(stored);
    }
  }
  const formats::TensorSource& source = adapter.tensors();
  formats::SafetensorsWriter writer(path, tensors);
  StripeConverter converter(*pool);
  uint64_t done = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const formats::StoredTensor& stored = *sources[i];
    RowSource rows;
    rows.rows = stored.rows();
    rows.cols = stored.cols();
    rows.stored = stored.dtype;
    rows.read_raw = [&](int64_t r0, int64_t r1, std::span<uint8_t> out) {
      source.read_rows(stored, r0, r1, out);
    };
    rows.read_f32 = [&](int64_t r0, int64_t r1, std::span<float> out) {
      source.read_rows_f32(stored, r0, r1, out);
    };
    converter.run(
        rows, tensors[i].dtype,
        [&](std::span<const uint8_t> bytes, int64_t) {
          writer.write(tensors[i].name, bytes);
          done += bytes.size();
        },
        [&](int64_t) {
          if (progress) progress({done, report->bytes, stored.name});
        });
  }
  writer.finish();
}

}  // namespace

ExportReport export_peft(const ExportOptions& options, const ProgressCallback& progress) {
  if (options.merge)
    throw_usage("--merge contradicts --export peft",
                "it goes with --export hf or gguf; an adapter alone is not merged");
  const std::optional<DType> dtype = wanted_dtype(options.dtype);
  const fs::path inputs[] = {options.input_path, options.adapter};
  guard_output(options.output_path, inputs, options.overwrite, OutputKind::kPeft);
  const fs::path named = options.adapter.empty() ? options.input_path : options.adapter;
  const formats::PeftAdapter adapter(folder_with(named, kConfigFile, "PEFT adapter"));
  const std::optional<ir::Reader> base = base_model(options);
  if (base) check_against(*base, adapter);

  ExportReport report;
  report.format = "peft";
  report.dtype = options.dtype;
  if (base) report.family = base->model().family;
  report.tensors = static_cast<int64_t>(adapter.tensors().tensors().size());
  for (const formats::StoredTensor& stored : adapter.tensors().tensors()) {
    const DType kept = stored.dtype.value_or(DType::kF32);
    report.bytes +=
        static_cast<uint64_t>(stored.elements()) * tensor::dtype_bytes(dtype.value_or(kept));
  }
  report.weight_files = 1;
  warn_of_unknown_keys(adapter, &report);
  if (options.dry_run) return report;

  constexpr uint64_t kSpareBytes = 1 << 20;  // header, configuration
  guard_space(options.output_path,
              report.bytes + (base ? bytes_beside_weights(base->folder()) : 0) + kSpareBytes);
  ThreadPool pool(std::max(1, options.threads));
  FolderWriter folder(options.output_path, options.overwrite);
  write_weights(folder.temporary() / "adapter_model.safetensors", adapter, dtype, &pool, progress,
                &report);
  formats::PeftConfig config = adapter.config();
  if (config.base_model_name_or_path.empty() && base)
    config.base_model_name_or_path = base->model().model_name;
  write_text_atomic(folder.temporary() / kConfigFile, formats::peft_config_text(config));
  if (base && data::Tokenizer::present(base->folder().string())) {
    for (const data::TokenizerFile& file : data::tokenizer_files(base->folder().string())) {
      write_file_of(folder, file);
    }
  }
  folder.commit();
  report.files = folder_names(options.output_path);
  return report;
}

}  // namespace loongforge::convert
