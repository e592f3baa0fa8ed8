#include "convert/export_hf.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/paths.h"
#include "convert/export_check.h"
#include "convert/export_merge.h"
#include "convert/export_rows.h"
#include "convert/kept_fp8.h"
#include "convert/merge.h"
#include "convert/paths.h"
#include "convert/roles.h"
#include "convert/stripes.h"
#include "data/tokenizer.h"
#include "formats/peft.h"
#include "formats/sharded.h"
#include "ir/layout.h"
#include "ir/reader.h"
#include "models/registry.h"
#include "quant/loongamp.h"

namespace loongforge::convert {
namespace {

using support::Json;
using tensor::DType;
namespace fs = std::filesystem;

constexpr std::string_view kWeightSuffix = ".weight";
constexpr std::string_view kScaleSuffix = "_scale_inv";
constexpr uint64_t kSpareBytes = 1 << 20;  // headers, disk blocks that are not full
// A code of E4M3-LA is the OCP code of the same bits times 2^-5.
constexpr float kOcpScale = 0x1p-5f;

// Loaders of this layout want blocks that divide a weight's rows and columns; one block size serves
// the whole checkpoint. Our 128 x 128 blocks are cut into smaller ones of the same scale where they
// have to be: nothing is rounded again.
constexpr int64_t kSmallestBlock = 16;

int64_t whole_block(const ir::TensorEntry& entry) {
  int64_t block = kernels::kWeightBlock;
  while (block > 1 && (entry.rows() % block != 0 || entry.cols() % block != 0)) block /= 2;
  return block;
}

std::string kept_reason(bool wanted, quant::TensorRole role, const quant::Decision& decision) {
  if (wanted)
    return "has rows or columns that are no multiple of 16, which loaders of FP8 blocks ask for";
  if (role == quant::TensorRole::kHead) return "loaders of FP8 checkpoints take the head in bf16";
  return decision.reason;
}

// One scale per block of `block`, from one per block of 128.
std::vector<float> cut_scales(const std::vector<float>& scales, const ir::TensorEntry& entry,
                              int64_t block) {
  const int64_t per_block = kernels::kWeightBlock / block,
                from_cols = ir::ceil_div(entry.cols(), kernels::kWeightBlock);
  const int64_t rows = entry.rows() / block, cols = entry.cols() / block;
  std::vector<float> out;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c)
      out.push_back(scales[static_cast<size_t>(r / per_block * from_cols + c / per_block)]);
  }
  return out;
}

struct PlannedExport {
  std::string name;                        // in the checkpoint
  const ir::TensorEntry* entry = nullptr;  // stored
  DType dtype{};  // in the checkpoint; E4M3LA stands for F8_E4M3 with a scale tensor
  const formats::PeftModule* module = nullptr;  // merged into it
  bool kept = false;                            // goes out with the bytes that the table has
};

class HfExport {
 public:
  HfExport(const ExportOptions& options, const ProgressCallback& progress)
      : options_(options),
        progress_(progress),
        reader_(folder_with(options.input_path, ir::kModelFile, "LoongIR model")),
        model_(reader_.model()),
        pool_(std::max(1, options.threads)),
        converter_(pool_) {}

  ExportReport run() {
    report_.format = "hf";
    decide_dtype();
    report_.family = model_.family;
    if (!options_.adapter.empty())
      adapter_.emplace(folder_with(options_.adapter, "adapter_config.json", "PEFT adapter"));
    if (adapter_) warn_of_unknown_keys(*adapter_, &report_);
    check_config(family(), model_, reader_.folder());
    plan_tensors();
    plan_adapter();
    plan_files();
    std::vector<formats::NewTensor> tensors = new_tensors();
    for (const formats::NewTensor& tensor : tensors) report_.bytes += tensor.bytes();
    report_.tensors = static_cast<int64_t>(tensors.size());
    if (options_.dry_run) return std::move(report_);
    guard_space(options_.output_path,
                report_.bytes + bytes_beside_weights(reader_.folder()) + kSpareBytes);
    write(std::move(tensors));
    return std::move(report_);
  }

 private:
  const models::Family& family() const {
    const models::Family* found = models::find_by_name(model_.family);
    if (found == nullptr) {
      throw_bad_data((reader_.folder() / ir::kModelFile).string(),
                     "the family \"" + model_.family + "\" is not supported",
                     "known model types: " + models::known_model_types());
    }
    return *found;
  }

  // An FP8 checkpoint that was kept goes out as it came in, unless another type is asked for.
  void decide_dtype() {
    report_.dtype = options_.dtype.empty() ? "bf16" : options_.dtype;
    if (!holds_kept_fp8(model_)) return;
    if (!options_.merge && (options_.dtype.empty() || options_.dtype == "fp8")) {
      as_imported_ = true;
      report_.dtype = "fp8";
    } else if (options_.dtype == "fp8") {
      throw_usage("--dtype fp8 with --merge would round the weights of " +
                      reader_.folder().string() + ", an FP8 checkpoint, a second time",
                  "use --dtype bf16");
    }
  }

  void plan_tensors() {
    const models::Family& f = family();
    const auto roles = tensor_roles(model_.graph);
    const quant::AmpPolicy policy = quant::AmpPolicy::standard(report_.dtype, false);
    for (const models::ExportTensor& each :
         f.to_hugging_face != nullptr ? f.to_hugging_face(model_) : models::same_names(model_)) {
      PlannedExport planned;
      planned.name = each.name;
      planned.entry = &model_.stored_tensor(each.loongir);
      if (as_imported_) {
        planned.kept = true;
        planned.dtype = planned.entry->dtype;
        exports_.push_back(std::move(planned));
        continue;
      }
      const auto role = roles.find(planned.entry->name);
      quant::TensorFacts facts;
      facts.name = each.name;
      facts.role = role == roles.end() ? quant::TensorRole::kOther : role->second;
      facts.elements = planned.entry->rows() * planned.entry->cols();
      facts.rank = static_cast<int64_t>(planned.entry->shape.size());
      facts.source = planned.entry->dtype;
      const quant::Decision decision = policy.decide(facts);
      const bool weight =
          facts.role == quant::TensorRole::kLinear || facts.role == quant::TensorRole::kHead;
      if (report_.dtype == "fp32") {
        planned.dtype = DType::kF32;
      } else {
        const bool wanted = report_.dtype == "fp8" && decision.storage == quant::Storage::kFp8 &&
                            each.name.ends_with(kWeightSuffix);
        const int64_t block = wanted ? whole_block(*planned.entry) : 0;
        planned.dtype = block >= kSmallestBlock ? DType::kE4M3LA : DType::kBF16;
        if (planned.dtype == DType::kE4M3LA) block_ = std::min(block_, block);
        if (report_.dtype == "fp8" && weight && planned.dtype == DType::kBF16)
          report_.kept.push_back({each.name, "BF16", kept_reason(wanted, facts.role, decision)});
      }
      exports_.push_back(std::move(planned));
    }
  }

  void plan_adapter() {
    if (!adapter_) return;
    const auto modules = plan_merge(*adapter_, family(), model_);
    for (PlannedExport& each : exports_) {
      const auto module = modules.find(each.entry->name);
      if (module != modules.end()) each.module = module->second;
    }
    report_.merged = static_cast<int64_t>(modules.size());
  }

  // What goes along with the weights: tokenizer files, generation_config.json.
  void plan_files() {
    const std::string folder = reader_.folder().string();
    if (data::Tokenizer::present(folder)) {
      files_ = data::tokenizer_files(folder);
    } else {
      report_.warnings.push_back(folder + " has no tokenizer, so the export has none");
    }
    const fs::path generation = reader_.folder() / "generation_config.json";
    const bool listed = std::any_of(files_.begin(), files_.end(), [](const auto& f) {
      return f.name == "generation_config.json";
    });
    if (!listed && path_exists(generation))
      files_.push_back({"generation_config.json", read_text(generation)});
  }

  static std::string scale_name(const std::string& name) {
    return name + std::string(kScaleSuffix);
  }

  std::vector<formats::NewTensor> new_tensors() const {
    std::vector<formats::NewTensor> out;
    for (const PlannedExport& each : exports_) {
      const bool fp8 = each.dtype == DType::kE4M3LA;
      out.push_back({each.name, fp8 ? DType::kF8E4M3 : each.dtype, each.entry->shape});
      if (!fp8) continue;
      if (each.kept) {
        const ir::SourceScale& scale = each.entry->source_scale;
        out.push_back({scale.name, model_.stored_tensor(each.entry->scale).dtype, scale.shape});
        for (const std::string& name : each.entry->companions)
          out.push_back({name, model_.stored_tensor(name).dtype, model_.stored_tensor(name).shape});
        continue;
      }
      out.push_back({scale_name(each.name),
                     DType::kF32,
                     {each.entry->rows() / block_, each.entry->cols() / block_}});
    }
    return out;
  }

  // The source's config.json with the element type of this checkpoint.
  std::string config_text() const {
    Json config = model_.config;
    if (as_imported_) return config.dump(2) + "\n";
    const bool v5 = config.contains("dtype") && !config.contains("torch_dtype");
    config.set(v5 ? "dtype" : "torch_dtype", report_.dtype == "fp32" ? "float32" : "bfloat16");
    config.erase("quantization_config");
    if (report_.dtype == "fp8") {
      Json quantization = Json::object(), block = Json::array(), kept = Json::array();
      block.push_back(block_);
      block.push_back(block_);
      // Tied or not, transformers leaves the head alone; naming it serves other readers.
      bool has_head = false;
      for (const KeptTensor& each : report_.kept) {
        const std::string module = each.tensor.substr(0, each.tensor.size() - kWeightSuffix.size());
        has_head = has_head || module == "lm_head";
        kept.push_back(module);
      }
      if (!has_head) kept.push_back("lm_head");
      quantization.set("activation_scheme", "dynamic");
      quantization.set("fmt", "e4m3");
      quantization.set("modules_to_not_convert", std::move(kept));
      quantization.set("quant_method", "fp8");
      quantization.set("weight_block_size", std::move(block));
      config.set("quantization_config", std::move(quantization));
    }
    return config.dump(2) + "\n";
  }

  void write(std::vector<formats::NewTensor> tensors) {
    FolderWriter folder(options_.output_path, options_.overwrite);
    formats::ShardedWriter writer(folder.temporary(), std::move(tensors), options_.max_shard_bytes);
    for (const PlannedExport& each : exports_) write_tensor(&writer, each);
    writer.finish();
    report_.weight_files = static_cast<int64_t>(writer.shards());
    write_text_atomic(folder.temporary() / "config.json", config_text());
    for (const data::TokenizerFile& file : files_) write_file_of(folder, file);
    folder.commit();
    report_.files = folder_names(options_.output_path);
  }

  void write_kept(formats::ShardedWriter* writer, const PlannedExport& each) {
    converter_.run(
        rows_of(reader_, *each.entry, nullptr), each.dtype,
        [&](std::span<const uint8_t> bytes, int64_t) {
          writer->write(each.name, bytes);
          done_ += bytes.size();
        },
        [&](int64_t) {
          if (progress_) progress_({std::min(done_, report_.bytes), report_.bytes, each.name});
        });
    if (each.dtype != DType::kE4M3LA) return;
    writer->write(each.entry->source_scale.name, source_scales(reader_, *each.entry));
    for (const std::string& name : each.entry->companions)
      writer->write(name, dense_bytes(reader_, model_.stored_tensor(name)));
  }

  void write_tensor(formats::ShardedWriter* writer, const PlannedExport& each) {
    if (each.kept) {
      write_kept(writer, each);
      return;
    }
    std::optional<LoraDelta> delta;
    if (each.module != nullptr) delta.emplace(*adapter_, *each.module);
    const RowSource rows = rows_of(reader_, *each.entry, delta ? &*delta : nullptr);
    // Codes of ours go out as they are; a foreign block size is made anew from the exact values.
    RowSource source = rows;
    const bool own_blocks = each.entry->block_rows == kernels::kWeightBlock &&
                            each.entry->block_cols == kernels::kWeightBlock;
    if (source.stored == DType::kE4M3LA && !own_blocks) source.stored.reset();
    const bool as_is = each.dtype == DType::kE4M3LA && source.stored == DType::kE4M3LA;
    Converted converted = converter_.run(
        source, each.dtype,
        [&](std::span<const uint8_t> bytes, int64_t) {
          writer->write(each.name, bytes);
          done_ += bytes.size();
        },
        [&](int64_t) {
          if (progress_) progress_({std::min(done_, report_.bytes), report_.bytes, each.name});
        });
    if (each.dtype != DType::kE4M3LA) return;
    if (as_is) converted.scales = reader_.read_f32(each.entry->scale);
    std::vector<float> scales = cut_scales(converted.scales, *each.entry, block_);
    for (float& scale : scales) scale *= kOcpScale;
    const auto* bytes = reinterpret_cast<const uint8_t*>(scales.data());
    writer->write(scale_name(each.name), {bytes, scales.size() * sizeof(float)});
    done_ += scales.size() * sizeof(float);
  }

  const ExportOptions& options_;
  const ProgressCallback& progress_;
  ir::Reader reader_;
  const ir::Model& model_;
  ThreadPool pool_;
  StripeConverter converter_;
  std::optional<formats::PeftAdapter> adapter_;
  std::vector<PlannedExport> exports_;
  std::vector<data::TokenizerFile> files_;
  ExportReport report_;
  bool as_imported_ = false;               // an FP8 checkpoint goes out as it came in
  int64_t block_ = kernels::kWeightBlock;  // of the FP8 weights in the checkpoint
  uint64_t done_ = 0;
};

}  // namespace

ExportReport export_hugging_face(const ExportOptions& options, const ProgressCallback& progress) {
  if (!options.dtype.empty() && options.dtype != "bf16" && options.dtype != "fp8" &&
      options.dtype != "fp32") {
    throw_usage("--dtype " + options.dtype + " is not possible with --export hf",
                "use bf16, fp8 or fp32; fp16 and q8_0 are for --export gguf");
  }
  if (options.merge && options.adapter.empty()) {
    throw_usage("--merge needs --adapter", "name a PEFT folder, or a checkpoint that holds one");
  }
  if (!options.merge && !options.adapter.empty()) {
    throw_usage("--adapter needs --merge to go into a Hugging Face model",
                "or --export peft for the adapter alone");
  }
  if (options.max_shard_bytes == 0) throw_usage("--max-shard-size must not be 0");
  const fs::path inputs[] = {options.input_path, options.adapter};
  guard_output(options.output_path, inputs, options.overwrite, OutputKind::kHuggingFace);
  return HfExport(options, progress).run();
}

}  // namespace loongforge::convert
